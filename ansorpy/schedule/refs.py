"""Loops as primitives take them: by name, or as objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ansorpy.schedule.stage import Iter
from ansorpy.schedule.steps.base import Count

__all__ = ["IterRef", "count_of", "loop_name", "loop_names"]

IterRef: TypeAlias = Iter | str


def loop_name(it: IterRef) -> str:
    """The name of a loop."""
    return it if isinstance(it, str) else it.name


def loop_names(iters: Sequence[IterRef]) -> tuple[str, ...]:
    """The names of loops."""
    return tuple(loop_name(it) for it in iters)


def count_of(count: Count | None, names: tuple[str, ...]) -> Count:
    """*count*, or the number of all *names*."""
    return len(names) if count is None else count
