"""Candidates in C: built, checked and timed like object code, here only."""

from __future__ import annotations

import pytest

from ansorpy.errors import UsageError
from ansorpy.ir.task import Task
from ansorpy.measure.machines import open_machines
from ansorpy.measure.result import TrialKind
from ansorpy.measure.run.runner import MeasureOptions
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests import workloads
from tests.codegen.c.compiled import needs_cc, needs_openmp


@needs_cc
@pytest.mark.parametrize("name", ["c", pytest.param("c:cores=2", marks=needs_openmp)])
def test_candidates_are_checked_and_timed(name: str, rng) -> None:
    target = Target.parse(name)
    task = Task(State.initial(workloads.matmul(17, 13, 29)).definition, target, target.cores)
    sketches = SketchSampler(task).draw(2, rng)
    tables = [s.sample(16, rng) for s in sketches]
    states = [s.resolve(t[s.valid(t)][0]) for s, t in zip(sketches, tables, strict=True)]
    with open_machines("local", MeasureOptions(builders=1), target) as runner:
        results = runner.measure(task, [State.initial(task.dag), *states], incumbent_s=None)
        assert [r.kind for r in results] == [TrialKind.OK] * 3, [r.reason for r in results]
        retimed = runner.retime(task, states)
    assert retimed is not None and all(r.ok for r in retimed)


def test_a_cluster_does_not_time_c() -> None:
    with pytest.raises(UsageError, match="a cluster does not compile C"):
        open_machines("ray://head:10001", MeasureOptions(), Target.parse("c"))
