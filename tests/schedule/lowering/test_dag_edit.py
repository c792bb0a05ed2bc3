"""Replacing operators of a definition."""

from __future__ import annotations

import numpy as np

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import ComputeOp, compute, placeholder
from ansorpy.schedule.lowering.dag_edit import replace_ops, with_body


def test_stages_of_a_replacement_get_free_names(rng: np.random.Generator) -> None:
    x, w = placeholder((4,), name="x"), placeholder((4,), name="y.part")
    y = compute((4,), lambda i: (x[i] + w[i]) * 2.0, name="y")
    z = compute((4,), lambda i: y[i] + w[i], name="z")
    dag = ComputeDAG.of([x, w, z])
    part = compute((4,), lambda i: x[i] + w[i], name="y.part")
    again = compute((4,), lambda i: part[i] * 1.0, name="y.part")
    assert isinstance(y, ComputeOp)
    [i] = y.axes
    replaced, became = replace_ops(dag, {y: with_body(y, again[i] * 2.0)})
    assert [op.name for op in replaced.computes] == ["y.part.1", "y.part.2", "y", "z"]
    assert became[y].name == "y"
    feeds = {name: rng.normal(size=4).astype(np.float32) for name in ("x", "y.part")}
    for got, want in zip(run_dag(replaced, feeds), run_dag(dag, feeds), strict=True):
        np.testing.assert_array_equal(got, want)
