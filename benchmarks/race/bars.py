"""What the race is asked: a line each, with the figures, and whether the bar is met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from statistics import geometric_mean, median

from benchmarks.common.cells import markdown
from benchmarks.race.contestant import Contestant
from benchmarks.race.live import FIVE
from benchmarks.race.metaschedule import METASCHEDULE, OURS, SUBJECTS, ours_text, side_by_side
from benchmarks.race.recorded import needed
from benchmarks.race.replay import FRACTIONS
from benchmarks.race.untuned import CLOSED_FORM, untuned_ms
from benchmarks.study.outcomes import Outcomes
from benchmarks.study.standings import figure
from benchmarks.study.study import StudySettings

__all__ = ["bars"]

_Row = tuple[str, str, str, str]

HARD: Mapping[str, int] = {
    "batched_transposed": 25, "grouped_strided": 177, "depthwise": 127, "softmax": 28,
}  # fmt: skip
"""The recorded spaces on which the default search before the first race needed 25 trials or more
for 99 % of the best, and its medians over 20 seeds."""


def bars(settings: StudySettings, outcomes: Outcomes) -> str:
    """The bars as a table; one that was not measured yet says so."""
    rows = [
        *_hard_spaces(settings, outcomes),
        *_beside(settings, outcomes),
        *_pretrained(settings, outcomes),
    ]
    return "## The bars\n\n" + markdown(("what", "asked", "found", ""), rows)


def _row(what: str, asked: str, found: str | None, is_met: bool = False) -> _Row:
    if found is None:
        return what, asked, "no results yet", ""
    return what, asked, found, "met" if is_met else "missed"


def _hard_spaces(settings: StudySettings, outcomes: Outcomes) -> Iterator[_Row]:
    default = Contestant.default()
    every = needed(settings, outcomes, max(FRACTIONS))
    for space, before in HARD.items():
        what = f"{space}, trials to 99 % by the default ({before} before)"
        trials = {one: median(found[space]) for one, found in every.items() if space in found}
        if default not in trials:
            yield _row(what, f"{before / 2:g}", None)
            continue
        best = min(trials, key=lambda one: trials[one])
        others = f"; least: {figure(trials[best])} by {best.name}" if best != default else ""
        found = f"{figure(trials[default])}{others}"
        yield _row(what, f"{before / 2:g}", found, trials[default] <= before / 2)


def _beside(settings: StudySettings, outcomes: Outcomes) -> Iterator[_Row]:
    for name in SUBJECTS[:-1]:
        after = ours_text(settings, name)
        what = f"{name}, ms after {after} beside {METASCHEDULE} after its trials"
        found = side_by_side(settings, outcomes, name)
        times = {} if found is None else found["median_ms"]
        theirs = times.get(METASCHEDULE)
        if theirs is None:
            yield _row(what, "faster", None)
            continue
        ours = times.get(OURS, inf)
        said = "no program" if ours == inf else figure(ours)
        yield _row(what, "faster", f"{said}, {figure(theirs)}", ours < theirs)


def _pretrained(settings: StudySettings, outcomes: Outcomes) -> Iterator[_Row]:
    gains: dict[str, list[float]] = {}
    for name in FIVE:
        times = untuned_ms(settings, outcomes, name)
        for model, ms in times.items():
            if CLOSED_FORM in times and model != CLOSED_FORM:
                gains.setdefault(model, []).append(times[CLOSED_FORM] / ms)
    what = f"effort none, speed by the default cost model relative to {CLOSED_FORM}"
    default = Contestant.default().cost_model
    if default not in gains:
        yield _row(what, "above 1", None)
        return
    gain = geometric_mean(gains[default])
    yield _row(what, "above 1", f"{gain:.2f} over {len(gains[default])} networks", gain > 1)
