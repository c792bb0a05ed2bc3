"""Bandits."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ansorpy.search.bandits import SlidingWindowUCB


def pulls(bandit: SlidingWindowUCB, means: list[float], n: int, seed: int = 0) -> list[int]:
    """The arms pulled in *n* turns, with rewards around *means*."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        arm = bandit.pick(rng)
        bandit.tell(arm, float(np.clip(rng.normal(means[arm], 0.05), 0, 1)))
        found.append(arm)
    return found


def test_bounds_are_the_papers() -> None:
    bandit = SlidingWindowUCB(3, window=4, c=0.5)
    assert bandit.bounds() == [np.inf] * 3
    for arm, reward in ((0, 1.0), (1, 0.2), (0, 0.5), (0, 0.3)):
        bandit.tell(arm, reward)
    width = 0.5 * np.sqrt(np.log(4))
    assert bandit.bounds()[:2] == pytest.approx([0.6 + width / np.sqrt(3), 0.2 + width])
    bandit.tell(1, 0.4)  # the first reward leaves the window
    assert bandit.bounds()[:2] == pytest.approx(
        [0.4 + width / np.sqrt(2), 0.3 + width / np.sqrt(2)]
    )


def test_every_arm_is_pulled_once_and_then_mostly_the_best() -> None:
    found = pulls(SlidingWindowUCB(4), [0.2, 0.9, 0.4, 0.1], 100)
    assert sorted(found[:4]) == [0, 1, 2, 3]
    assert Counter(found)[1] > 70


def test_a_change_is_followed_within_a_window_but_not_by_one_that_forgets_nothing() -> None:
    def late(window: int) -> float:
        """How often the better arm is pulled in the last quarter of a window after a change."""
        bandit = SlidingWindowUCB(2, window)
        pulls(bandit, [0.9, 0.3], 512, seed=1)
        return float(np.mean(pulls(bandit, [0.1, 0.6], 64, seed=2)[-16:]))

    assert late(64) > 0.8 > 0.2 > late(1 << 20)


def test_only_the_arms_asked_for_are_picked() -> None:
    bandit, rng = SlidingWindowUCB(5), np.random.default_rng(0)
    assert {bandit.pick(rng, {1, 3}) for _ in range(30)} == {1, 3}
    bandit.tell(1, 1.0)
    assert bandit.pick(rng, [1]) == 1 and bandit.pick(rng, [1, 3]) == 3
