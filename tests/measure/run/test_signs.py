"""Inputs are positive where a sum that cancels would have no right digits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Expr
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.measure.run.inputs import drawn_inputs
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.measure.run.signs import positive_inputs
from ansorpy.schedule.state import State
from ansorpy.target import Target

A, W = placeholder((37, 64), name="A"), placeholder((64, 11), name="W")
K = reduce_axis(64, name="k")
SUM = compute((37, 11), lambda i, j: b.sum(A[i, K] * W[K, j], axis=K), name="S")
SQUARES = compute((37,), lambda i: b.sum(A[i, K] * A[i, K], axis=K), name="Q")
EXPS = compute((37,), lambda i: b.sum(b.exp(A[i, K]), axis=K), name="E")


def mel(i: Expr, j: Expr) -> Expr:
    return b.log(b.maximum(SUM[i, j], 1e-10))


@pytest.mark.parametrize(
    ("made", "positive"),
    [
        (compute((37, 11), mel, name="logs"), {"A", "W"}),
        (compute((37, 11), lambda i, j: A[i, j] / (SUM[i, j] + 1.0), name="quotients"), {"A", "W"}),
        (compute((37, 11), lambda i, j: SUM[i, j] / 8.0, name="scaled"), set()),
        (compute((37,), lambda i: b.log(SQUARES[i] + 1.0), name="powers"), set()),
        (compute((37, 64), lambda i, j: b.exp(A[i, j]) / EXPS[i], name="softmax"), set()),
    ],
    ids=lambda made: getattr(made, "name", ""),
)
def test_which_inputs_are_positive(made: Tensor, positive: set[str]) -> None:
    dag = ComputeDAG([made])
    assert positive_inputs(dag) == positive
    for op, values in drawn_inputs(dag, 0):
        assert bool((values.astype(np.float64) >= 0).all()) is (op.name in positive)


def test_a_logarithm_of_products_can_be_measured(tmp_path: Path) -> None:
    logs = compute((37, 11), mel, name="logs")
    task = Task(ComputeDAG.of([A, W, logs]), Target.host(), 1, name="mel")
    options = MeasureOptions(lock_folder=tmp_path, check_points=37 * 11)
    with LocalRunner(options) as runner:
        [result] = runner.measure(task, [State.initial(task.dag)], incumbent_s=None)
    assert result.ok, result.reason
