"""Quantized operators of com.microsoft beside onnxruntime; results may differ by one step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from tests.frontend.microsoft.beside import Array, assert_as_onnxruntime, model_of, normal
from tests.graph.executor import compiled, run_network

STEP = 1.01
KINDS: dict[Any, int] = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}


def integers(seed: int, dtype: Any, *shape: int) -> Array:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max + 1, shape).astype(dtype)


def part(name: str, value: Array, scale: float, zero: int) -> dict[str, Array | None]:
    """Integers, their scale and their zero point."""
    return {
        name: value,
        f"{name}_scale": np.array(scale, np.float32),
        f"{name}_zero": np.array(zero, value.dtype),
    }


def result(dtype: Any, scale: float, zero: int) -> dict[str, Array | None]:
    return {"y_scale": np.array(scale, np.float32), "y_zero": np.array(zero, dtype)}


def held(operands: dict[str, Array | None]) -> list[str]:
    return [n for n, a in operands.items() if a is not None and ("scale" in n or "zero" in n)]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("operator", ["QLinearAdd", "QLinearMul"])
def test_pairs(operator: str, dtype: Any) -> None:
    operands = {
        **part("a", integers(0, dtype, 3, 5), 0.02, 3),
        **part("b", integers(1, dtype, 5), 0.05, 7),
        **result(dtype, 0.06, 11),
    }
    assert_as_onnxruntime(operator, operands, {"y": KINDS[dtype]}, held(operands), STEP)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("QLinearSigmoid", {}),
        ("QLinearLeakyRelu", {"alpha": 0.3}),
        ("QLinearGlobalAveragePool", {}),
        ("QLinearGlobalAveragePool", {"channels_last": 1}),
        ("QLinearReduceMean", {"axes": [1, 3], "keepdims": 0}),
        ("QLinearSoftmax", {"opset": 13, "axis": -1}),
        ("QLinearSoftmax", {"opset": 11, "axis": 1}),
        ("QLinearSoftmax", {"opset": 11}),
        ("QLinearAveragePool", {"kernel_shape": [2, 3], "pads": [1, 1, 0, 1]}),
        ("QLinearAveragePool", {"kernel_shape": [2, 2], "channels_last": 1, "strides": [2, 1]}),
    ],
)
def test_on_one_operand(operator: str, attributes: dict[str, Any], dtype: Any) -> None:
    if operator == "QLinearReduceMean":
        pytest.skip("onnxruntime has no such kernel on CPUs")
    zero = 5 if operator != "QLinearSoftmax" else np.iinfo(dtype).min
    step = 1 / 256 if operator == "QLinearSoftmax" else 0.03
    operands = {
        **part("a", integers(0, dtype, 2, 3, 5, 4), 0.02, 3), **result(dtype, step, zero)
    }  # fmt: skip
    assert_as_onnxruntime(
        operator, operands, {"y": KINDS[dtype]}, held(operands), STEP, **attributes
    )


def test_qlinear_concat() -> None:
    operands = {
        **result(np.uint8, 0.05, 9),
        **part("a", integers(0, np.uint8, 2, 3), 0.02, 3),
        **part("b", integers(1, np.uint8, 2, 4), 0.07, 100),
    }
    assert_as_onnxruntime(
        "QLinearConcat", operands, {"y": TensorProto.UINT8}, held(operands), STEP, axis=1
    )


@pytest.mark.parametrize("dtype", KINDS)
def test_qlinear_where(dtype: Any) -> None:
    operands = {
        "condition": np.random.default_rng(2).random((3, 1)) < 0.5,
        **part("a", integers(0, dtype, 3, 5), 0.02, 3),
        **part("b", integers(1, dtype, 5), 0.05, 7),
        **result(dtype, 0.06, 11),
    }
    assert_as_onnxruntime("QLinearWhere", operands, {"y": KINDS[dtype]}, held(operands), STEP)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("columns", [False, True])
def test_dynamic_quantize_matmul(columns: bool, bias: bool) -> None:
    operands = {
        "a": normal(0, 2, 3, 8), "b": integers(1, np.int8, 8, 5),
        "scale": np.abs(normal(2, 5)) if columns else np.array(0.02, np.float32),
        "zero": integers(3, np.int8, 5) // 16 if columns else None,
        "bias": normal(4, 5) if bias else None,
    }  # fmt: skip
    constants = [n for n, a in operands.items() if a is not None and n != "a"]
    assert_as_onnxruntime("DynamicQuantizeMatMul", operands, None, constants, 0.02)


@pytest.mark.parametrize("shape", [(3, 8), (8,)])
@pytest.mark.parametrize("bias", [False, True])
def test_matmul_integer_to_float(bias: bool, shape: tuple[int, ...]) -> None:
    operands = {
        "a": integers(0, np.uint8, *shape), "b": integers(1, np.int8, 8, 5),
        "a_scale": np.array(0.01, np.float32), "b_scale": np.abs(normal(2, 5)),
        "a_zero": np.array(117, np.uint8), "b_zero": np.array(0, np.int8).repeat(5),
        "bias": normal(4, 5) if bias else None,
    }  # fmt: skip
    constants = [n for n, a in operands.items() if a is not None and n not in ("a", "bias")]
    assert_as_onnxruntime("MatMulIntegerToFloat", operands, None, constants, 1e-4)


def test_products_in_half_precision() -> None:
    """onnxruntime has no such kernel on CPUs; the sum is beyond the largest number."""
    operands: dict[str, Array] = {
        "a": np.full((1, 9), 255, np.uint8), "b": np.full((9, 2), 250, np.uint8),
        "a_scale": np.array(2**-12, np.float16), "b_scale": np.array(2**-8, np.float16),
    }  # fmt: skip
    constants = [name for name in operands if name != "a"]
    model = model_of("MatMulIntegerToFloat", operands, {"y": TensorProto.FLOAT16}, constants)
    [got] = run_network(compiled(model), {"a": operands["a"]})
    np.testing.assert_array_equal(got, np.full((1, 2), 9 * 255 * 250 / 2**20, np.float16))


@pytest.mark.parametrize("real", [False, True])
def test_qgemm(real: bool) -> None:
    operands = {
        **part("a", integers(0, np.uint8, 3, 8), 0.02, 118),
        **part("b", integers(1, np.int8, 5, 8), 0.03, 0),
        "c": integers(2, np.int16, 5).astype(np.int32),
        **({} if real else result(np.uint8, 2.0, 31)),
    }
    kind = TensorProto.FLOAT if real else TensorProto.UINT8
    assert_as_onnxruntime(
        "QGemm", operands, {"y": kind}, held(operands), 1e-3 if real else STEP, transB=1
    )


def test_quantize_and_dequantize() -> None:
    operands = {"x": normal(0, 3, 5), **result(np.int16, 0.001, 12)}
    assert_as_onnxruntime(
        "QuantizeLinear", operands, {"y": TensorProto.INT16}, held(operands), STEP
    )
    operands = part("a", integers(0, np.uint16, 3, 5), 0.02, 300)
    assert_as_onnxruntime("DequantizeLinear", operands, None, held(operands))
