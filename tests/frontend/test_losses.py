"""Losses in 16 bits, whose sums are wider, beside numpy's in float64."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from tests.frontend.models import graph_model, node
from tests.graph.executor import compiled, run_network


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_of_16_bits(reduction: str, weighted: bool, rng: np.random.Generator) -> None:
    """A sum of thousands in float16 would be off by percents."""
    held = {"t": rng.integers(0, 5, (7, 601))}
    if weighted:
        held["w"] = rng.uniform(0.5, 1.5, 5).astype(np.float16)
    one = node(
        "SoftmaxCrossEntropyLoss", ["x", *held], ["y", "logs"], reduction=reduction, ignore_index=2
    )
    types = dict.fromkeys(["x", "y", "logs"], TensorProto.FLOAT16)
    model = graph_model([one], {"x": (7, 5, 601)}, ["y", "logs"], held, types=types)
    x = rng.standard_normal((7, 5, 601)).astype(np.float16)
    raised = np.exp(x.astype(np.float64))
    logs = np.log(raised / raised.sum(1, keepdims=True))
    weights = held.get("w", np.ones(5)).astype(np.float64)[held["t"]] * (held["t"] != 2)
    losses = -weights * np.take_along_axis(logs, held["t"][:, None], 1)[:, 0]
    loss = {"none": losses, "sum": losses.sum(), "mean": losses.sum() / weights.sum()}[reduction]
    for got, want in zip(run_network(compiled(model), {"x": x}), (loss, logs), strict=True):
        assert got.dtype == np.float16 and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=2 * 2**-11, atol=2**-12)


def test_what_follows_a_refused_loss_is_checked_all_the_same() -> None:
    """The loss has left constants of its own name behind."""
    labels = np.zeros((1, 4, 2), np.int64)
    loss = node("NegativeLogLikelihoodLoss", ["x", "labels", "w"], ["loss"], reduction="none")
    model = graph_model(
        [loss, node("Selu", ["loss"], ["y"])], {"x": (1, 2, "n", 2)}, ["y"],
        {"labels": labels, "w": np.ones(2, np.float32)}, opset=22,
    )  # fmt: skip
    with pytest.raises(UnsupportedModel, match=r"reach beyond data \(1, 2, n, 2\)"):
        load(model, dims={"n": (1, 9)})
