"""Common parts of the result tables: engine columns, number formats, Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

__all__ = [
    "OURS", "Measured", "engine_ms", "engines_of", "markdown", "milliseconds", "table_rows",
    "two_digits",
]  # fmt: skip

OURS = "ansorpy"
"""Our own name among the engines."""


class _Time(Protocol):
    @property
    def median_ms(self) -> float: ...


class Measured(Protocol):
    """A case run by several engines; each has a time, or a reason why it has none."""

    @property
    def engines(self) -> Mapping[str, _Time]: ...

    @property
    def failures(self) -> Mapping[str, str]: ...


def engines_of(results: Sequence[Measured]) -> list[str]:
    """Every engine that took part, ours first."""
    named = [name for r in results for name in (*r.engines, *r.failures)]
    return sorted(dict.fromkeys(named), key=lambda name: name != OURS)


def engine_ms(result: Measured, engine: str) -> str:
    """The time of *engine*, or "failed"; empty when it took no part."""
    if engine in result.engines:
        return milliseconds(result.engines[engine].median_ms)
    return "failed" if engine in result.failures else ""


def two_digits(value: float | None) -> str:
    """Format a ratio; empty when there is none."""
    return "" if value is None else f"{value:.2f}"


def milliseconds(value: float) -> str:
    """Format milliseconds: four significant digits, down to a tenth of a microsecond."""
    return f"{value:.2f}" if value >= 10 else f"{value:.3f}" if value >= 1 else f"{value:.4f}"


def markdown(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a Markdown table."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def table_rows(text: str) -> list[tuple[str, ...]]:
    """The rows of the tables in *text*, their headings too."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    rows = [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines]
    return [row for row in rows if set(row) != {"---"}]
