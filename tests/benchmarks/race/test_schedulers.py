"""Schedulers are replayed on what a run recorded, without tuning."""

from __future__ import annotations

from pathlib import Path

from benchmarks.race.contestant import ANSOR
from benchmarks.race.schedulers import replayed
from benchmarks.study.tuned import Limit, Subject, tuned


def test_schedulers_share_what_was_recorded(tmp_path: Path) -> None:
    subject = Subject("CALL.16", 1, tmp_path)
    run = tuned(subject, ANSOR.parts, Limit(trials_per_task=3), 0, "curves")
    found = replayed(subject.records("curves"), ["gradient", "round_robin"], 2)
    assert set(found) == {"gradient", "round_robin"}
    for trials in found.values():
        assert len(trials) == 2 and all(1 <= n <= run["trials"] for n in trials)
