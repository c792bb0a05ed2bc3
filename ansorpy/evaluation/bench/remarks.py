"""What the table of a comparison leaves open: times in doubt, and times that do not add up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ansorpy.evaluation.bench.turns import Timing, unit_of
from ansorpy.evaluation.tables import Table

__all__ = ["account", "doubts"]


def doubts(timings: Mapping[str, Timing]) -> Iterator[str]:
    """Lines about engines beside which a tuner may have run, or whose medians did not settle."""
    disputed = [name for name, timing in timings.items() if not timing.undisputed]
    if disputed:
        yield f"a tuner may have used the machine while {', '.join(disputed)} ran"
    for name, timing in timings.items():
        if not timing.settled:
            unit, per_ms = unit_of(timing.bursts_ms[0])
            low, high = (ms * per_ms for ms in timing.bursts_ms)
            yield (
                f"the median of {name} did not settle: those of its {len(timing.bursts_s)} bursts "
                f"are {low:.3g} to {high:.3g} {unit}; something else may use the cores"
            )


def account(run_ms: float, inside_ms: float | None, alone_ms: float | None) -> Table | None:
    """How the time of one run adds up from what its kernels took alone; None if that is unknown.

    Args:
        run_ms: Time of one run.
        inside_ms: Sum of the calls' times within runs; None if it was not measured.
        alone_ms: Sum of the times that their programs took alone while tuning; None if unknown.
    """
    steps: list[tuple[str, float]] = []
    reached = 0.0
    for what, ms in (
        ("kernels, each alone, while tuning", alone_ms),
        ("in a run their data come from other caches", inside_ms),
        ("between kernels, and the call from Python", run_ms),
    ):
        if ms is not None:
            steps.append((what, ms - reached))
            reached = ms
    if len(steps) < 2:
        return None
    if inside_ms is None:
        steps[-1] = ("data from other caches, between kernels, and the call", steps[-1][1])
    elif alone_ms is None:
        steps[0] = ("kernels, in a run", steps[0][1])
    unit, per_ms = unit_of(run_ms)
    rows = [(what, f"{ms * per_ms:{'+' if n else ''}.3f}", f"{ms / run_ms:.0%}")
            for n, (what, ms) in enumerate(steps)]  # fmt: skip
    rows.append(("one run", f"{run_ms * per_ms:.3f}", "100%"))
    heading = ("one run of ansorpy", unit, "share")
    return Table("", heading, tuple(rows), frozenset(heading[1:]))
