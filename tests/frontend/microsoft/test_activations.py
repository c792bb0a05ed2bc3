"""Activations and fused products of com.microsoft beside onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from tests.frontend.microsoft.beside import Array, assert_as_onnxruntime, both, model_of, normal
from tests.graph.executor import run_network


@pytest.mark.parametrize("operator", ["BiasGelu", "FastGelu", "Gelu", "QuickGelu"])
def test_gelus(operator: str) -> None:
    operands = {"x": normal(0, 2, 3, 7)}
    if operator in ("BiasGelu", "FastGelu"):
        operands["bias"] = normal(1, 7)
    assert_as_onnxruntime(operator, operands, tolerance=1e-4)


def test_fast_gelu_without_bias() -> None:
    assert_as_onnxruntime("FastGelu", {"x": normal(0, 5, 3)}, tolerance=1e-4)


@pytest.mark.parametrize(
    ("activation", "parameters"),
    [
        ("Relu", ()), ("Tanh", ()), ("Sigmoid", ()), ("LeakyRelu", (0.2,)),
        ("Clip", (-0.5, 1.0)), ("HardSigmoid", (0.3, 0.4)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("added", [False, True])
def test_fused_conv(activation: str, parameters: tuple[float, ...], added: bool) -> None:
    operands = {
        "x": normal(0, 1, 3, 7, 5), "w": normal(1, 4, 3, 3, 3), "b": normal(2, 4),
        "z": normal(3, 1, 4, 7, 5) if added else None,
    }  # fmt: skip
    given: dict[str, Any] = {"activation_params": list(parameters)} if parameters else {}
    assert_as_onnxruntime(
        "FusedConv", operands, activation=activation, pads=[1, 1, 1, 1], tolerance=1e-4, **given
    )


@pytest.mark.parametrize(
    ("activation", "parameters"),
    [
        ("LeakyRelu", {"alpha": 0.3}), ("Selu", {"alpha": 1.5, "gamma": 1.25}), ("Softplus", {}),
        ("Softsign", {}), ("ThresholdedRelu", {"alpha": 0.4}),
    ],
)  # fmt: skip
def test_fused_gemm(activation: str, parameters: Mapping[str, float]) -> None:
    operands = {"a": normal(0, 5, 3), "b": normal(1, 7, 5), "c": normal(2, 7)}
    given: dict[str, Any] = {f"activation_{name}": v for name, v in parameters.items()}
    assert_as_onnxruntime(
        "FusedGemm", operands, transA=1, transB=1, alpha=0.5, activation=activation, **given
    )


@pytest.mark.parametrize(
    ("a", "b", "attributes"),
    [
        ((2, 3, 5), (2, 5, 4), {"alpha": 0.25}),
        ((2, 5, 3), (2, 4, 5), {"transA": 1, "transB": 1}),
        ((3, 2, 5), (2, 5, 4), {"transBatchA": 1}),
        ((3, 2, 1, 5), (2, 1, 4, 5), {"transBatchA": 1, "transB": 1}),
        ((5,), (5, 4), {}),
    ],
)
def test_fused_matmul(a: tuple[int, ...], b: tuple[int, ...], attributes: dict[str, Any]) -> None:
    assert_as_onnxruntime("FusedMatMul", {"a": normal(0, *a), "b": normal(1, *b)}, **attributes)


def test_an_unknown_activation_is_refused() -> None:
    operands = {"x": normal(0, 1, 3, 7, 5), "w": normal(1, 4, 3, 3, 3)}
    with pytest.raises(UnsupportedModel, match="activation=ScaledTanh"):
        load(model_of("FusedConv", operands, {"y": 1}, activation="ScaledTanh"))


def test_products_with_an_activation() -> None:
    """onnxruntime has them on GPUs only: the same as FusedMatMul and an activation."""
    a, b = normal(0, 2, 5, 3), normal(1, 2, 5, 4)
    given: dict[str, Any] = {"transA": 1, "alpha": 0.5}
    _, (want,) = both("FusedMatMul", {"a": a, "b": b}, {"y": TensorProto.FLOAT}, **given)
    got = found(
        "FusedMatMulActivation", {"a": a, "b": b}, activation="LeakyRelu", activation_alpha=0.3,
        **given,
    )  # fmt: skip
    np.testing.assert_allclose(got, np.where(want > 0, want, 0.3 * want), rtol=1e-4, atol=1e-5)


def test_some_parameters_may_be_usual_ones() -> None:
    a, b = normal(0, 5, 3), normal(1, 3, 4)
    got = found(
        "FusedMatMulActivation", {"a": a, "b": b}, activation="HardSigmoid", activation_beta=0.3
    )
    np.testing.assert_allclose(got, np.clip(0.2 * (a @ b) + 0.3, 0, 1), rtol=1e-4, atol=1e-5)


def test_products_with_a_gelu() -> None:
    x, w, bias = normal(0, 2, 5, 3), normal(1, 3, 4), normal(2, 4)
    _, (want,) = both("FastGelu", {"x": x @ w, "bias": bias}, {"y": TensorProto.FLOAT})
    got = found("GemmFastGelu", {"x": x, "w": w, "bias": bias})
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_sums_of_three() -> None:
    operands = {"x": normal(0, 2, 5, 8), "bias": normal(1, 8), "skip": normal(2, 2, 5, 8)}
    np.testing.assert_allclose(found("BiasAdd", operands), sum(operands.values()), rtol=1e-5)


def test_gated_sums() -> None:
    operands = {"x": normal(0, 2, 5, 8), "z": normal(1, 2, 5, 8), "gate": normal(2, 2, 5, 1)}
    want = operands["x"] + operands["z"] * operands["gate"]
    np.testing.assert_allclose(found("GatedAdd", operands), want, rtol=1e-5, atol=1e-6)


def test_gates_of_linear_attention() -> None:
    operands = {"a": normal(0, 2, 5, 3), "bias": normal(1, 3), "scale": -np.abs(normal(2, 3))}
    operands["b"] = normal(3, 2, 5, 3)
    outputs = {"decay": TensorProto.FLOAT, "rate": TensorProto.FLOAT}
    model = model_of("LinearAttentionGate", operands, outputs)
    decay, rate = run_network(partition(optimize(load(model))), operands)
    want = operands["scale"] * np.log1p(np.exp(operands["a"] + operands["bias"]))
    np.testing.assert_allclose(decay, want, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(rate, 1 / (1 + np.exp(-operands["b"])), rtol=1e-5)


def found(operator: str, operands: dict[str, Array], **attributes: Any) -> Array:
    model = model_of(operator, operands, {"y": TensorProto.FLOAT}, **attributes)
    return run_network(partition(optimize(load(model))), operands)[0]
