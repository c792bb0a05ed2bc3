"""Tuners as processes: two on one database.

What kills and other faults do to them is a campaign: ``python -m tests.campaigns faults``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns.faults.checks import Kept, done
from tests.campaigns.faults.processes import ended, start


@pytest.mark.parametrize("seeds", [(1, 2), (1, 1)], ids=["two-seeds", "one-seed"])
def test_two_tuners_on_one_database_finish_with_both_sets_of_rows(
    tmp_path: Path, seeds: tuple[int, int]
) -> None:
    path = tmp_path / "tune.db"
    tuners = [start(path, 4, seed) for seed in seeds]
    for tuner in tuners:
        ended(tuner)
    Kept(path).check()
    # Each counts the other's only where it wanted the same program.
    assert 4 <= len(done(path)) <= 8
