"""Table of network regions that can be partitioned in several ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansorpy.report.tables import Table

__all__ = ["Decision", "WayTime", "ways_table"]


@dataclass(frozen=True)
class WayTime:
    """One way: the calls it needs beyond those of all ways, and their seconds (None: unknown)."""

    name: str
    calls: int
    seconds: float | None

    def to_dict(self) -> dict[str, str | int | float | None]:
        """The way as JSON-serializable values."""
        return {"way": self.name, "calls": self.calls, "seconds": self.seconds}


@dataclass(frozen=True)
class Decision:
    """A region, its ways, and the index of the chosen one."""

    region: str
    ways: tuple[WayTime, ...]
    taken: int

    @property
    def is_measured(self) -> bool:
        """True when the time of some way is known."""
        return any(way.seconds is not None for way in self.ways)

    def to_dict(self) -> dict[str, object]:
        """The decision as JSON-serializable values."""
        ways = [way.to_dict() for way in self.ways]
        return {"region": self.region, "ways": ways, "taken": self.ways[self.taken].name}


def ways_table(decisions: Sequence[Decision]) -> Table:
    """One row per way; ``*`` marks the chosen one."""
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
