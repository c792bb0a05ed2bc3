"""Waiting for other threads and processes, which a busy machine may keep off its cores."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["comes_true"]

_PATIENCE_S = 30.0


def comes_true(condition: Callable[[], bool]) -> bool:
    """Whether *condition* holds, now or within half a minute."""
    end = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
