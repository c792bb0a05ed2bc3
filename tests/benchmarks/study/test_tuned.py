"""Tuning for a study: curves that fall, and records that can be timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansorpy.measure.records.database import Database
from benchmarks.race.contestant import ANSOR
from benchmarks.study.tuned import Limit, Subject, reached_s, tuned


def test_an_operator_is_tuned(tmp_path: Path) -> None:
    subject = Subject("CALL.16", 1, tmp_path)
    found = tuned(subject, ANSOR.parts, Limit(trials=3), 0, "live/3t/CALL")
    points = found["points"]
    assert [ms for _, _, ms in points] == sorted((ms for _, _, ms in points), reverse=True)
    assert found["trials"] <= 3 and points[-1][2] == found["best_ms"]
    db = subject.records("live/3t/CALL")
    assert db.name == found["records"] == "CALL.16.live-3t-CALL.db"
    with Database(db) as database:
        [task] = database.tasks()
        assert database.trials(task.key) == found["trials"]


def test_subjects() -> None:
    assert Subject("ATT.128x12x64", 1, Path()).is_operator
    assert Subject("C2D.56x56.64-64.k3s1.b1", 1, Path()).is_operator
    assert not Subject("resnet50.b16", 1, Path()).is_operator


@pytest.mark.parametrize(("goal", "wanted"), [(3.0, (1.0, 4)), (1.0, (9.0, 30)), (0.5, None)])
def test_when_a_goal_was_reached(goal: float, wanted: tuple[float, int] | None) -> None:
    assert reached_s([(1.0, 4, 2.0), (5.0, 8, 1.5), (9.0, 30, 1.0)], goal) == wanted


def test_limits_are_part_of_keys() -> None:
    assert [Limit(30.0).text, Limit(trials=64).text, Limit(trials_per_task=8).text] == [
        "30s", "64t", "8p",
    ]  # fmt: skip
