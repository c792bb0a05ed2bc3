"""Curves fall with the best times, and end at the best programs."""

from __future__ import annotations

from math import inf

import pytest

from ansorpy.evaluation.page.curves import called, network_curves, task_curve
from ansorpy.evaluation.page.recorded_run import recorded_run
from ansorpy.measure.records.database import Database
from tests.evaluation.page.conftest import CALLS, TASKS


def test_the_curve_of_a_task(database: Database) -> None:
    run = recorded_run(database)
    for number in range(len(TASKS)):
        mine = run.of(number)
        points, first_s = task_curve(mine)
        correct = [m.record for m in mine if m.record.ok]
        assert first_s == correct[0].median_s
        assert points[-1].trials == sum(not m.is_again for m in mine)
        best = run.best(database)[number]
        assert best is not None and points[-1].best_s == best.median_s


def test_the_curve_of_a_network_is_the_sum_of_its_calls(database: Database) -> None:
    run = recorded_run(database)
    [curve] = network_curves(run)
    best = [record.median_s or inf for record in run.best(database) if record is not None]
    first = [task_curve(run.of(number))[1] or inf for number in range(len(TASKS))]
    assert curve.best_s == pytest.approx(sum(n * s for n, s in zip(CALLS, best, strict=True)))
    assert curve.first_s == pytest.approx(sum(n * s for n, s in zip(CALLS, first, strict=True)))
    assert curve.points[-1].trials == 30
    [network] = run.networks
    assert called(run, network, best) == list(CALLS)


def test_nothing_measured() -> None:
    assert task_curve([]) == ([], None)
