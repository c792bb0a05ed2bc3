"""Writes what was seen of each part into its page: ``docs/parts/KIND/NAME.md``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import geometric_mean, median

from benchmarks.common.cells import markdown
from benchmarks.common.pages import into, marks
from benchmarks.race.contestant import Contestant
from benchmarks.race.live import ratios, strategy_heats
from benchmarks.race.recorded import needed
from benchmarks.race.replay import FRACTIONS
from benchmarks.race.schedulers import trials_needed
from benchmarks.race.untuned import untuned_times
from benchmarks.study.comparison import Scores
from benchmarks.study.outcomes import Outcomes
from benchmarks.study.standings import figure
from benchmarks.study.study import StudySettings

__all__ = ["FOLDERS", "write_part_pages"]

FOLDERS = {
    "strategy": "strategies", "cost_model": "cost_models", "selector": "selectors",
    "scheduler": "schedulers", "transfer": "transfers",
}  # fmt: skip
STAGES = {
    "strategy": "spaces strategies", "cost_model": "models untuned", "selector": "selectors",
    "scheduler": "schedulers",
}  # fmt: skip
PLAINEST = {
    "strategy": "random", "cost_model": "random", "selector": "top_k", "scheduler": "round_robin",
}  # fmt: skip
HEADING, MARK = "## What we saw", "benchmarks.race"


def write_part_pages(docs: Path, settings: StudySettings, outcomes: Outcomes) -> list[Path]:
    """Fill the section :data:`HEADING` of every page in *docs*; return those that changed.

    A page of a part that has no outcome keeps the figures that it has, and the code they name.
    """
    changed = []
    for kind, folder in FOLDERS.items():
        for page in sorted((docs / folder).glob("*.md")):
            before = page.read_text()
            seen = _seen(kind, page.stem, settings, outcomes)
            if f"{HEADING}\n" not in before or (seen is None and _is_filled(before)):
                continue
            after = _filled(before, seen or _not_seen(kind))
            if after != before:
                page.write_text(after)
                changed.append(page)
    return changed


def _is_filled(text: str) -> bool:
    return marks(MARK)[0] in text


def _filled(text: str, seen: str) -> str:
    """*text* with *seen* between the marks of its section, which stand first in it.

    What authors wrote below the marks stays.
    """
    begin, end = marks(MARK)
    if begin not in text:
        text = text.replace(f"{HEADING}\n", f"{HEADING}\n\n{begin}\n{end}\n", 1)
    return into(text, seen, MARK)


def _seen(kind: str, name: str, settings: StudySettings, outcomes: Outcomes) -> str | None:
    """A table row for each measure of the part, beside the default and the plainest one."""
    if kind not in STAGES:
        return None
    names = tuple(dict.fromkeys((name, Contestant.default().parts[kind], PLAINEST[kind])))
    rows = [
        (what, *(_mean(scores, one, name) for one in names))
        for what, scores in _measures(kind, settings, outcomes)
        if name in scores
    ]
    if not rows:
        return None
    table = markdown(("geometric means", *(f"`{one}`" for one in names)), rows)
    codes = {o.code for o in outcomes if any(name in part.split(":") for part in o.parts)}
    where = f"{outcomes.conditions.machine}; ansorpy {', '.join(sorted(codes))}"
    return f"{table}\n\n{where}; [the race](../../results/race.md)."


def _not_seen(kind: str) -> str:
    if kind not in STAGES:
        return "Not raced: what it gains depends on the records that there are."
    return f"No results yet: `python -m benchmarks.race --stage {STAGES[kind]} report`."


def _measures(
    kind: str, settings: StudySettings, outcomes: Outcomes
) -> Iterator[tuple[str, Scores]]:
    """What was measured of parts of *kind*: by part and subject."""
    if kind == "scheduler":
        yield "trials of five networks", trials_needed(settings, outcomes)
        return
    found = needed(settings, outcomes, max(FRACTIONS))
    trials = {one.parts[kind]: spaces for one, spaces in found.items() if one.is_of(kind)}
    yield "trials to 99 % on recorded spaces", trials
    if kind == "strategy":
        times = ratios(strategy_heats(settings), outcomes)
        yield "time / fastest, on this machine", {n.split(":")[0]: t for n, t in times.items()}
    if kind == "cost_model":
        yield "ms of networks with effort none", untuned_times(settings, outcomes)


def _mean(scores: Scores, name: str, part: str) -> str:
    """The mean of *name* on the subjects that *part* has scores on; empty if it lacks one."""
    subjects, found = scores[part], scores.get(name, {})
    if not set(subjects) <= set(found):
        return ""
    return figure(geometric_mean([median(found[subject]) for subject in subjects]))
