"""Multi-armed bandits whose rewards change over time."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from math import inf, log, sqrt

import numpy as np

__all__ = ["SlidingWindowUCB"]


@dataclass
class SlidingWindowUCB:
    """Picks the arm with the highest upper confidence bound on its recent mean reward.

    Only the last ``window`` rewards count, those of all arms together.  An arm's bound is the mean
    of its rewards among them plus ``c * sqrt(log(min(t, window)) / n)`` after *t* rewards, *n* of
    them its own in the window.  An arm that has none is picked first.  Rewards lie in 0..1.

    Paper: Garivier and Moulines, "On Upper-Confidence Bound Policies for Switching Bandit
    Problems", ALT 2011; window 256 and c 0.25 from HARL, ICPP 2022.

    Args:
        arms: Number of arms.
    """

    arms: int
    window: int = 256
    c: float = 0.25
    _recent: deque[tuple[int, float]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._recent = deque(maxlen=self.window)

    def tell(self, arm: int, reward: float) -> None:
        """Add the reward of a pull of *arm*."""
        self._recent.append((arm, reward))

    def pick(self, rng: np.random.Generator, among: Collection[int] | None = None) -> int:
        """The arm to pull next, out of *among* (all arms if None); ties are drawn at random."""
        bounds = self.bounds()
        arms = sorted(range(self.arms) if among is None else among)
        best = max(bounds[arm] for arm in arms)
        first = [arm for arm in arms if bounds[arm] == best]
        return first[int(rng.integers(len(first)))]

    def bounds(self) -> list[float]:
        """The upper confidence bound of each arm; infinite without a reward in the window."""
        pulls, total = [0] * self.arms, [0.0] * self.arms
        for arm, reward in self._recent:
            pulls[arm] += 1
            total[arm] += reward
        width = self.c * sqrt(log(max(len(self._recent), 1)))
        return [s / n + width / sqrt(n) if n else inf for s, n in zip(total, pulls, strict=True)]
