"""Results of the races as JSON and as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import geometric_mean

import numpy as np
from pydantic import BaseModel, ConfigDict

from ansorpy.evaluation.tables import Table
from ansorpy.measure.recorded_grid import Grid
from benchmarks.search.race import FRACTIONS, UNIFORM, expected, trials_to

__all__ = ["Results", "Summary", "means_table", "spaces_table", "summary", "uniform"]

_QUARTILES = (0.25, 0.5, 0.75)


class Summary(BaseModel):
    """Number of trials one contestant needed on one space.

    Args:
        reached: Fraction of the seeds that reached the goal; the others count as the maximum.
        quartiles: Trials within which a quarter, half and three quarters of the seeds reached it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    space: str
    contestant: str
    fraction: float
    reached: float
    quartiles: tuple[float, float, float]

    @property
    def median(self) -> float:
        return self.quartiles[1]


class Results(BaseModel):
    """All results of one run of the benchmark.

    ``traces`` hold the best time after each trial, which is infinite while all trials have failed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    seeds: int
    round_size: int
    most: int
    summaries: tuple[Summary, ...]
    traces: Mapping[str, Mapping[str, tuple[tuple[float, ...], ...]]] = {}


def summary(
    space: str, contestant: str, fraction: float, traces: Sequence[Sequence[float]], most: int
) -> Summary:
    """Summarize the *traces* of all seeds."""
    needed = [trials_to(trace, fraction) for trace in traces]
    counts = [most if n is None else n for n in needed]
    low, middle, high = (float(q) for q in np.quantile(counts, _QUARTILES))
    reached = sum(n is not None for n in needed) / len(needed)
    return Summary(
        space=space, contestant=contestant, fraction=fraction, reached=reached,
        quartiles=(low, middle, high),
    )  # fmt: skip


def uniform(space: str, grid: Grid, fraction: float) -> Summary:
    """Summary of uniform draws without a model, computed instead of simulated."""
    low, middle, high = (float(expected(grid, fraction, share)) for share in _QUARTILES)
    return Summary(
        space=space, contestant=UNIFORM, fraction=fraction, reached=1.0,
        quartiles=(low, middle, high),
    )  # fmt: skip


def spaces_table(summaries: Sequence[Summary], fraction: float) -> Table:
    """One row per space: each contestant's median trials and quartiles."""
    rows = []
    names = list(dict.fromkeys(s.contestant for s in summaries))
    for space in dict.fromkeys(s.space for s in summaries):
        cells = [_cell(_find(summaries, space, name, fraction)) for name in names]
        rows.append((space, *cells))
    title = f"trials to {fraction:.0%} of the best: median (quartiles)"
    return Table(title, ("space", *names), tuple(rows), frozenset(names))


def means_table(summaries: Sequence[Summary]) -> Table:
    """One row per contestant: geometric means over the spaces, and ratios to uniform drawing."""
    heading: tuple[str, ...] = ("contestant",)
    for fraction in FRACTIONS:
        heading += (f"trials to {fraction:.0%}", f"of {UNIFORM}, {fraction:.0%}")
    rows = []
    for name in dict.fromkeys(s.contestant for s in summaries):
        row = [name]
        for fraction in FRACTIONS:
            mean = _mean(summaries, name, fraction)
            row += [f"{mean:.1f}", f"{mean / _mean(summaries, UNIFORM, fraction):.3f}"]
        rows.append(tuple(row))
    return Table("geometric means over the spaces", heading, tuple(rows), frozenset(heading[1:]))


def _mean(summaries: Sequence[Summary], contestant: str, fraction: float) -> float:
    return geometric_mean(
        s.median for s in summaries if s.contestant == contestant and s.fraction == fraction
    )


def _find(summaries: Sequence[Summary], space: str, name: str, fraction: float) -> Summary:
    key = (space, name, fraction)
    return next(s for s in summaries if (s.space, s.contestant, s.fraction) == key)


def _cell(found: Summary) -> str:
    low, middle, high = found.quartiles
    missed = "" if found.reached == 1 else f" {1 - found.reached:.0%} never"
    return f"{middle:.0f} ({low:.0f}-{high:.0f}){missed}"
