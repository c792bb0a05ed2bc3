"""Results that differ by a step of rounding, in few elements, are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.measure.check.flips import may_flip, without_flips
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.schedule.state import State
from ansorpy.target import Target

X = placeholder((8, 16), name="X")


@pytest.mark.parametrize(
    ("made", "flips"),
    [
        (compute((8, 16), lambda i, j: b.round(X[i, j]) * 0.5, name="A"), True),
        (compute((8, 16), lambda i, j: X[i, j].astype(DType.INT8), name="B"), True),
        (compute((8, 16), lambda i, j: b.exp(X[i, j]), name="C"), False),
    ],
    ids=["rounds", "casts", "neither"],
)
def test_what_rounds_anywhere_before_the_result_may_flip(made: Tensor, flips: bool) -> None:
    k = reduce_axis(16, name="k")
    total = compute((8,), lambda i: b.sum(made[i, k].astype(DType.FLOAT32), axis=k), name="S")
    assert may_flip(ComputeDAG.of([X, total]), total) == flips


def steps(rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    return rng.integers(0, 256, 4096).astype(np.uint8)


def test_few_elements_one_step_away_are_the_references(rng: np.random.Generator) -> None:
    want = steps(rng)
    got = want.copy()
    got[[7, 4000]] ^= 1
    np.testing.assert_array_equal(without_flips(got, want, 0.0, 0.0), want)
    scaled = without_flips(got * np.float32(0.02), want * np.float32(0.02), 1e-6, 0.0)
    np.testing.assert_array_equal(scaled, want * np.float32(0.02))


def test_many_elements_or_many_steps_are_wrong(rng: np.random.Generator) -> None:
    want = steps(rng)
    many, far = want.copy(), want.copy()
    many[::64] ^= 1
    far[5] ^= 128
    for got in (many, far):
        np.testing.assert_array_equal(without_flips(got, want, 0.0, 0.0), got)


def test_sums_of_floats_that_are_rounded_can_be_measured(tmp_path: Path) -> None:
    """Some of 16,384 sums round to another step in float32 than in the interpreter's float64."""
    a, w = placeholder((128, 1024), name="A"), placeholder((1024, 128), name="W")
    k = reduce_axis(1024, name="k")
    c = compute((128, 128), lambda i, j: b.sum(a[i, k] * w[k, j], axis=k), name="C")
    d = compute((128, 128), lambda i, j: b.round(c[i, j] * 64.0), name="D")
    task = Task(ComputeDAG.of([a, w, d]), Target.host(), 1, name="rounded")
    options = MeasureOptions(lock_folder=tmp_path, check_points=128 * 128)
    with LocalRunner(options) as runner:
        [result] = runner.measure(task, [State.initial(task.dag)], incumbent_s=None)
    assert result.ok, result.reason


def test_a_row_that_a_whole_number_picks_can_be_measured(tmp_path: Path) -> None:
    """log(2) / log(16) * 8 is 2 in float32, and less than 2 if only log(16) is rounded to it."""
    table, log16 = placeholder((32, 3), name="T"), float(np.log(np.float32(16)))

    def row(i: Expr) -> Expr:
        return (b.log(i.astype(DType.FLOAT32) / 8.0) / log16 * 8.0).astype(DType.INT64)

    picked = compute((29, 3), lambda i, j: table[b.maximum(row(i + 1), 0), j], name="P")
    task = Task(ComputeDAG.of([table, picked]), Target.host(), 1, name="picked")
    options = MeasureOptions(lock_folder=tmp_path, check_points=29 * 3)
    with LocalRunner(options) as runner:
        [result] = runner.measure(task, [State.initial(task.dag)], incumbent_s=None)
    assert result.ok, result.reason
