"""Tuners as processes: killed at random moments, and two on one database."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tasks.kills import intact, kill_at_random, start
from tests.tasks.tuner import done


def test_kills_lose_nothing_and_leave_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "tune.db")
    lines = kill_at_random(path, kills=3, trials=16, longest_s=2.5, seed=1)
    assert lines[-1] == "finished: 16 trials in 4 runs, budget 16"


@pytest.mark.parametrize("seeds", [(1, 2), (1, 1)], ids=["two-seeds", "one-seed"])
def test_two_tuners_on_one_database_finish_with_both_sets_of_rows(
    tmp_path: Path, seeds: tuple[int, int]
) -> None:
    path = str(tmp_path / "tune.db")
    tuners = [start(path, 6, seed) for seed in seeds]
    for tuner in tuners:
        tuner.communicate(timeout=120)
        assert tuner.returncode == 0
    rows = done(path)
    programs = {row[:3] for row in rows.values()}
    # Each counts the other's only where it wanted the same program.
    assert 6 <= len(rows) <= 12 and len(programs) == len(rows) and intact(path)
