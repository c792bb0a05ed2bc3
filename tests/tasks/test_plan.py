"""What a run is expected to do."""

from __future__ import annotations

import pytest

from ansorpy.report.plan import plan_table
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.plan import plan
from tests.search.tasks import matmul, scale

WEIGHTS = {matmul(512, 512, 512): 3.0, matmul(64, 64, 64): 1.0, scale(64): 1.0}


def test_heavy_tasks_are_promised_most() -> None:
    planned = plan(WEIGHTS, Budget(trials=100))
    heavy, light, tiny = planned.tasks
    assert planned.trials == 100
    assert heavy.share > 0.9 > light.share and heavy.trials > 90
    assert light.trials == tiny.trials == 2
    assert [task.alike for task in planned.tasks] == [2, 2, 1]
    assert sum(task.share for task in planned.tasks) == pytest.approx(1.0)


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


def test_the_table() -> None:
    table = plan_table(plan(WEIGHTS, Budget(trials=100)))
    assert table.title.startswith("plan: about 100 trials in ")
    assert table.rows[0][:4] == ("0", "matmul_512_512_512", "3", "2")
    assert table.rows[-1][1:3] == ("all", "5") and table.rows[-1][-1] == "~100"
