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

STEPS, BATCH = 4, 3


def lstm(
    *,
    directions: int = 1,
    bias: bool = True,
    initial: bool = False,
    peepholes: bool = False,
    lengths: Array | None = None,
    outputs: tuple[str, ...] = ("y", "h", "c"),
    steps: int = STEPS,
    size: int = 0,
    opset: int = 17,
    **attributes: Any,
) -> ModelProto:
    """*initial* states are inputs, all weights constants; *size* is that of inputs and states."""
    rng = np.random.default_rng(7)
    taken, hidden = (size, size) if size else (5, 6)

    def weight(*shape: int) -> Array:
        return rng.standard_normal(shape).astype(np.float32) / 2

    batch_first = attributes.get("layout") == 1
    x = (BATCH, steps, taken) if batch_first else (steps, BATCH, taken)
    state = (BATCH, directions, hidden) if batch_first else (directions, BATCH, hidden)
    constants = {
        "w": weight(directions, 4 * hidden, taken), "r": weight(directions, 4 * hidden, hidden)
    }  # fmt: skip
    if bias:
        constants["b"] = weight(directions, 8 * hidden)
    if peepholes:
        constants["p"] = weight(directions, 3 * hidden)
    if lengths is not None:
        constants["n"] = lengths
    inputs = {"x": x} | (dict.fromkeys(("h0", "c0"), state) if initial else {})
    operands = ["x", "w", "r", *(["b", "n", "h0", "c0", "p"])]
    given = [name if name in constants or name in inputs else "" for name in operands]
    names = [name if name in outputs else "" for name in "yhc"]
    one = node("LSTM", given, names, hidden_size=hidden, **attributes)
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
    "parameters": {
        "directions": 2, "direction": "bidirectional",
        "activations": ["HardSigmoid", "LeakyRelu", "Tanh", "Sigmoid", "HardSigmoid", "Elu"],
        "activation_alpha": [0.3, 0.1, 0.25, 0.7], "activation_beta": [0.4, 0.45],
    },
    "lengths": {"lengths": np.full(BATCH, STEPS, np.int32)},
    "some_lengths": {"lengths": np.asarray([4, 1, 3], np.int32), "peepholes": True},
    "lengths_both_ways": {
        "lengths": np.asarray([2, 4, 1], np.int32), "initial": True,
        "direction": "bidirectional", "directions": 2,
    },
    "coupled": {"input_forget": 1, "initial": True},
    "one_step": {"steps": 1},
    "last_only": {"outputs": ("h",)},
    "cell_only": {"outputs": ("c",), "direction": "reverse"},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_an_lstm_equals_onnxruntime(case: str) -> None:
    assert_same_as_onnxruntime(lstm(**CASES[case]), np.random.default_rng(8))


LOOPS = ("some_lengths", "lengths_both_ways", "last_only", "cell_only")
"""Cases whose loops differ: in order, in what is carried, and in what is kept."""


@pytest.mark.parametrize("case", LOOPS)
def test_many_steps_are_a_loop(case: str) -> None:
    network = assert_same_as_onnxruntime(lstm(**CASES[case], steps=257), np.random.default_rng(8))
    assert network.controls and len(network.calls) < 40


def test_steps_are_few_kernels_and_the_same_tasks() -> None:
    few, many = (
        assert_same_as_onnxruntime(lstm(steps=n, outputs=("y",), size=16), np.random.default_rng(8))
        for n in (3, 9)
    )
    assert len(many.workloads()) == len(few.workloads()) <= 6
    # The first step has no product; the last one's cell is in the kernel of its hidden state.
    assert len(many.calls) == 1 + 3 * 9 - 2, "nothing is copied"
    weights = [id(a) for c in many.calls for a in c.constants.values() if a.shape == (16, 64)]
    assert len(set(weights)) == 2, "one for the inputs, one for all states"


def test_activations_without_their_parameters_are_named() -> None:
    with pytest.raises(UnsupportedModel) as caught:
        load(lstm(activations=["Sigmoid", "Tanh", "Affine"]))
    assert "activations" in caught.value.rows[0].attribute
