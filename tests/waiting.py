"""Waiting in tests: for other threads and processes, or by a clock that nothing else moves."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Clock", "comes_true"]

_PATIENCE_S = 30.0


def comes_true(condition: Callable[[], bool]) -> bool:
    """Whether *condition* holds within half a minute: a busy machine may be slow to get there."""
    end = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@dataclass
class Clock:
    """Stands still but for those who sleep; no sleep is shorter than a millisecond."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 1e-3)
