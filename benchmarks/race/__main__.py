"""``python -m benchmarks.race``: which parts make the best search, on recorded spaces and live."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.race import live, recorded
from benchmarks.race.metaschedule import STAGE as METASCHEDULE
from benchmarks.race.part_pages import write_part_pages
from benchmarks.race.schedulers import STAGE as SCHEDULERS
from benchmarks.race.untuned import STAGE as UNTUNED
from benchmarks.study.command import run_study
from benchmarks.study.outcomes import Outcomes
from benchmarks.study.study import Study, StudySettings

__all__ = ["DOCS", "main", "race"]

DOCS = Path(__file__).parents[2] / "docs"
ABOUT = """\
Every registered part of the search races in the default search, one part exchanged at a time. Runs
that time programs are alone on the machine and take turns; the best programs of all contestants are
then timed again in turns. The race takes hours: it stops when its budget is spent, and the same
command continues it."""


def race(docs: Path = DOCS) -> Study:
    """The race, whose page is written into *docs*."""
    stages = (*recorded.STAGES, *live.STAGES, SCHEDULERS, UNTUNED, METASCHEDULE)
    results = docs / "results"
    page, tables = results / "race.md", results / "race_tables.md"
    return Study("race", "The race", ABOUT, page, stages, tables)


def main(arguments: Sequence[str] | None = None, docs: Path = DOCS) -> int:
    """Run the command line; the report also fills the pages of the parts."""

    def parts(settings: StudySettings, outcomes: Outcomes) -> None:
        write_part_pages(docs / "parts", settings, outcomes)

    return run_study(race(docs), arguments, parts)


if __name__ == "__main__":
    sys.exit(main())
