"""What campaigns measured, as tables in Markdown: ``python -m tests.campaigns.table FILE.json``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from tests.campaigns.campaign import Outcome, Worst

__all__ = ["tables"]


def tables(outcome: Outcome) -> str:
    """A line about all cases, a table of measures, and tables of those named ``row; column``."""
    plain: dict[str, Worst] = {}
    crossed: dict[str, dict[str, Worst]] = {}
    for measure, worst in outcome.tally.worst.items():
        row, semicolon, column = measure.partition("; ")
        if semicolon:
            crossed.setdefault(row, {})[column] = worst
        else:
            plain[measure] = worst
    lines = [
        f"`python -m tests.campaigns {outcome.campaign} --seed {outcome.seed}`: {outcome.cases:,}"
        f" cases in {outcome.seconds:,.0f} s, {len(outcome.failures)} failed."
    ]
    if plain:
        lines += ["", *_plain(plain, outcome)]
    for columns in dict.fromkeys(tuple(row) for row in crossed.values()):
        alike = {name: row for name, row in crossed.items() if tuple(row) == columns}
        rows = ((name, *(f"{w.value:.3g}" for w in row.values())) for name, row in alike.items())
        lines += ["", *_table(("", *columns), rows)]
    return "\n".join(lines)


def _plain(measures: dict[str, Worst], outcome: Outcome) -> Iterator[str]:
    counts = outcome.tally.kinds
    rows = (
        (name, f"{counts[name]:,}" if name in counts else "", f"{worst.value:.4g}", worst.where)
        for name, worst in measures.items()
    )
    return _table(("", "tried", "largest", ""), rows)


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for row in (titles, ["---"] * len(titles), *rows):
        yield f"| {' | '.join(row)} |"


if __name__ == "__main__":
    for file in sys.argv[1:]:
        found: Outcome = TypeAdapter(Outcome).validate_json(Path(file).read_bytes())
        print(tables(found), end="\n\n")
