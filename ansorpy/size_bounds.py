"""Bounds of sizes that only the data of a call tell, as users write them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import TypeAlias

from ansorpy.errors import UsageError
from ansorpy.quantities import is_whole

__all__ = [
    "AnyBound", "Bound", "bound_flag", "bound_of", "bound_text", "known_bounds", "named_bound",
    "written_bounds",
]  # fmt: skip

Bound: TypeAlias = tuple[tuple[int, int], ...]
"""The smallest and largest value of each element of a tensor; a single pair is for all of them."""

AnyBound: TypeAlias = int | str | tuple[int, int] | Sequence[int | tuple[int, int]]
"""A :data:`Bound` as users write it: 100 is 0..100; a list has one for each element."""

_HINT = "write trip=100, trip=1..100, or shape=1,3,1..640 for a tensor of several numbers"
_IN_PYTHON = "give 100, (1, 100), or a list of these for a tensor of several numbers"


def named_bound(item: str) -> tuple[str, Bound]:
    """``("trip", ((0, 100),))`` from ``trip=100``: a tensor, and its bound.

    Raises:
        UsageError: It is no name and bound, or a range is empty.
    """
    name, _, text = item.rpartition("=")
    if not name:
        raise UsageError(f"{item!r} is not a tensor and its bound", hint=_HINT)
    return name, bound_of(text, name)


def known_bounds(given: Mapping[str, AnyBound] | None) -> dict[str, Bound]:
    """The bounds in *given* by the names of tensors.

    Raises:
        UsageError: As :func:`bound_of`.
    """
    return {name: bound_of(bound, name) for name, bound in (given or {}).items()}


def written_bounds(given: Mapping[str, AnyBound] | None) -> dict[str, str]:
    """The bounds in *given* as text, which another process understands: ``{"trip": "0..100"}``.

    Raises:
        UsageError: As :func:`bound_of`.
    """
    return {name: bound_text(bound, name) for name, bound in (given or {}).items()}


def bound_of(given: AnyBound, name: str) -> Bound:
    """The bound *given* of the tensor *name*.

    Raises:
        UsageError: It is none, or a range is empty.
    """
    if isinstance(given, str):
        return tuple(_parsed(part, name) for part in given.split(","))
    if isinstance(given, list | tuple) and given and not _is_range(given):
        return tuple(_range(part, name) for part in given)
    return (_range(given, name),)


def _is_range(given: object) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and all(map(is_whole, given))


def _parsed(text: str, name: str) -> tuple[int, int]:
    match = re.fullmatch(r"(?:(\d{1,18})\.\.)?(\d{1,18})", text)
    if match is None:
        raise UsageError(f"{text!r} is not a bound of {name}", hint=_HINT)
    return _plain(int(match[1] or 0), int(match[2]), name)


def _range(given: object, name: str) -> tuple[int, int]:
    if is_whole(given):
        return _plain(0, int(given), name)
    if isinstance(given, tuple) and _is_range(given):
        return _plain(int(given[0]), int(given[1]), name)
    raise UsageError(f"{given!r} is not a bound of {name}", hint=_IN_PYTHON)


def _plain(low: int, high: int, name: str) -> tuple[int, int]:
    if not 0 <= low <= high or high == 0:
        raise UsageError(f"{name} cannot be from {low} to {high}", hint=_IN_PYTHON)
    return low, high


def bound_text(given: AnyBound, name: str) -> str:
    """``0..100``: the bound *given* of the tensor *name*, as :func:`named_bound` reads it.

    Raises:
        UsageError: As :func:`bound_of`.
    """
    return ",".join(f"{low}..{high}" for low, high in bound_of(given, name))


def bound_flag(name: str) -> str:
    """How to give a bound of the tensor *name*."""
    return f"--bound {quote(f'{name}=N')} (bounds= in Python)"
