"""Times of a network's calls: in whole runs, alone, and at the roofline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansorpy.report.tables import Table

__all__ = ["CallTime", "profile_table"]


@dataclass(frozen=True)
class CallTime:
    """One call of a network.

    Args:
        inside_s: Median seconds as part of whole runs.
        alone_s: Seconds that its program took when it was tuned; None if it was never timed.
        least_s: Lower bound for any schedule of its definition; 0 if nothing is known.
    """

    name: str
    inside_s: float
    alone_s: float | None
    least_s: float

    def to_dict(self) -> dict[str, str | float | None]:
        """The call as JSON-serializable values; times in seconds."""
        return {
            "name": self.name,
            "inside_s": self.inside_s,
            "alone_s": self.alone_s,
            "least_s": self.least_s,
        }


def profile_table(calls: Sequence[CallTime], title: str = "") -> Table:
    """One row per call, in order, and their sums."""
    known = [call.alone_s for call in calls if call.alone_s is not None]
    total = CallTime(
        "all",
        sum(call.inside_s for call in calls),
        sum(known) if len(known) == len(calls) else None,
        sum(call.least_s for call in calls),
    )
    rows = [
        (
            call.name,
            f"{call.inside_s * 1e6:.1f}",
            "" if call.alone_s is None else f"{call.alone_s * 1e6:.1f}",
            f"{call.least_s * 1e6:.1f}",
            _share(call.least_s, call.inside_s, 0),
            _share(call.inside_s, total.inside_s, 1),
        )
        for call in (*calls, total)
    ]
    heading = ("call", "us", "us alone", "us at least", "of roofline", "share")
    return Table(title, heading, tuple(rows), numeric=frozenset(heading[1:]))


def _share(part_s: float, whole_s: float, digits: int) -> str:
    """A percentage; empty if the whole is too short for the clock."""
    return f"{part_s / whole_s:.{digits}%}" if whole_s > 0 else ""
