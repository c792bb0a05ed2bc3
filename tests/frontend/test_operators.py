"""Every operator the importer knows, alone, against onnxruntime: odd sizes, all attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto

from ansorpy.frontend.onnx.images import patches, regions, sampling
from ansorpy.frontend.onnx.operators import logic, random, signal
from ansorpy.frontend.onnx.quantized import products as quantized
from ansorpy.frontend.onnx.registry import OPERATORS
from ansorpy.frontend.onnx.selection import boxes, chosen, sorts
from ansorpy.frontend.onnx.training import losses, optimisers
from tests.frontend.models import operator_model
from tests.graph.executor import Array, assert_same_as_onnxruntime

RNG = np.random.default_rng(5)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def positive(*shape: int) -> Array:
    return RNG.uniform(0.5, 1.5, shape).astype(np.float32)


def scalar(value: float) -> Array:
    return np.asarray(value, np.float32)


def ints(*values: int) -> Array:
    return np.asarray(values, np.int64)


IMAGE = (2, 6, 7, 5)

CONVOLUTIONS = {
    "plain": operator_model("Conv", [IMAGE], [normal(4, 6, 3, 3), normal(4)]),
    "pointwise": operator_model("Conv", [IMAGE], [normal(4, 6, 1, 1), normal(4)]),
    "pointwise_stride": operator_model("Conv", [IMAGE], [normal(4, 6, 1, 1)], strides=[2, 2]),
    "asymmetric": operator_model(
        "Conv", [IMAGE], [normal(4, 6, 3, 2)], pads=[0, 1, 2, 0], strides=[2, 1]
    ),
    "dilated": operator_model(
        "Conv", [IMAGE], [normal(4, 6, 2, 3)], dilations=[3, 2], pads=[1, 1, 1, 1]
    ),
    "same_upper": operator_model(
        "Conv", [IMAGE], [normal(4, 6, 2, 4)], auto_pad="SAME_UPPER", strides=[2, 2]
    ),
    "same_lower": operator_model(
        "Conv", [IMAGE], [normal(4, 6, 2, 4)], auto_pad="SAME_LOWER", strides=[1, 2]
    ),
    "valid": operator_model("Conv", [IMAGE], [normal(4, 6, 2, 4)], auto_pad="VALID"),
    "grouped": operator_model(
        "Conv", [IMAGE], [normal(4, 3, 3, 3), normal(4)], group=2, pads=[1, 1, 1, 1]
    ),
    "grouped_pointwise": operator_model("Conv", [IMAGE], [normal(9, 2, 1, 1), normal(9)], group=3),
    "depthwise": operator_model(
        "Conv", [IMAGE], [normal(6, 1, 3, 3), normal(6)], group=6, pads=[1, 1, 1, 1]
    ),
    "depthwise_pointwise": operator_model("Conv", [IMAGE], [normal(6, 1, 1, 1)], group=6),
    "multiplier": operator_model("Conv", [IMAGE], [normal(12, 1, 3, 3), normal(12)], group=6),
    "one_channel": operator_model("Conv", [(1, 1, 5, 5)], [normal(3, 1, 3, 3)]),
    "1d": operator_model("Conv", [(2, 3, 11)], [normal(5, 3, 4)], pads=[2, 1], strides=[3]),
    "3d": operator_model("Conv", [(1, 2, 5, 4, 3)], [normal(3, 2, 2, 3, 2)], pads=[1] * 6),
    "computed_weight": operator_model("Conv", [IMAGE, (4, 6, 3, 3)], pads=[1, 1, 1, 1]),
}

POOLS = {
    "lp": operator_model("LpPool", [IMAGE], kernel_shape=[3, 2], strides=[2, 1], p=3),
    "lp_two": operator_model("LpPool", [IMAGE], kernel_shape=[2, 2], pads=[1, 0, 0, 1]),
    "global_lp": operator_model("GlobalLpPool", [IMAGE]),
    "global_lp_one": operator_model("GlobalLpPool", [IMAGE], p=1),
    "max": operator_model("MaxPool", [IMAGE], kernel_shape=[3, 2], strides=[2, 1]),
    "max_pad": operator_model("MaxPool", [IMAGE], kernel_shape=[3, 3], pads=[1, 0, 0, 1]),
    "max_ceil": operator_model(
        "MaxPool", [IMAGE], kernel_shape=[3, 2], strides=[3, 2], pads=[1, 1, 1, 1], ceil_mode=1
    ),
    "max_dilated": operator_model("MaxPool", [IMAGE], kernel_shape=[2, 2], dilations=[3, 2]),
    "max_same": operator_model(
        "MaxPool", [IMAGE], kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_UPPER"
    ),
    "max_1d": operator_model("MaxPool", [(2, 3, 9)], kernel_shape=[4], strides=[3]),
    "max_3d": operator_model("MaxPool", [(1, 2, 5, 4, 3)], kernel_shape=[2, 2, 2]),
    "average": operator_model("AveragePool", [IMAGE], kernel_shape=[3, 2]),
    "average_exclude": operator_model(
        "AveragePool", [IMAGE], kernel_shape=[3, 3], pads=[1, 2, 0, 1], strides=[2, 2]
    ),
    "average_include": operator_model(
        "AveragePool", [IMAGE], kernel_shape=[3, 3], pads=[1, 2, 0, 1], count_include_pad=1
    ),
    "average_ceil": operator_model(
        "AveragePool", [IMAGE], kernel_shape=[3, 2], strides=[3, 2], ceil_mode=1
    ),
    "average_ceil_include": operator_model(
        "AveragePool", [IMAGE], opset=19, kernel_shape=[3, 3], strides=[3, 2], ceil_mode=1,
        pads=[1, 1, 1, 1], count_include_pad=1,
    ),
    "global_average": operator_model("GlobalAveragePool", [IMAGE]),
    "global_max": operator_model("GlobalMaxPool", [IMAGE]),
}  # fmt: skip

PRODUCTS = {
    "gemm": operator_model("Gemm", [(3, 5)], [normal(5, 7), normal(7)]),
    "gemm_transposed": operator_model("Gemm", [(5, 3)], [normal(7, 5), normal(3, 1)], transA=1,
                                      transB=1, alpha=0.5, beta=2.0),
    "gemm_computed": operator_model("Gemm", [(3, 5), (5, 2), (2,)]),
    "matmul": operator_model("MatMul", [(3, 5)], [normal(5, 7)]),
    "matmul_batch": operator_model("MatMul", [(2, 1, 3, 5), (4, 5, 7)]),
    "matmul_vector": operator_model("MatMul", [(2, 3, 5), (5,)]),
    "vector_matmul": operator_model("MatMul", [(5,), (2, 5, 3)]),
}  # fmt: skip

NORMALIZATIONS = {
    "hardmax": operator_model("Hardmax", [(3, 5, 7)], axis=1),
    "hardmax_old": operator_model("Hardmax", [(3, 5, 4, 7)], opset=11, axis=-2),
    "hardmax_old_default": operator_model("Hardmax", [(3, 5, 7)], opset=8),
    "lp": operator_model("LpNormalization", [(3, 5, 7)], axis=1),
    "lp_one": operator_model("LpNormalization", [(3, 5, 7)], p=1),
    "batch": operator_model(
        "BatchNormalization", [IMAGE], [normal(6), normal(6), normal(6), positive(6)], epsilon=1e-3
    ),
    "batch_matrix": operator_model(
        "BatchNormalization", [(3, 5)], [normal(5), normal(5), normal(5), positive(5)]
    ),
    "lrn": operator_model("LRN", [IMAGE], size=3, alpha=0.3, beta=0.75, bias=1.5),
    "lrn_power": operator_model("LRN", [IMAGE], size=5, alpha=0.3, beta=0.6),
    "softmax": operator_model("Softmax", [IMAGE], axis=1),
    "softmax_last": operator_model("Softmax", [(3, 7)]),
    "softmax_old": operator_model("Softmax", [IMAGE], opset=11, axis=2),
    "softmax_old_default": operator_model("Softmax", [IMAGE], opset=9),
    "log_softmax": operator_model("LogSoftmax", [(3, 7)]),
    "log_softmax_of_one": operator_model("LogSoftmax", [(3, 1)]),
    "layer": operator_model("LayerNormalization", [(2, 5, 7)], [normal(7), normal(7)]),
    "layer_axis": operator_model(
        "LayerNormalization", [(2, 5, 7)], [normal(5, 7), normal(5, 7)], axis=1, epsilon=1e-2
    ),
    "layer_all": operator_model("LayerNormalization", [(5, 7)], [normal(5, 7)], axis=0),
    "layer_computed": operator_model("LayerNormalization", [(3, 1, 5), (5,), (5,)]),
    "instance": operator_model("InstanceNormalization", [IMAGE], [normal(6), normal(6)]),
    "rms": operator_model("RMSNormalization", [(2, 5, 7)], [normal(7)], opset=23),
    "rms_axis": operator_model("RMSNormalization", [(2, 5, 7)], [normal(5, 7)], opset=23, axis=1),
}

ARITHMETIC = {
    "add_broadcast": operator_model("Add", [IMAGE, (7, 1)]),
    "add_bias": operator_model("Add", [IMAGE], [normal(6, 1, 1)]),
    "sub": operator_model("Sub", [IMAGE, (1, 6, 1, 1)]),
    "sub_constant": operator_model("Sub", [IMAGE], [normal(5)]),
    "mul_scalar": operator_model("Mul", [IMAGE], [normal()]),
    "div": operator_model("Div", [(3, 5)], [positive(5)]),
    "max": operator_model("Max", [(3, 5), (5,), (3, 1)]),
    "min": operator_model("Min", [(3, 5), (5,)]),
    "sum": operator_model("Sum", [(3, 5), (3, 5), (1, 5)]),
    "sum_one": operator_model("Sum", [(3, 5)]),
    "mean": operator_model("Mean", [(3, 5), (3, 5), (3, 5)]),
    "pow_cube": operator_model("Pow", [(3, 5)], [scalar(3)]),
    "pow_int": operator_model("Pow", [(3, 5)], [np.asarray(2, np.int64)]),
}

ACTIVATION_CASES: list[tuple[str, str, list[Array | None], int, dict[str, Any]]] = [
    ("abs", "Abs", [], 17, {}),
    ("atan", "Atan", [], 17, {}),
    ("asinh", "Asinh", [], 17, {}),
    ("ceil", "Ceil", [], 17, {}),
    ("celu", "Celu", [], 17, {"alpha": 1.3}),
    ("clip", "Clip", [scalar(-0.5), scalar(0.7)], 17, {}),
    ("clip_high", "Clip", [None, scalar(0.7)], 17, {}),
    ("clip_old", "Clip", [], 9, {"min": -0.3, "max": 0.4}),
    ("cos", "Cos", [], 17, {}),
    ("cosh", "Cosh", [], 17, {}),
    ("elu", "Elu", [], 17, {"alpha": 1.3}),
    ("erf", "Erf", [], 17, {}),
    ("exp", "Exp", [], 17, {}),
    ("floor", "Floor", [], 17, {}),
    ("gelu", "Gelu", [], 20, {}),
    ("gelu_tanh", "Gelu", [], 20, {"approximate": "tanh"}),
    ("hard_sigmoid", "HardSigmoid", [], 17, {"alpha": 0.3}),
    ("hard_swish", "HardSwish", [], 17, {}),
    ("leaky_relu", "LeakyRelu", [], 17, {"alpha": 0.2}),
    ("mish", "Mish", [], 18, {}),
    ("neg", "Neg", [], 17, {}),
    ("prelu", "PRelu", [np.full((5, 1), 0.3, np.float32)], 17, {}),
    ("reciprocal", "Reciprocal", [], 17, {}),
    ("relu", "Relu", [], 17, {}),
    ("round", "Round", [], 17, {}),
    ("selu", "Selu", [], 17, {}),
    ("sigmoid", "Sigmoid", [], 17, {}),
    ("shrink", "Shrink", [], 17, {"lambd": 0.6, "bias": 0.2}),
    ("shrink_hard", "Shrink", [], 17, {"lambd": 0.4}),
    ("sign", "Sign", [], 17, {}),
    ("sin", "Sin", [], 17, {}),
    ("sinh", "Sinh", [], 17, {}),
    ("softplus", "Softplus", [], 17, {}),
    ("softsign", "Softsign", [], 17, {}),
    ("tan", "Tan", [], 17, {}),
    ("thresholded_relu", "ThresholdedRelu", [], 17, {"alpha": 0.4}),
    ("tanh", "Tanh", [], 17, {}),
    ("dropout", "Dropout", [], 17, {}),
    ("dropout_old", "Dropout", [], 9, {"ratio": 0.4}),
    ("identity", "Identity", [], 17, {}),
]
ACTIVATIONS = {
    name: operator_model(op_type, [(3, 5, 7)], constants, opset, **attributes)
    for name, op_type, constants, opset, attributes in ACTIVATION_CASES
}

MOVEMENTS = {
    "concat": operator_model("Concat", [(2, 3, 4), (2, 1, 4), (2, 5, 4)], axis=1),
    "concat_last": operator_model("Concat", [(3, 16), (3, 8)], axis=-1),
    "depth_to_space": operator_model("DepthToSpace", [(2, 18, 5, 3)], blocksize=3),
    "depth_to_space_crd": operator_model("DepthToSpace", [(1, 12, 3, 5)], blocksize=2, mode="CRD"),
    "space_to_depth": operator_model("SpaceToDepth", [(2, 3, 6, 9)], blocksize=3),
    "tile": operator_model("Tile", [(2, 1, 5)], [ints(3, 4, 1)]),
    "tile_none": operator_model("Tile", [(2, 5)], [ints(1, 1)]),
    "trilu": operator_model("Trilu", [(2, 5, 7)]),
    "trilu_lower": operator_model("Trilu", [(7, 5)], [np.asarray(-2, np.int64)], upper=0),
    "trilu_all": operator_model("Trilu", [(3, 3)], [np.asarray(-2, np.int64)]),
    "expand": operator_model("Expand", [(3, 1)], [ints(2, 1, 5)]),
    "expand_none": operator_model("Expand", [(3, 2)], [ints(1, 2)]),
    "reshape": operator_model("Reshape", [(2, 3, 4)], [ints(0, -1)]),
    "flatten": operator_model("Flatten", [IMAGE], axis=2),
    "flatten_all": operator_model("Flatten", [IMAGE], axis=0),
    "squeeze": operator_model("Squeeze", [(2, 1, 3, 1)], [ints(-1)]),
    "squeeze_old": operator_model("Squeeze", [(2, 1, 3, 1)], opset=11, axes=[1]),
    "squeeze_all": operator_model("Squeeze", [(2, 1, 3, 1)]),
    "unsqueeze": operator_model("Unsqueeze", [(2, 3)], [ints(0, -1)]),
    "transpose": operator_model("Transpose", [(2, 3, 4, 5)], perm=[2, 0, 3, 1]),
    "transpose_default": operator_model("Transpose", [(2, 3, 4)]),
    "slice": operator_model("Slice", [IMAGE], [ints(1, -4), ints(100, -1), ints(1, 2)]),
    "slice_step": operator_model(
        "Slice", [IMAGE], [ints(4, -1), ints(0, -100), ints(1, 2), ints(-2, -3)]
    ),
    "slice_old": operator_model("Slice", [IMAGE], opset=9, starts=[1], ends=[-1], axes=[2]),
    "split": operator_model("Split", [IMAGE], [ints(1, 2, 3)], outputs=3, axis=1),
    "split_even": operator_model("Split", [IMAGE], opset=11, outputs=3, axis=1),
    "gather_scalar": operator_model("Gather", [IMAGE], [np.asarray(-2, np.int64)], axis=1),
    "gather_range": operator_model("Gather", [IMAGE], [ints(5, 3, 1)], axis=1),
    "pad": operator_model("Pad", [IMAGE], [ints(0, 0, 1, 2, 0, 1, 0, 3), scalar(1.5)]),
    "pad_crop": operator_model("Pad", [IMAGE], [ints(0, 0, -1, 2, 0, 0, 1, -2)]),
    "pad_edge": operator_model("Pad", [IMAGE], [ints(0, 0, 1, 2, 0, 0, 2, 3)], mode="edge"),
    "pad_reflect": operator_model("Pad", [IMAGE], [ints(0, 0, 1, 2, 0, 0, 2, 3)], mode="reflect"),
    "pad_old": operator_model("Pad", [IMAGE], opset=9, pads=[0, 0, 1, 2, 0, 0, 2, 3], value=0.5),
}

GATHERS = {
    "elements": operator_model(
        "GatherElements", [(3, 5, 4)], [RNG.integers(-5, 5, (2, 7, 4))], axis=1
    ),
    "nd": operator_model("GatherND", [(3, 5, 4)], [RNG.integers(-3, 3, (6, 2, 2))]),
    "nd_batch": operator_model(
        "GatherND", [(3, 5, 4)], [RNG.integers(-4, 4, (3, 2, 2))], batch_dims=1
    ),
    "uneven": operator_model("Gather", [IMAGE], [ints(5, 0, 1, -1)], axis=1),
    "repeated": operator_model("Gather", [(5, 3)], [ints(2, 2)]),
    "matrix": operator_model("Gather", [(2, 5, 3)], [np.asarray([[4, 0, 1], [1, -2, 3]])], axis=1),
    "last": operator_model("Gather", [(3, 7)], [ints(6, 0, 3, 3, 1)], axis=-1),
}

REDUCTIONS = {
    "cum_sum": operator_model("CumSum", [(3, 5, 7)], [np.asarray(1, np.int64)]),
    "cum_sum_back": operator_model("CumSum", [(3, 7)], [ints(-1)], reverse=1, exclusive=1),
    "l1": operator_model("ReduceL1", [(3, 5, 7)], [ints(1)], opset=18),
    "l2": operator_model("ReduceL2", [(3, 5, 7)], [ints(-1)], opset=18, keepdims=0),
    "l2_all": operator_model("ReduceL2", [(3, 5, 7)]),
    "log_sum_exp": operator_model("ReduceLogSumExp", [(3, 5, 7)], [ints(0, 2)], opset=18),
    "log_sum_exp_dropped": operator_model("ReduceLogSumExp", [(3, 5)], axes=[1], keepdims=0),
    "sum_square": operator_model("ReduceSumSquare", [(3, 5, 7)], axes=[0, 1]),
    "mean": operator_model("ReduceMean", [IMAGE], axes=[2, 3]),
    "mean_last": operator_model("ReduceMean", [IMAGE], axes=[-1], keepdims=0),
    "sum": operator_model("ReduceSum", [IMAGE], [ints(1)]),
    "sum_all": operator_model("ReduceSum", [IMAGE], keepdims=0),
    "sum_none": operator_model("ReduceSum", [IMAGE], noop_with_empty_axes=1),
    "max": operator_model("ReduceMax", [IMAGE], axes=[0, 2], keepdims=0),
    "min": operator_model("ReduceMin", [IMAGE], axes=[1]),
    "prod": operator_model("ReduceProd", [(3, 5)], axes=[1]),
}

TRANSPOSED = {
    "plain": operator_model("ConvTranspose", [IMAGE], [normal(6, 4, 3, 3), normal(4)]),
    "stride": operator_model(
        "ConvTranspose",
        [IMAGE],
        [normal(6, 4, 4, 4), normal(4)],
        strides=[2, 2],
        pads=[1, 1, 1, 1],
    ),
    "odd": operator_model(
        "ConvTranspose",
        [IMAGE],
        [normal(6, 5, 3, 2)],
        strides=[2, 3],
        pads=[1, 0, 0, 1],
        output_padding=[1, 0],
    ),
    "gap": operator_model("ConvTranspose", [IMAGE], [normal(6, 4, 1, 2)], strides=[3, 2]),
    "cut": operator_model(
        "ConvTranspose", [IMAGE], [normal(6, 4, 5, 5)], strides=[2, 2], pads=[4, 3, 3, 4]
    ),
    "dilated": operator_model(
        "ConvTranspose",
        [IMAGE],
        [normal(6, 4, 3, 2)],
        strides=[2, 1],
        dilations=[2, 3],
        pads=[1, 1, 0, 2],
    ),
    "group": operator_model(
        "ConvTranspose", [IMAGE], [normal(6, 2, 3, 3), normal(6)], group=3, strides=[2, 2]
    ),
    "depthwise": operator_model(
        "ConvTranspose", [IMAGE], [normal(6, 1, 4, 4)], group=6, strides=[2, 2], pads=[1] * 4
    ),
    "same_upper": operator_model(
        "ConvTranspose", [IMAGE], [normal(6, 4, 3, 3)], strides=[2, 2], auto_pad="SAME_UPPER"
    ),
    "same_lower": operator_model(
        "ConvTranspose", [IMAGE], [normal(6, 4, 4, 3)], strides=[1, 2], auto_pad="SAME_LOWER"
    ),
    "same_of_few_taps": operator_model(
        "ConvTranspose", [IMAGE], [normal(6, 4, 1, 2)], strides=[2, 4], auto_pad="SAME_LOWER"
    ),
    "shape": operator_model(
        "ConvTranspose", [IMAGE], [normal(6, 4, 3, 3)], strides=[2, 2], output_shape=[14, 10]
    ),
    "1d": operator_model("ConvTranspose", [(2, 3, 7)], [normal(3, 5, 4)], strides=[3]),
    "3d": operator_model(
        "ConvTranspose", [(1, 2, 3, 4, 3)], [normal(2, 3, 2, 3, 2)], strides=[2, 1, 2]
    ),
    "one_channel": operator_model("ConvTranspose", [(1, 1, 5, 5)], [normal(1, 1, 2, 2)]),
    "computed_weight": operator_model("ConvTranspose", [IMAGE, (6, 4, 3, 3)], strides=[2, 2]),
}

FAMILIES = {
    "conv": CONVOLUTIONS,
    "transposed": TRANSPOSED,
    "pool": POOLS,
    "product": PRODUCTS,
    "normalization": NORMALIZATIONS,
    "arithmetic": ARITHMETIC,
    "activation": ACTIVATIONS,
    "movement": MOVEMENTS,
    "reduction": REDUCTIONS,
    "gather": GATHERS,
}
CASES = {
    f"{family}-{name}": model
    for family, models in FAMILIES.items()
    for name, model in models.items()
}


@pytest.mark.parametrize("case", CASES)
def test_an_operator_alone_equals_onnxruntime(case: str) -> None:
    assert_same_as_onnxruntime(CASES[case], np.random.default_rng(11))


@pytest.mark.parametrize(("before", "op_type"), [
    ("Exp", "Log"), ("Exp", "Sqrt"), ("Sin", "Asin"), ("Tanh", "Acos"), ("Tanh", "Atanh"),
    ("Cosh", "Acosh"), ("Exp", "ReduceLogSum"),
])  # fmt: skip
def test_functions_of_some_numbers_equal_onnxruntime(before: str, op_type: str) -> None:
    model = operator_model(before, [(3, 5)])
    model.graph.node[0].output[0] = "e"
    after = operator_model(op_type, [(3, 5)]).graph.node[0]
    after.input[0] = "e"
    model.graph.node.append(after)
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model = onnx.shape_inference.infer_shapes(model)
    assert_same_as_onnxruntime(model, np.random.default_rng(11))


WITHOUT_INFERENCE: dict[str, tuple[ModelProto, tuple[int, ...], int]] = {
    "group": (
        operator_model("GroupNormalization", [IMAGE], [positive(6), normal(6)], 21, num_groups=3),
        IMAGE, TensorProto.FLOAT,
    ),
    "mean_variance": (
        operator_model("MeanVarianceNormalization", [IMAGE]), IMAGE, TensorProto.FLOAT
    ),
    "mean_variance_axes": (
        operator_model("MeanVarianceNormalization", [IMAGE], axes=[1, 3]), IMAGE, TensorProto.FLOAT
    ),
    "arg_max": (operator_model("ArgMax", [(3, 5, 7)], axis=1), (3, 1, 7), TensorProto.INT64),
    "arg_max_last": (
        operator_model("ArgMax", [(3, 5, 1)], axis=2, select_last_index=1),
        (3, 5, 1), TensorProto.INT64,
    ),
    "arg_min_dropped": (
        operator_model("ArgMin", [(3, 5, 7)], axis=-1, keepdims=0), (3, 5), TensorProto.INT64
    ),
}  # fmt: skip
"""Models whose output has a type or shape that is said here, and both."""


@pytest.mark.parametrize("case", WITHOUT_INFERENCE)
def test_other_operators_equal_onnxruntime(case: str) -> None:
    model, shape, kind = WITHOUT_INFERENCE[case]
    model.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y0", kind, shape))
    assert_same_as_onnxruntime(model, np.random.default_rng(11))


def test_every_importer_is_tried() -> None:
    models = [*CASES.values(), *(model for model, _, _ in WITHOUT_INFERENCE.values())]
    used = {node.op_type for model in models for node in model.graph.node}
    folded = {"Cast", "CastLike", "Constant", "ConstantOfShape", "EyeLike", "Shape", "Size"}
    elsewhere = {"Log", "Sqrt", "Acos", "Acosh", "Asin", "Atanh", "ReduceLogSum", *logic.OPERATORS}
    elsewhere |= {"LSTM", "GRU", "RNN", "Einsum", "Resize", "Upsample"}  # in files of their own
    elsewhere |= {"Attention", "RotaryEmbedding"}  # test_attention
    elsewhere |= {"DequantizeLinear", "QuantizeLinear"}  # test_quantize
    elsewhere |= {"BitCast"}  # test_narrow
    elsewhere |= {"DynamicQuantizeLinear", *quantized.OPERATORS}  # test_quantized
    elsewhere |= {"Scatter", "ScatterElements", "ScatterND"}  # test_scatter
    elsewhere |= {"Det", "MaxUnpool", "TfIdfVectorizer", *random.OPERATORS}  # in files of their own
    elsewhere |= {*patches.OPERATORS, *regions.OPERATORS}  # test_regions
    elsewhere |= {
        *boxes.OPERATORS,
        *chosen.OPERATORS,
        *sorts.OPERATORS,
    }  # of their own
    elsewhere |= {"Range"}  # test_sizes
    elsewhere |= {"IsInf", "IsNaN", "Mod", "OneHot", "Swish"}  # test_onnx_cases
    elsewhere |= {"CenterCropPad", "CumProd", "ReverseSequence", "SwiGLU", "TensorScatter"}  # there
    elsewhere |= {*losses.OPERATORS, *optimisers.OPERATORS, *sampling.OPERATORS, *signal.OPERATORS}
    elsewhere |= {n for n in OPERATORS if n.startswith("ai.onnx.ml.")}  # test_classical_models
    elsewhere |= {n for n in OPERATORS if n.startswith("com.microsoft.")}  # microsoft/
    elsewhere |= {"SimplifiedLayerNormalization"}  # microsoft/test_norms
    assert set(OPERATORS) - used - folded - elsewhere == set()
