"""The estimate of trials and time before a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ansorpy.cost.bound import least_seconds
from ansorpy.evaluation.trial_plan import plan_table
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import CPU
from ansorpy.schedule.state import State
from ansorpy.tasks.budget import LONGEST_S, Budget
from ansorpy.tasks.pace import Pace
from ansorpy.tasks.trial_plan import Before, before, plan
from tests.rules.algorithms.convolutions import convolution
from tests.search.tasks import TARGET, matmul, scale
from tests.tasks.progress import progress

WEIGHTS = {matmul(512, 512, 512): 3.0, matmul(64, 64, 64): 1.0, scale(64): 1.0}


def test_heavy_tasks_are_promised_most() -> None:
    planned = plan(WEIGHTS, Budget(trials=100))
    heavy, light, tiny = planned.tasks
    assert planned.trials == 100
    assert heavy.share > 0.9 > light.share and heavy.trials > 90
    assert light.trials == tiny.trials == 2
    assert [task.alike for task in planned.tasks] == [2, 2, 1]
    assert sum(task.share for task in planned.tasks) == pytest.approx(1.0)


def test_the_longest_time_limit_has_a_plan_and_rounds() -> None:
    budget = Budget(time_limit_s=LONGEST_S)
    assert plan(WEIGHTS, budget).trials > LONGEST_S
    assert Pace(budget, 1).size(0, [progress(1.0)], LONGEST_S) > 0


def test_a_time_limit_is_used_and_not_exceeded() -> None:
    short, long = (plan(WEIGHTS, Budget(time_limit_s=s)) for s in (30, 300))
    assert short.seconds <= 30 and long.seconds <= 300
    assert 100 < short.trials < long.trials / 5
    assert plan(WEIGHTS, Budget(time_limit_s=0.1)).trials == 3


def test_limits_hold_together() -> None:
    assert plan(WEIGHTS, Budget(trials_per_task=10)).trials == 30
    assert all(t.trials <= 10 for t in plan(WEIGHTS, Budget(trials_per_task=10)).tasks)
    assert plan(WEIGHTS, Budget(trials=7, time_limit_s=300)).trials == 7
    assert plan(WEIGHTS, Budget(trials=1)).tasks[1].trials == 1


def test_earlier_trials_count_and_measured_times_are_believed() -> None:
    heavy, light, tiny = WEIGHTS
    found = {heavy.key: Before(60, 1e-3), light.key: Before(4)}
    planned = plan(WEIGHTS, Budget(trials=100), found)
    assert planned.trials == 36 and plan(WEIGHTS, Budget(trials=50), found).trials == 0
    assert [task.before.trials for task in planned.tasks] == [60, 4, 0]
    # The others are expected to be as far from their rooflines.
    assert planned.tasks[0].share == pytest.approx(plan(WEIGHTS, Budget(trials=1)).tasks[0].share)
    slow = {heavy.key: Before(60, 1e-3), light.key: Before(4, 3e-3)}
    first, second, _ = plan(WEIGHTS, Budget(trials=100), slow).tasks
    assert first.share == pytest.approx(second.share)
    each = plan(WEIGHTS, Budget(trials_per_task=10), found)
    assert [task.trials for task in each.tasks] == [0, 2, 2] and each.trials == 6 + 10


def test_a_database_says_what_was_found_before(tmp_path: Path) -> None:
    task, other = matmul(16, 16, 16), matmul(8, 8, 8)
    with Database(tmp_path / "tune.db") as database:
        state = State.initial(task.dag)
        database.complete(database.start(task, state), MeasureResult(TrialKind.OK, (2e-3,)))
        assert before(database, [task, other]) == {
            task.key: Before(1, 2e-3), other.key: Before(),
        }  # fmt: skip


def test_rooflines_are_of_the_fastest_definition_that_the_search_has() -> None:
    """Winograd has fewer products than the direct definition."""
    dag = ComputeDAG.of(convolution((14, 14), (3, 3), 64, 64, pad=1))
    free, strict = Task(dag, TARGET, 1), Task(dag, TARGET, 1, "strict")
    exact, without = least_seconds(free, dag), replace(CPU, algorithms=())
    least = [planned.least_s for planned in plan({free: 1.0, strict: 1.0}, Budget(trials=1)).tasks]
    ways = SketchSampler(free).definitions
    assert least == [min(least_seconds(free, way.dag) for way in ways), exact]
    assert least[0] < 0.6 * exact
    [only] = plan({free: 1.0}, Budget(trials=1), preset=without).tasks
    assert only.least_s == exact


def test_the_table() -> None:
    table = plan_table(plan(WEIGHTS, Budget(trials=100)))
    assert table.title.startswith("plan: about 100 trials in ")
    assert table.rows[0][:4] == ("0", "matmul_512_512_512", "3", "2")
    assert table.rows[-1][1:3] == ("all", "5") and table.rows[-1][-2:] == ("0", "~100")
    again = plan_table(plan(WEIGHTS, Budget(trials=100), {[*WEIGHTS][1].key: Before(7, 5e-6)}))
    assert [row[-4] for row in again.rows] == ["", "5.0", "", ""]
    assert [row[-2] for row in again.rows] == ["0", "7", "0", "7"]
