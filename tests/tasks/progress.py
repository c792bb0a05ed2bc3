"""Tasks as schedulers see them, from the best times after each round."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.tasks.progress import TaskProgress

INF = float("inf")


def progress(
    *best_after: float,
    trials_after: Sequence[int] | None = None,
    flops: float = 1e6,
    alive: bool = True,
    since_gain: int = 0,
    class_key: str = "",
    least_s: float = 0.0,
    cost: float = 1.0,
    gradient: float = 1.0,
    share: float = 0.0,
    earlier: int = 0,
) -> TaskProgress:
    """Progress in rounds of eight trials by default."""
    trials = trials_after or [8 * (n + 1) for n in range(len(best_after))]
    return TaskProgress(
        best_after, trials, flops, alive, since_gain, class_key, least_s, cost, gradient, share,
        earlier=earlier,
    )  # fmt: skip
