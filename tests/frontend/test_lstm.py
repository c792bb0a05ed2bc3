"""LSTMs of all forms against onnxruntime, and how few kernels they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from tests.frontend.models import graph_model, node
from tests.graph.executor import Array, assert_same_as_onnxruntime

STEPS, BATCH, SIZE, HIDDEN = 4, 3, 5, 6


def lstm(
    *,
    directions: int = 1,
    bias: bool = True,
    initial: bool = False,
    peepholes: bool = False,
    lengths: Array | None = None,
    outputs: tuple[str, ...] = ("y", "h", "c"),
    steps: int = STEPS,
    opset: int = 17,
    **attributes: Any,
) -> ModelProto:
    """*initial* states are inputs, all weights constants."""
    rng = np.random.default_rng(7)

    def weight(*shape: int) -> Array:
        return rng.standard_normal(shape).astype(np.float32) / 2

    batch_first = attributes.get("layout") == 1
    x = (BATCH, steps, SIZE) if batch_first else (steps, BATCH, SIZE)
    state = (BATCH, directions, HIDDEN) if batch_first else (directions, BATCH, HIDDEN)
    constants = {
        "w": weight(directions, 4 * HIDDEN, SIZE), "r": weight(directions, 4 * HIDDEN, HIDDEN)
    }  # fmt: skip
    if bias:
        constants["b"] = weight(directions, 8 * HIDDEN)
    if peepholes:
        constants["p"] = weight(directions, 3 * HIDDEN)
    if lengths is not None:
        constants["n"] = lengths
    inputs = {"x": x} | (dict.fromkeys(("h0", "c0"), state) if initial else {})
    operands = ["x", "w", "r", *(["b", "n", "h0", "c0", "p"])]
    given = [name if name in constants or name in inputs else "" for name in operands]
    names = [name if name in outputs else "" for name in "yhc"]
    one = node("LSTM", given, names, hidden_size=HIDDEN, **attributes)
    return graph_model([one], inputs, list(outputs), constants, opset)


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "no_bias": {"bias": False},
    "reverse": {"direction": "reverse"},
    "bidirectional": {"direction": "bidirectional", "directions": 2},
    "initial": {"initial": True, "direction": "bidirectional", "directions": 2},
    "peepholes": {"peepholes": True, "initial": True},
    "clip": {"clip": 0.3, "peepholes": True},
    "activations": {"activations": ["Tanh", "Softsign", "relu"]},
    "lengths": {"lengths": np.full(BATCH, STEPS, np.int32)},
    "one_step": {"steps": 1},
    "last_only": {"outputs": ("h",)},
    "cell_only": {"outputs": ("c",), "direction": "reverse"},
}


@pytest.mark.parametrize("case", CASES)
def test_an_lstm_equals_onnxruntime(case: str) -> None:
    assert_same_as_onnxruntime(lstm(**CASES[case]), np.random.default_rng(8))


def test_all_steps_but_the_first_share_their_product() -> None:
    network = assert_same_as_onnxruntime(lstm(steps=9, outputs=("h",)), np.random.default_rng(8))
    products = [w.weight for w in network.workloads() if "matmul" in w.name]
    assert sorted(products) == [1, 8], "one of all inputs, one with each state"


@pytest.mark.parametrize(
    ("arguments", "blame"),
    [
        ({"input_forget": 1}, "input_forget=1"),
        ({"activations": ["Sigmoid", "Tanh", "Affine"]}, "activations"),
        ({"lengths": np.asarray([4, 2, 4], np.int32)}, "sequence_lens"),
    ],
)
def test_what_is_not_computed_is_named(arguments: dict[str, Any], blame: str) -> None:
    with pytest.raises(UnsupportedModel) as caught:
        load(lstm(**arguments))
    assert blame in caught.value.rows[0].attribute
