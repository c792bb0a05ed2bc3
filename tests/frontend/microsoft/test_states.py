"""Recurrences and convolutions with a state of com.microsoft beside onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from tests.frontend.microsoft.beside import assert_as_onnxruntime, model_of, normal

OUTPUTS = {"y": TensorProto.FLOAT, "state": TensorProto.FLOAT}


@pytest.mark.parametrize("activation", ["none", "silu"])
@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("places", [1, 7])
def test_convolutions_that_continue(places: int, bias: bool, past: bool, activation: str) -> None:
    operands = {
        "x": normal(0, 2, 3, places), "w": normal(1, 3, 1, 4), "b": normal(2, 3) if bias else None,
        "past": normal(3, 2, 3, 3) if past else None,
    }  # fmt: skip
    assert_as_onnxruntime(
        "CausalConvWithState", operands, OUTPUTS, ["w"], 1e-4, activation=activation, ndim=1
    )


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("heads", [2, 4])
@pytest.mark.parametrize("past", [False, True])
def test_linear_attention(past: bool, heads: int, rule: str) -> None:
    """Heads of queries may share those of keys and values."""
    rows, size, shared = 5, 8, 2
    operands = {
        "q": normal(0, 1, rows, heads * size), "k": 0.3 * normal(1, 1, rows, shared * size),
        "v": normal(2, 1, rows, shared * size),
        "past": normal(3, 1, shared, size, size) if past else None,
        "decay": -np.abs(normal(4, 1, rows, shared)) if "gated" in rule else None,
        "beta": 1 / (1 + np.exp(normal(5, 1, rows, shared))) if "delta" in rule else None,
    }  # fmt: skip
    assert_as_onnxruntime(
        "LinearAttention", operands, OUTPUTS, (), 1e-4, update_rule=rule, q_num_heads=heads,
        kv_num_heads=shared,
    )  # fmt: skip


def test_a_window_of_states_is_refused() -> None:
    operands = {"x": normal(0, 2, 3, 5), "w": normal(1, 3, 1, 4)}
    model = model_of("CausalConvWithState", operands, OUTPUTS, state_window=2)
    with pytest.raises(UnsupportedModel, match="state_window=2"):
        load(model)
