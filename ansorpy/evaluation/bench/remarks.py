"""What the table of a comparison leaves open: unsettled medians, and times that do not add up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ansorpy.evaluation.bench.turns import Timing

__all__ = ["remarks", "unsettled"]


def unsettled(timings: Mapping[str, Timing]) -> Iterator[str]:
    """A line for each engine whose median had not settled when the rounds were over."""
    for name, timing in timings.items():
        if not timing.settled:
            low, high = timing.bursts_ms
            yield (
                f"the median of {name} did not settle in {len(timing.bursts_s)} bursts: theirs are "
                f"{low:.3g} to {high:.3g} ms; something else may use the cores"
            )


def remarks(run_ms: float, inside_ms: float | None, alone_ms: float | None) -> Iterator[str]:
    """Why one run takes longer (or shorter) than the sum of its kernels.

    Args:
        run_ms: Time of one run.
        inside_ms: Sum of the calls' times within runs; None if it was not measured.
        alone_ms: Sum of the times that their programs took alone while tuning; None if unknown.
    """
    parts = [f"{run_ms:.3g} ms"]
    reasons = ["a run includes the call from Python"]
    if inside_ms is not None:
        parts.append(f"{inside_ms:.3g} ms in its kernels")
    if alone_ms is not None:
        parts.append(f"{alone_ms:.3g} ms in its kernels when each was timed alone, while tuning")
        reasons.append("a kernel alone finds its inputs and outputs in the caches of its cores")
    if len(parts) > 1:
        yield f"one run of ansorpy: {', '.join(parts)}"
        yield f"these differ because {' and '.join(reasons)} (docs/reference/cli.md)"
