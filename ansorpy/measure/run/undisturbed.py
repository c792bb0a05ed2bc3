"""Repeat measurements that were taken while the machine was disturbed."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

__all__ = ["CREDIT_S", "Undisturbed"]

T = TypeVar("T")

CREDIT_S = 3.0
"""Maximum seconds spent on consecutive repeats."""

_SHARE = 0.25
"""Repeats take at most this fraction of the other measurements' time.  On a machine that is always
busy, nearly every measurement is disturbed and must be accepted."""


class Undisturbed:
    """Repeats a measurement if *is_disturbed* returns True before or after it, within limits.

    ``repeated`` counts the repeats.
    """

    def __init__(
        self, is_disturbed: Callable[[], bool], clock: Callable[[], float] = perf_counter
    ) -> None:
        self.repeated = 0
        self._is_disturbed = is_disturbed
        self._clock = clock
        self._left_s = 0.0

    def __call__(self, measured: Callable[[], T]) -> T:
        """Call *measured*, repeatedly if need be, and return the result of the last call."""
        before = self._is_disturbed()
        start = self._clock()
        found = measured()
        self._left_s = min(CREDIT_S, self._left_s + _SHARE * (self._clock() - start))
        while True:
            after = self._is_disturbed()
            if not (before or after) or self._left_s <= 0:
                return found
            before, start = after, self._clock()
            found = measured()
            self.repeated += 1
            self._left_s -= self._clock() - start
