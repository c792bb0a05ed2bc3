"""Regions of a network that can be cut in several ways, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansorpy.report.tables import Table

__all__ = ["Decision", "WayTime", "ways_table"]


@dataclass(frozen=True)
class WayTime:
    """A way: the calls it has beyond those of all ways, and their seconds; None: not all known."""

    name: str
    calls: int
    seconds: float | None

    def to_dict(self) -> dict[str, str | int | float | None]:
        """JSON-able."""
        return {"way": self.name, "calls": self.calls, "seconds": self.seconds}


@dataclass(frozen=True)
class Decision:
    """A region, its ways, and the number of the one that is taken."""

    region: str
    ways: tuple[WayTime, ...]
    taken: int

    @property
    def is_measured(self) -> bool:
        """True when the time of some way is known."""
        return any(way.seconds is not None for way in self.ways)

    def to_dict(self) -> dict[str, object]:
        """JSON-able."""
        ways = [way.to_dict() for way in self.ways]
        return {"region": self.region, "ways": ways, "taken": self.ways[self.taken].name}


def ways_table(decisions: Sequence[Decision]) -> Table:
    """A row a way, ``*`` where it is taken."""
    rows = tuple(
        (
            "" if number else decision.region,
            way.name,
            str(way.calls),
            "-" if way.seconds is None else f"{way.seconds * 1e6:.1f}",
            "*" if number == decision.taken else "",
        )
        for decision in decisions
        for number, way in enumerate(decision.ways)
    )
    heading = ("region", "way", "calls", "us", "taken")
    return Table("ways to cut it", heading, rows, frozenset({"calls", "us"}))
