"""Quantized networks, computed in floats, against onnxruntime."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, TensorProto
from onnx.reference import ReferenceEvaluator

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from tests.frontend.models import graph_model, node
from tests.graph.executor import (
    Array,
    assert_same_as_onnxruntime,
    compiled,
    random_feeds,
    run_network,
)

RNG = np.random.default_rng(4)


def there_and_back(kind: str, axis: int | None, opset: int = 19) -> ModelProto:
    """Data as integers of *kind* and as floats again; zero points a number, or one a channel."""
    count = 3 if axis is not None else 1
    info = np.iinfo(kind)
    constants: dict[str, Array] = {
        "scale": RNG.uniform(0.01, 0.02, count).astype(np.float32),
        "zero": RNG.integers(info.min // 4, info.max // 4, count).astype(kind),
    }
    if axis is None:
        constants = {name: array.reshape(()) for name, array in constants.items()}
    given: dict[str, Any] = {} if axis is None else {"axis": axis}
    nodes = [
        node("QuantizeLinear", ["x", "scale", "zero"], ["q"], **given),
        node("DequantizeLinear", ["q", "scale", "zero"], ["y"], **given),
    ]
    return graph_model(nodes, {"x": (2, 3, 5)}, ["y"], constants, opset)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("axis", [None, 1, -2])
def test_numbers_there_and_back(kind: str, axis: int | None) -> None:
    network = assert_same_as_onnxruntime(there_and_back(kind, axis), np.random.default_rng(1))
    assert len(network.calls) == 1


def test_weights_are_floats_before_anything_runs() -> None:
    constants: dict[str, Array] = {
        "w": RNG.integers(-127, 127, (7, 5)).astype(np.int8),
        "s": RNG.uniform(0.01, 0.02, 5).astype(np.float32),
        "z": np.zeros(5, np.int8),
    }
    nodes = [
        node("DequantizeLinear", ["w", "s", "z"], ["f"], axis=1),
        node("MatMul", ["x", "f"], ["y"]),
    ]
    model = graph_model(nodes, {"x": (3, 7)}, ["y"], constants, 19)
    assert [n.op.label for n in load(model).nodes] == ["matmul"]
    network = compiled(model)
    feeds = random_feeds(network, np.random.default_rng(1))
    # onnxruntime would round the data here, too.
    want = np.asarray(list(ReferenceEvaluator(model).run(None, feeds))[0])
    np.testing.assert_allclose(run_network(network, feeds)[0], want, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("constant", [False, True])
def test_large_integers_are_scaled_in_single_precision(kind: str, constant: bool) -> None:
    """A bias of a convolution in half precision: only its product with the scale has to fit."""
    dtype = np.dtype(kind) if kind == "float16" else np.dtype(ml_dtypes.bfloat16)
    x = np.asarray([120_000, -70_001, 4097, 3], np.int32)
    held: dict[str, Array] = {"s": np.asarray(2**-7, dtype), "z": np.asarray(4096, np.int32)}
    nodes = [node("DequantizeLinear", ["x", "s", "z"], ["d"]), node("Neg", ["d"], ["y"])]
    types = {"x": TensorProto.INT32, "y": getattr(TensorProto, kind.upper())}
    given = {} if constant else {"x": x}
    held |= {"x": x} if constant else {}
    model = graph_model(nodes, {n: a.shape for n, a in given.items()}, ["y"], held, 21, types)
    [got] = run_network(compiled(model), given)
    np.testing.assert_array_equal(got, ((4096 - x.astype(np.float64)) / 128).astype(dtype))


def test_half_precision_numbers_get_zero_points_of_16_bits() -> None:
    held: dict[str, Array] = {"s": np.asarray(1, np.float16), "z": np.asarray(12_345, np.int16)}
    types = {"x": TensorProto.FLOAT16, "y": TensorProto.INT16}
    one = node("QuantizeLinear", ["x", "s", "z"], ["y"])
    model = graph_model([one], {"x": (4,)}, ["y"], held, 21, types)
    x = np.asarray([2.5, -3, 2048, 30_000], np.float16)
    [got] = run_network(compiled(model), {"x": x})
    np.testing.assert_array_equal(got, [12_347, 12_342, 14_393, 32_767])


def test_scales_that_do_not_fit_are_refused() -> None:
    constants: dict[str, Array] = {"s": np.ones(3, np.float32)}
    one = node("DequantizeLinear", ["x", "s"], ["y"], axis=1)
    model = graph_model([one], {"x": (2, 4)}, ["y"], constants, 19, {"x": TensorProto.INT8})
    with pytest.raises(UnsupportedModel) as caught:
        load(model)
    assert "scales of shape (3,)" in caught.value.rows[0].attribute
