"""The rectangles of the memory plan: every value of the arena, and no two at the same place."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import ansorpy as ap
from ansorpy.evaluation.page.arena import arena_values
from tests.frontend.models import graph_model, node


def test_values_that_live_at_once_lie_apart(tmp_path: Path, rng: np.random.Generator) -> None:
    layers = [node("MatMul", [f"x{n}", "w"], [f"x{n + 1}"]) for n in range(4)]
    layers.append(node("Add", ["x4", "x1"], ["y"]))
    weights = {"w": rng.normal(size=(16, 16)).astype(np.float32)}
    model = graph_model(layers, {"x0": (5, 16)}, ["y"], weights)
    compiled = ap.compile(model, effort="none", db=tmp_path / "t.db")
    values = arena_values(compiled.plan)
    assert values and max(v.end for v in values) <= compiled.plan.arena_bytes
    assert {v.first for v in values} == set(range(len(compiled.plan.steps) - 1))
    for at, one in enumerate(values):
        assert (
            one.first <= one.last < len(compiled.plan.steps) and one.end - one.start == 5 * 16 * 4
        )
        for other in values[at + 1 :]:
            if other.first < one.last:
                assert not one.shares_bytes(other.start, other.end)
