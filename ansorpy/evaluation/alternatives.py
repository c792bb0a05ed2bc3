"""Network regions that can be partitioned in several ways, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.evaluation.tables import Table
from ansorpy.graph.alternatives import Alternatives

__all__ = ["alternatives_json", "alternatives_table"]


def alternatives_json(region: Alternatives[str]) -> dict[str, object]:
    """The alternatives, their times and the chosen one, as JSON-serializable values."""
    ways = [
        {"way": option.name, "calls": sum(option.calls.values()), "seconds": option.seconds}
        for option in region.options
    ]
    return {"region": region.name, "ways": ways, "taken": region.options[region.fastest].name}


def alternatives_table(regions: Sequence[Alternatives[str]]) -> Table:
    """One row for each alternative; ``*`` marks the chosen one."""
    rows = tuple(
        (
            "" if number else region.name,
            option.name,
            f"{sum(option.calls.values()):g}",
            "-" if option.seconds is None else f"{option.seconds * 1e6:.1f}",
            "*" if number == region.fastest else "",
        )
        for region in regions
        for number, option in enumerate(region.options)
    )
    heading = ("region", "way", "calls", "us", "taken")
    return Table("ways to cut it", heading, rows, frozenset({"calls", "us"}))
