"""Stages on recorded spaces: one part of the search is exchanged, and trials are counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from functools import partial
from statistics import median

from benchmarks.race.contestant import Contestant, contestants
from benchmarks.race.replay import FRACTIONS, UNIFORM, Race, expected, replayed
from benchmarks.spaces.catalogue import recorded
from benchmarks.spaces.grid import read_grid
from benchmarks.study.comparison import compared
from benchmarks.study.jobs import Job
from benchmarks.study.outcomes import Outcomes
from benchmarks.study.plots import standings
from benchmarks.study.standings import figure, learnt, standings_table
from benchmarks.study.study import Bar, Section, Stage, StudySettings

__all__ = ["HARD", "SEEDS", "STAGES", "needed"]

SEEDS = 20
MOST = 512
"""Trials after which a search gives up; it counts as having needed them."""
HARD: Mapping[str, int] = {
    "batched_transposed": 25, "grouped_strided": 177, "depthwise": 127, "softmax": 28,
}  # fmt: skip
"""The recorded spaces on which the default search before the first race needed 25 trials or more
for 99 % of the best, and its medians over 20 seeds."""

_HELP = (
    "Trials until 99 % of the best program's speed, on recorded spaces; each {} in the default "
    "search."
)


def _stage(name: str, title: str, kind: str) -> Stage:
    help = _HELP.format(kind.replace("_", " "))
    return Stage(name, title, help, partial(_jobs, kind), partial(_section, kind, name))


def _jobs(kind: str, settings: StudySettings) -> Sequence[Job]:
    return [
        Job(
            _key(settings, path.stem, one, seed),
            partial(replayed, Race(path, one, seed, most=settings.trials or MOST)),
        )
        for seed in range(settings.seeds or SEEDS)
        for path in recorded(settings.spaces, settings.on)
        for one in contestants(kind, settings.only)
    ]  # fmt: skip


def _key(settings: StudySettings, space: str, contestant: Contestant, seed: int) -> str:
    return f"{'/'.join(_kind(settings))}/{space}/{_search(contestant)}/{seed}"


def _kind(settings: StudySettings) -> tuple[str, str]:
    return "recorded", f"{settings.trials or MOST}t"


def _search(contestant: Contestant) -> str:
    """A contestant without its scheduler, which one task has no use for."""
    return ":".join(astuple(contestant)[:3])


def needed(
    settings: StudySettings, outcomes: Outcomes, fraction: float
) -> dict[Contestant, dict[str, list[float]]]:
    """Trials to *fraction* by contestant and space, one for each seed that has run."""
    scores: dict[Contestant, dict[str, list[float]]] = {}
    for (space, search, _), value in outcomes.values(*_kind(settings)).items():
        found = value["trials_to"][f"{fraction:g}"]
        spaces = scores.setdefault(_searching(search), {})
        spaces.setdefault(space, []).append(settings.trials or MOST if found is None else found)
    return scores


def _searching(text: str) -> Contestant:
    """The contestant that :func:`_search` wrote."""
    strategy, selector, cost_model = text.split(":")
    return Contestant(strategy, selector, cost_model, Contestant.default().scheduler)


def _section(kind: str, name: str, settings: StudySettings, outcomes: Outcomes) -> Section:
    every = needed(settings, outcomes, max(FRACTIONS))
    racing = [one for one in every if one.is_of(kind)]
    scores = {one.name: every[one] for one in racing}
    default = Contestant.default().name
    if default not in scores or len(scores) < 2:
        return Section()
    labels = {one.name: one.label(kind) for one in racing}
    found = compared(scores, default)
    text = [
        learnt(found, labels, default),
        _drawn(settings, scores[default]),
        *(f"Failed: {key}, {reason}." for key, reason in _failures(settings, outcomes, kind)),
    ]
    tables = standings_table(found, scores, "trials to 99 %", labels, default)
    pictures = {name: standings(found, "trials to 99 % of the best, geometric mean", labels)}
    bars = list(_bars(every)) if kind == "strategy" else []
    return Section("\n".join(text), tables, pictures, bars)


def _bars(every: Mapping[Contestant, Mapping[str, Sequence[float]]]) -> Iterator[Bar]:
    """Half of the trials that the hard spaces needed, and the least that any search needs."""
    default = Contestant.default()
    for space, before in HARD.items():
        trials = {one: median(found[space]) for one, found in every.items() if space in found}
        if default not in trials:
            continue
        best = min(trials, key=lambda one: (trials[one], one != default))
        least = f"; least: {figure(trials[best])} by {best.label('strategy')}"
        what = f"{space}, trials to 99 % by the default ({before} before)"
        found = f"{figure(trials[default])}{least if best != default else ''}"
        yield Bar(what, f"{before / 2:g}", found, trials[default] <= before / 2)


def _drawn(settings: StudySettings, spaces: Iterable[str]) -> str:
    """What drawing programs uniformly needs, which is computed."""
    paths = {path.stem: path for path in recorded(settings.spaces)}
    medians = {s: expected(read_grid(paths[s]), max(FRACTIONS), 0.5) for s in spaces}
    said = ", ".join(f"{space} {trials}" for space, trials in medians.items())
    return f"Medians of {UNIFORM} drawing without a model (exact): {said}."


def _failures(settings: StudySettings, outcomes: Outcomes, kind: str) -> Iterator[tuple[str, str]]:
    """The first failure of each contestant."""
    told: set[str] = set()
    for key, reason in outcomes.failures(*_kind(settings)).items():
        search = key.split("/")[-2]
        if search not in told and _searching(search).is_of(kind):
            told.add(search)
            yield key, reason


STAGES = (
    _stage("models", "Cost models", "cost_model"),
    _stage("selectors", "Selectors", "selector"),
    _stage("spaces", "Strategies on recorded spaces", "strategy"),
)
