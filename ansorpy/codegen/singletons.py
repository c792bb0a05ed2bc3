"""Thread-safe singletons: one object per process, even if several threads create it at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, wraps
from threading import RLock
from typing import TypeVar, TypeVarTuple

__all__ = ["singleton"]

_Ts = TypeVarTuple("_Ts")
_R = TypeVar("_R")


def singleton(make: Callable[[*_Ts], _R]) -> Callable[[*_Ts], _R]:
    """Cache the results of *make* by its arguments, for as long as the process lives.

    ``functools.cache`` alone would run *make* in each thread that calls it before the first result
    exists, and keep only the last of these results while addresses in the others are in use.
    A forked child has a lock of its own, as the thread that holds its parent's is not there.
    """
    kept, lock = cache(make), RLock()

    @wraps(make)
    def get(*args: *_Ts) -> _R:
        with lock:
            return kept(*args)

    def renew() -> None:
        nonlocal lock
        lock = RLock()

    os.register_at_fork(after_in_child=renew)
    return get
