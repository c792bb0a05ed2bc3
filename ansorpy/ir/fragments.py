"""Fragments: the layout of a matrix in the registers of a warp or warpgroup (four warps).

An index along one dimension is written in mixed radix, outermost digit first; each digit counts
lanes or registers.  For example, the row of a 16 x 16 operand of ``mma.m16n8k16`` has the digits
``(hi, lo)`` of extents 2 and 8: ``lo`` counts lanes in steps of 4, ``hi`` registers in steps of 2.
A tensor larger than one fragment is a grid of fragments, and each lane holds its share of each.
The lanes that share a fragment are a team.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

__all__ = [
    "GROUP", "WARP", "Digit", "Fragment", "fragment_lanes", "fragment_registers", "fragment_shape",
    "in_lane", "in_register", "in_tile",
]  # fmt: skip

WARP = 32
"""Number of lanes of a warp."""

GROUP = 4 * WARP
"""Number of lanes of a warpgroup."""


class Digit(NamedTuple):
    """A digit of an index with *extent* values, each *lane* lanes or *register* registers apart."""

    extent: int
    lane: int = 0
    register: int = 0


Fragment = tuple[tuple[Digit, ...], ...]
"""The digits of each dimension, outermost first; none if the fragment has one element along it."""


def fragment_shape(fragment: Fragment) -> tuple[int, ...]:
    """Number of elements of one fragment along each dimension."""
    return tuple(prod(digit.extent for digit in digits) for digits in fragment)


def fragment_lanes(fragment: Fragment) -> int:
    """Number of lanes of the team that shares one fragment: a warp or a warpgroup."""
    return prod(digit.extent for digits in fragment for digit in digits if digit.lane)


def fragment_registers(fragment: Fragment) -> int:
    """Number of elements of one fragment that each lane holds."""
    return prod(digit.extent for digits in fragment for digit in digits if digit.register)


def in_tile(fragment: Fragment, indices: Sequence[Any]) -> tuple[Any, ...]:
    """The fragment of the grid that holds an element; indices may be expressions or arrays."""
    shape = fragment_shape(fragment)
    return tuple(i if n == 1 else i // n for i, n in zip(indices, shape, strict=True))


def in_lane(fragment: Fragment, indices: Sequence[Any]) -> Any:
    """The lane that holds an element."""
    return _numbered(fragment, indices, "lane")


def in_register(fragment: Fragment, indices: Sequence[Any]) -> Any:
    """The position of an element among the elements of its fragment that its lane holds."""
    return _numbered(fragment, indices, "register")


def _numbered(fragment: Fragment, indices: Sequence[Any], what: str) -> Any:
    total: Any = 0
    for digits, index in zip(fragment, indices, strict=True):
        inner = 1
        for digit in reversed(digits):
            step = getattr(digit, what)
            if step:
                total = total + index // inner % digit.extent * step
            inner *= digit.extent
    return total
