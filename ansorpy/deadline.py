"""A deadline for a block of work, checked by code that waits for a worker's answer.

>>> with until(0.0):
...     left_s() <= 0
True
>>> left_s()
inf
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

__all__ = ["OutOfTime", "left_s", "until"]

_moment: ContextVar[float] = ContextVar("moment", default=inf)


class OutOfTime(Exception):
    """The deadline passed before there was an answer."""


@contextmanager
def until(moment: float) -> Iterator[None]:
    """Set a deadline for the enclosed work at *moment*, by ``time.monotonic()``.

    An earlier deadline of an outer block still applies.
    """
    token = _moment.set(min(moment, _moment.get()))
    try:
        yield
    finally:
        _moment.reset(token)


def left_s() -> float:
    """Seconds until the deadline: negative once it has passed, infinite without one."""
    return _moment.get() - time.monotonic()
