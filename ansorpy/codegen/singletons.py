"""Objects that a process has one of, however many of its threads ask for them first."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from threading import RLock
from typing import TypeVar, TypeVarTuple

__all__ = ["singleton"]

_Ts = TypeVarTuple("_Ts")
_R = TypeVar("_R")


def singleton(make: Callable[[*_Ts], _R]) -> Callable[[*_Ts], _R]:
    """Return *make* with one result for equal arguments, which lives as long as the process.

    ``functools.cache`` alone runs *make* in each thread that asks before the first result is there,
    and drops all results but the last while addresses in them are in use.
    """
    kept, lock = cache(make), RLock()

    @wraps(make)
    def get(*args: *_Ts) -> _R:
        with lock:
            return kept(*args)

    return get
