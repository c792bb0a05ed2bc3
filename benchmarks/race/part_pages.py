"""Writes what was seen of each part into its page: ``docs/parts/KIND/NAME.md``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import geometric_mean, median

from benchmarks.common.cells import markdown, table_rows
from benchmarks.common.pages import between_marks, into, marks
from benchmarks.race.contestant import Contestant
from benchmarks.race.live import network_heats, ratios, strategy_heats
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
    "strategy": "spaces strategies networks", "cost_model": "models untuned",
    "selector": "selectors", "scheduler": "schedulers",
}  # fmt: skip
PLAINEST = {
    "strategy": "random", "cost_model": "random", "selector": "top_k", "scheduler": "round_robin",
}  # fmt: skip
HEADING, MARK = "## What we saw", "benchmarks.race"


def write_part_pages(docs: Path, settings: StudySettings, outcomes: Outcomes) -> list[Path]:
    """Fill the section :data:`HEADING` of every page in *docs*; return those that changed.

    What has no outcome keeps the figures that its page has, and the code they name.
    """
    changed = []
    for kind, folder in FOLDERS.items():
        for page in sorted((docs / folder).glob("*.md")):
            before = page.read_text()
            if f"{HEADING}\n" not in before:
                continue
            kept = table_rows(between_marks(before, MARK))
            after = _filled(before, _seen(kind, page.stem, settings, outcomes, kept))
            if after != before:
                page.write_text(after)
                changed.append(page)
    return changed


def _filled(text: str, seen: str) -> str:
    """*text* with *seen* between the marks of its section, which stand first in it.

    What authors wrote below the marks stays.
    """
    begin, end = marks(MARK)
    if begin not in text:
        text = text.replace(f"{HEADING}\n", f"{HEADING}\n\n{begin}\n{end}\n", 1)
    return into(text, seen, MARK)


def _seen(
    kind: str,
    name: str,
    settings: StudySettings,
    outcomes: Outcomes,
    kept: Sequence[tuple[str, ...]],
) -> str:
    """A table row for each measure of the part, beside the default and the plainest one.

    Args:
        kept: The rows of the page's table, its heading first.
    """
    if kind not in STAGES:
        return "Not raced: what it gains depends on the records that there are."
    names = tuple(dict.fromkeys((name, Contestant.default().parts[kind], PLAINEST[kind])))
    heading = ("geometric means", *(f"`{one}`" for one in names), "measured")
    known = {row[0]: row for row in kept[1:]} if kept and kept[0] == heading else {}
    rows: list[tuple[str, ...]] = []
    for what, scores in _measures(kind, settings, outcomes):
        if name in scores:
            means = (_mean(scores, one, name) for one in names)
            rows.append((what, *means, _origin(outcomes, name, scores[name])))
        elif what in known:
            rows.append(known[what])
    if not rows:
        return f"No results yet: `python -m benchmarks.race --stage {STAGES[kind]} report`."
    return f"{markdown(heading, rows)}\n\n[The race](../../results/race.md)."


def _origin(outcomes: Outcomes, name: str, subjects: Iterable[str]) -> str:
    """The machine and the versions of the code with which a part was measured on *subjects*."""
    where = set(subjects)
    found = [
        o for o in outcomes
        if where & set(o.parts)
        and (any(name in part.split(":") for part in o.parts) or name in (o.value or ()))
    ]  # fmt: skip
    codes = sorted({outcome.code for outcome in found})
    return ", ".join((*sorted({outcome.machine for outcome in found}), *codes))


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
        for where, heats in (
            ("on this machine", strategy_heats(settings)), ("networks", network_heats(settings)),
        ):  # fmt: skip
            times = ratios(heats, outcomes)
            yield f"time / fastest, {where}", {n.split(":")[0]: t for n, t in times.items()}
    if kind == "cost_model":
        yield "ms of networks with effort none", untuned_times(settings, outcomes)


def _mean(scores: Scores, name: str, part: str) -> str:
    """The mean of *name* on the subjects that *part* has scores on; empty if it lacks one."""
    subjects, found = scores[part], scores.get(name, {})
    if not set(subjects) <= set(found):
        return ""
    return figure(geometric_mean([median(found[subject]) for subject in subjects]))
