"""GRUs and plain recurrent networks of all forms against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from tests.frontend.models import graph_model, node
from tests.graph.executor import Array, assert_same_as_onnxruntime, compiled, run_network
from tests.peer import peer

STEPS, BATCH = 4, 3


def recurrent(
    kind: str,
    *,
    directions: int = 1,
    bias: bool = True,
    initial: bool = False,
    lengths: Array | None = None,
    outputs: tuple[str, ...] = ("y", "h"),
    steps: int = STEPS,
    size: int = 0,
    opset: int = 17,
    **attributes: Any,
) -> ModelProto:
    """*initial* states are inputs, all weights constants; *size* is that of inputs and states."""
    rng = np.random.default_rng(7)
    taken, hidden = (size, size) if size else (5, 6)
    gates = 3 if kind == "GRU" else 1

    def weight(*shape: int) -> Array:
        return rng.standard_normal(shape).astype(np.float32) / 2

    constants = {
        "w": weight(directions, gates * hidden, taken),
        "r": weight(directions, gates * hidden, hidden),
    }
    if bias:
        constants["b"] = weight(directions, 2 * gates * hidden)
    if lengths is not None:
        constants["n"] = lengths
    inputs: dict[str, Any] = {"x": (steps, BATCH, taken)}
    if initial:
        inputs["h0"] = (directions, BATCH, hidden)
    given = [n if n in constants or n in inputs else "" for n in ("x", "w", "r", "b", "n", "h0")]
    names = [name if name in outputs else "" for name in "yh"]
    one = node(kind, given, names, hidden_size=hidden, **attributes)
    return graph_model([one], inputs, list(outputs), constants, opset)


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "no_bias": {"bias": False},
    "reverse": {"direction": "reverse"},
    "bidirectional": {"direction": "bidirectional", "directions": 2},
    "initial": {"initial": True, "direction": "bidirectional", "directions": 2},
    "clip": {"clip": 0.3, "initial": True},
    "lengths": {"lengths": np.full(BATCH, STEPS, np.int32)},
    "one_step": {"steps": 1},
    "one_step_initial": {"steps": 1, "initial": True},
    "last_only": {"outputs": ("h",)},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("behind", [0, 1])
def test_a_gru_equals_onnxruntime(case: str, behind: int) -> None:
    model = recurrent("GRU", linear_before_reset=behind, **CASES[case])
    assert_same_as_onnxruntime(model, np.random.default_rng(8))


@pytest.mark.parametrize("case", CASES)
def test_a_plain_network_equals_onnxruntime(case: str) -> None:
    assert_same_as_onnxruntime(recurrent("RNN", **CASES[case]), np.random.default_rng(8))


@pytest.mark.parametrize(("kind", "names"), [("GRU", ["Tanh", "Softsign"]), ("RNN", ["Relu"])])
def test_other_activations(kind: str, names: list[str]) -> None:
    assert_same_as_onnxruntime(recurrent(kind, activations=names), np.random.default_rng(8))


ALPHA: dict[str, Any] = {"activation_alpha": [0.3]}
BOTH: dict[str, Any] = ALPHA | {"activation_beta": [0.4]}


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", ["GRU", "RNN"])
def test_lengths_of_sequences_may_be_data(
    kind: str, direction: str, rng: np.random.Generator
) -> None:
    directions = 2 if direction == "bidirectional" else 1
    model = recurrent(kind, direction=direction, directions=directions, initial=True)
    model.graph.node[0].input[4] = "n"
    info = helper.make_tensor_value_info("n", TensorProto.INT32, [BATCH])
    model.graph.input.append(info)
    feeds = {
        "x": rng.standard_normal((STEPS, BATCH, 5), np.float32),
        "h0": rng.standard_normal((directions, BATCH, 6), np.float32),
        "n": np.asarray([2, STEPS, 1], np.int32),
    }
    wanted = peer(model).run(None, feeds)
    for got, want in zip(run_network(compiled(model), feeds), wanted, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-5)


@pytest.mark.parametrize(("name", "given"), [
    ("Affine", BOTH), ("Elu", {}), ("Elu", ALPHA), ("HardSigmoid", {}), ("HardSigmoid", ALPHA),
    ("HardSigmoid", BOTH), ("LeakyRelu", {}), ("LeakyRelu", ALPHA), ("ScaledTanh", BOTH),
    ("ThresholdedRelu", ALPHA),
])  # fmt: skip
def test_activations_with_parameters(name: str, given: dict[str, Any]) -> None:
    model = recurrent("RNN", activations=[name], **given)
    assert_same_as_onnxruntime(model, np.random.default_rng(8))


def test_steps_are_few_kernels_and_the_same_tasks() -> None:
    few, many = (
        assert_same_as_onnxruntime(
            recurrent("GRU", steps=n, outputs=("y",), size=16, linear_before_reset=1),
            np.random.default_rng(8),
        )
        for n in (3, 9)
    )
    assert len(many.workloads()) == len(few.workloads()) <= 5
    assert len(many.calls) == 1 + 2 * 9 - 1, "a product and one kernel a step"


@pytest.mark.parametrize(
    ("arguments", "blame"),
    [
        ({"direction": "sideways"}, "direction=sideways"),
        ({"activations": ["Sigmoid", "Affine"]}, "activations"),
        ({"activations": ["Sigmoid", "Cosine"]}, "activations"),
    ],
)
def test_what_is_not_computed_is_named(arguments: dict[str, Any], blame: str) -> None:
    with pytest.raises(UnsupportedModel) as caught:
        load(recurrent("GRU", **arguments))
    assert blame in caught.value.rows[0].attribute
