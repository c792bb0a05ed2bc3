"""What became of each case of the suite: in a file, and compared with that of an earlier run."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path

__all__ = ["RESULTS", "VERDICTS", "Result", "lost", "read", "write"]

RESULTS = Path(__file__).with_name("results.csv")
"""The results of the last run that was accepted."""

VERDICTS = ("passed", "folded", "refused", "failed", "out of scope")
"""``folded``: all inputs decide shapes, so nothing is left to compile; it does not count."""


@dataclass(frozen=True)
class Result:
    """One case: its operator, what it is tried with, and how that ended."""

    case: str
    operator: str
    opset: int
    types: str
    verdict: str
    reason: str = ""


def read(path: Path) -> dict[str, Result]:
    """The results in a file, by name of the case; none if there is no such file."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        rows = [Result(**{**row, "opset": int(row["opset"])}) for row in csv.DictReader(file)]  # type: ignore[arg-type]
    return {row.case: row for row in rows}


def write(path: Path, results: Iterable[Result]) -> None:
    """Write *results* sorted by name."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Result)])
        writer.writerows(astuple(r) for r in sorted(results, key=lambda r: r.case))


def lost(before: Mapping[str, Result], now: Mapping[str, Result]) -> list[Result]:
    """What passed *before* and does not *now*."""
    return [
        result for name, result in now.items()
        if result.verdict != "passed" and name in before and before[name].verdict == "passed"
    ]  # fmt: skip
