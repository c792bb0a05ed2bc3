"""Loops as primitives take them: by name, or as objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ansorpy.errors import ScheduleError
from ansorpy.schedule.stage import Iter
from ansorpy.schedule.steps.base import Count, Number

__all__ = ["IterRef", "count_of", "factors_of", "loop_name", "loop_names"]

IterRef: TypeAlias = Iter | str


def loop_name(it: IterRef) -> str:
    """The name of a loop."""
    if not isinstance(it, Iter | str):
        raise ScheduleError(
            f"{it!r} is not a loop", hint="give the name of one loop, or what a primitive returned"
        )
    return it if isinstance(it, str) else it.name


def loop_names(iters: Sequence[IterRef]) -> tuple[str, ...]:
    """The names of loops."""
    if isinstance(iters, Iter | str):
        raise ScheduleError(f"loops are given as a list, not as {iters!r}", hint="pass [loop]")
    return tuple(loop_name(it) for it in iters)


def factors_of(inner: Sequence[Number]) -> tuple[Number, ...]:
    """The inner factors of a split."""
    if not isinstance(inner, Sequence):
        raise ScheduleError(f"inner factors are a tuple, not {inner!r}", hint=f"pass ({inner!r},)")
    return tuple(inner)


def count_of(count: Count | None, names: tuple[str, ...]) -> Count:
    """*count*, or the number of all *names*."""
    return len(names) if count is None else count
