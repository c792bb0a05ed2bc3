"""Tuners as processes: several on one database.

What kills and other faults do to them is a campaign: ``python -m tests.campaigns faults``.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.campaigns.faults.checks import Kept, decided, done
from tests.campaigns.faults.processes import ended, start


def test_tuners_on_one_database_finish_with_the_rows_of_all(tmp_path: Path) -> None:
    """The other tunes longer, so that it adds some even if it starts when the first has ended."""
    path = tmp_path / "tune.db"
    tuners = [start(path, trials, seed) for seed, trials in ((1, 3), (2, 6))]
    promised = [ended(tuner)[0] for tuner in tuners]
    Kept(path).check(max(promised))
    runs = [told(path, run) for run in (1, 2)]
    assert set(done(path)) == runs[0] | runs[1]
    assert sorted(promised) == [3, 6] and all(runs) and runs[0] != runs[1]


def told(path: Path, run: int) -> set[int]:
    """The results that number *run* was told."""
    bodies = [json.loads(body) for kind, body in decided(path, run) if kind == "tell"]
    return {number for body in bodies for number in body["results"]}
