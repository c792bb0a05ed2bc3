"""Scatters as formulas equal those that algorithms compute."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from ansorpy.graph.ops import Computed
from ansorpy.graph.passes.compare_places import compare_places
from tests.frontend.models import graph_model, node
from tests.graph.executor import random_feeds, run_network

Shape = tuple[int, ...]


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize(
    ("op_type", "data", "indices", "updates"),
    [
        ("ScatterND", (7, 4), (9, 1), (9, 4)),
        ("ScatterND", (3, 4, 2), (5, 2), (5, 2)),
        ("ScatterElements", (7, 3), (11, 3), (11, 3)),
        ("ScatterElements", (5, 4), (3, 2), (3, 2)),
    ],
)
def test_a_formula_is_the_algorithm(
    op_type: str, data: Shape, indices: Shape, updates: Shape, reduction: str,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    one = node(op_type, ["x", "at", "u"], ["y"], reduction=reduction)
    shapes = {"x": data, "at": indices, "u": updates}
    graph = load(graph_model([one], shapes, ["y"], opset=18, types={"at": TensorProto.INT64}))
    compared = compare_places(graph)
    assert not any(isinstance(made.op, Computed) for made in compared.nodes)
    network = partition(optimize(graph))
    feeds = {**random_feeds(network, rng), "at": rng.integers(-2, 3, indices)}
    [want] = run_network(network, feeds)
    [got] = run_network(partition(optimize(compared)), feeds)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_what_compares_too_much_stays_an_algorithm() -> None:
    one = node("ScatterND", ["x", "at", "u"], ["y"])
    shapes: dict[str, Shape] = {"x": (1 << 20,), "at": (1 << 14, 1), "u": (1 << 14,)}
    graph = load(graph_model([one], shapes, ["y"], types={"at": TensorProto.INT64}))
    assert any(isinstance(made.op, Computed) for made in compare_places(graph).nodes)
