"""Writes what was seen of each part into its page: ``docs/parts/KIND/NAME.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import geometric_mean, median

from benchmarks.cells import markdown
from benchmarks.document import into, marks
from benchmarks.race.contestant import Contestant
from benchmarks.race.live import strategy_heats
from benchmarks.race.recorded import needed
from benchmarks.race.replay import FRACTIONS
from benchmarks.study.outcomes import Outcomes
from benchmarks.study.standings import figure
from benchmarks.study.study import Settings

__all__ = ["FOLDERS", "write_part_pages"]

FOLDERS = {
    "strategy": "strategies", "cost_model": "cost_models", "selector": "selectors",
    "scheduler": "schedulers", "transfer": "transfers",
}  # fmt: skip
STAGES = {
    "strategy": "spaces strategies", "cost_model": "models untuned", "selector": "selectors",
}  # fmt: skip
HEADING, MARK = "## What we saw", "benchmarks.race"

_Row = tuple[str, ...]


def write_part_pages(docs: Path, settings: Settings, outcomes: Outcomes) -> list[Path]:
    """Fill the section :data:`HEADING` of every page in *docs*; return those that changed."""
    changed = []
    for kind, folder in FOLDERS.items():
        for page in sorted((docs / folder).glob("*.md")):
            before = page.read_text()
            after = _filled(before, _seen(kind, page.stem, settings, outcomes))
            if HEADING in before and after != before:
                page.write_text(after)
                changed.append(page)
    return changed


def _filled(text: str, seen: str) -> str:
    """*text* with *seen* between the marks of its section, which it gets if it has none."""
    begin, end = marks(MARK)
    if begin not in text:
        before, heading, rest = text.partition(HEADING)
        body, following, after = rest.partition("\n## ")
        text = f"{before}{heading}\n\n{begin}\n{end}\n{following}{after}".rstrip("\n") + "\n"
    return into(text, seen, MARK)


def _seen(kind: str, name: str, settings: Settings, outcomes: Outcomes) -> str:
    """A table row for each measure of the part, beside the default and ``random``."""
    rows = list(_rows(kind, name, settings, outcomes))
    if not rows:
        stages = STAGES.get(kind, "schedulers" if kind == "scheduler" else "")
        if not stages:
            return "Not raced: what it gains depends on the records that there are."
        return f"No results yet: `python -m benchmarks.race --stage {stages} report`."
    table = markdown(("", name, "the default", "`random`"), rows)
    where, code = outcomes.conditions.machine, outcomes.conditions.code
    return f"{table}\n\n{where}; ansorpy {code}; [the race](../../results/race.md)."


def _rows(kind: str, name: str, settings: Settings, outcomes: Outcomes) -> Iterator[_Row]:
    default = Contestant.default()
    trio = [Contestant.exchanged(kind, name), default, Contestant.exchanged(kind, "random")]
    every = needed(settings, outcomes, max(FRACTIONS))
    trials = [every.get(one, {}) for one in trio]
    if trials[0]:
        yield ("trials to 99 % on recorded spaces", *map(_mean, trials))
    if kind == "strategy":
        finals = [heat.times(outcomes) for heat in strategy_heats(settings)]
        finals = [times for times in finals if all(one.name in times for one in trio[:2])]
        if finals:
            yield (
                "time / default's, live",
                *(_mean_ratio(finals, one.name, default.name) for one in trio),
            )


def _mean(spaces: dict[str, list[float]]) -> str:
    return figure(geometric_mean([median(found) for found in spaces.values()])) if spaces else ""


def _mean_ratio(finals: list[Mapping[str, float]], name: str, other: str) -> str:
    ratios = [times[name] / times[other] for times in finals if name in times]
    return figure(geometric_mean(ratios)) if ratios else ""
