"""Times of a network's calls: in whole runs, alone, and at the roofline; and what limits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansorpy.cost.analytic.limits import Limits
from ansorpy.evaluation.tables import Table

__all__ = ["CallTime", "bounds_table", "profile_table"]

_BOUNDS = ("memory", "arithmetic", "launches")


@dataclass(frozen=True)
class CallTime:
    """One call of a network.

    Args:
        seconds: Median seconds as part of whole runs, or what the cost model predicts.
        alone_s: Seconds that its program took when it was tuned; None if it was never timed.
        limits: Lower bounds for any schedule of its definition.
        kernels: GPU kernels that it launches; 0 on a CPU.
    """

    name: str
    seconds: float
    alone_s: float | None
    limits: Limits
    kernels: int = 0

    def to_dict(self, time: str = "inside_s") -> dict[str, str | float | None]:
        """The call as JSON-serializable values; times in seconds, its own as *time*."""
        return {
            "name": self.name,
            time: self.seconds,
            "alone_s": self.alone_s,
            "least_s": self.limits.least_s,
            "memory_s": self.limits.memory_s,
            "compute_s": self.limits.compute_s,
            "launch_s": self.limits.launch_s,
            "bound": self.limits.bound,
            "kernels": self.kernels,
        }


def profile_table(calls: Sequence[CallTime], title: str = "", time: str = "us") -> Table:
    """One row per kernel, the longest first, and their sums; the calls' own times are named *time*.

    Calls of the same name with the same limits are calls of one kernel.
    """
    alike: dict[tuple[str, Limits], list[CallTime]] = {}
    for call in calls:
        alike.setdefault((call.name, call.limits), []).append(call)
    all_s = sum(call.seconds for call in calls)
    groups = sorted(alike.values(), key=lambda group: -sum(call.seconds for call in group))
    rows = [_row(group[0].name, group, group[0].limits.bound, all_s) for group in groups]
    rows.append(_row("all", calls, "", all_s))
    heading = (
        "kernel", "calls", "kernels", time, "us alone", "us at least", "bound by", "of roofline",
        "share",
    )  # fmt: skip
    return _told(Table(title, heading, tuple(rows), _numeric(heading)), calls)


def _row(name: str, calls: Sequence[CallTime], bound: str, all_s: float) -> tuple[str, ...]:
    """The sums of *calls*."""
    seconds = sum(call.seconds for call in calls)
    least_s = sum(call.limits.least_s for call in calls)
    alone = [call.alone_s for call in calls if call.alone_s is not None]
    return (
        name,
        str(len(calls)),
        str(sum(call.kernels for call in calls)),
        f"{seconds * 1e6:.1f}",
        f"{sum(alone) * 1e6:.1f}" if len(alone) == len(calls) else "",
        f"{least_s * 1e6:.1f}",
        bound,
        _share(least_s, seconds, 0),
        _share(seconds, all_s, 1),
    )


def bounds_table(calls: Sequence[CallTime], time: str = "us") -> Table:
    """One row for each of the limits: its calls, their time, and the sum of their bounds."""
    all_s = sum(call.seconds for call in calls)
    rows = []
    for bound in _BOUNDS:
        mine = [call for call in calls if call.limits.bound == bound]
        if mine:
            seconds = sum(call.seconds for call in mine)
            least_s = sum(call.limits.least_s for call in mine)
            rows.append(
                (
                    bound, str(len(mine)), str(sum(call.kernels for call in mine)),
                    f"{seconds * 1e6:.1f}", f"{least_s * 1e6:.1f}", _share(seconds, all_s, 1),
                )
            )  # fmt: skip
    heading = ("bound by", "calls", "kernels", time, "us at least", "share")
    return _told(Table("", heading, tuple(rows), _numeric(heading)), calls)


def _numeric(heading: Sequence[str]) -> frozenset[str]:
    return frozenset(heading) - {"kernel", "bound by"}


def _told(table: Table, calls: Sequence[CallTime]) -> Table:
    """*table* without the columns of GPU kernels and of times alone if there are none."""
    absent = set() if any(call.kernels for call in calls) else {"kernels"}
    absent |= {"us alone"} if all(call.alone_s is None for call in calls) else set()
    kept = [n for n, name in enumerate(table.heading) if name not in absent]
    heading, *rows = (tuple(row[n] for n in kept) for row in (table.heading, *table.rows))
    return Table(table.title, heading, tuple(rows), table.numeric - absent)


def _share(part_s: float, whole_s: float, digits: int) -> str:
    """A percentage; empty if the whole is too short for the clock."""
    return f"{part_s / whole_s:.{digits}%}" if whole_s > 0 else ""
