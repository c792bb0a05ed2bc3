"""How many candidates a search measures in a minute, and what it finds."""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from typing import Any

from ansorpy.measure.records.database import Database
from benchmarks.cuda.figures.base import Figures, FigureSettings
from benchmarks.cuda.figures.operators import measure_case
from benchmarks.ops.case import Case

__all__ = ["measure_search"]

_NO_END = 1 << 20
"""Trials: more than there is time for."""


def measure_search(case: Case, torch: Any, settings: FigureSettings, limit_s: float) -> Figures:
    """Search for programs of *case* until *limit_s* have passed, with no records to start from."""
    own = replace(settings, db=settings.db.with_suffix(".search.db"), trials=_NO_END)
    own.db.unlink(missing_ok=True)
    begin = monotonic()
    figures = measure_case("float32", case, torch, own, limit_s)
    with Database(own.db) as database:
        tried = sum(database.trials(task.key) for task in database.tasks())
    rate = tried / limit_s * 60
    note = f"{tried} candidates in {limit_s:.0f} s ({monotonic() - begin:.0f} s in all)"
    return replace(figures, note=note, rate=rate)
