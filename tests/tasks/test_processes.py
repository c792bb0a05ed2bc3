"""Tuners as processes: several on one database.

What kills and other faults do to them is a campaign: ``python -m tests.campaigns faults``.
"""

from __future__ import annotations

from pathlib import Path

from tests.campaigns.faults.checks import Kept, done
from tests.campaigns.faults.processes import ended, start


def test_tuners_on_one_database_finish_with_the_rows_of_all(tmp_path: Path) -> None:
    """Two of them want the same programs."""
    path = tmp_path / "tune.db"
    tuners = [start(path, 4, seed) for seed in (1, 1, 2)]
    for tuner in tuners:
        ended(tuner)
    Kept(path).check()
    # Each counts another's only where it wanted the same program.
    assert 4 <= len(done(path)) <= 12
