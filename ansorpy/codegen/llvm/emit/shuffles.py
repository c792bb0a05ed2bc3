"""Strided and periodic reads as a few vector loads and shuffles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.emit.text import Value

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.emitter import Emitter

__all__ = ["MAX_WINDOWS", "assembled", "shuffled", "windows"]

MAX_WINDOWS = 4
"""With more loads than this, a gather is no slower (measured on Zen 5: 16 lanes, 10 cycles)."""

Window = tuple[int, int]  # first element, number of elements (a power of two)


def windows(lanes: list[int], width: int) -> list[Window] | None:
    """Vector loads that cover all of *lanes* without reading outside their range; None if too many.

    >>> windows([0, 2, 4, 6], 4)
    [(0, 4), (3, 4)]
    """
    low, high = min(lanes), max(lanes)
    size = min(width, 1 << ((high - low + 1).bit_length() - 1))
    if size < 2:
        return None
    found: list[Window] = []
    for lane in sorted(set(lanes)):
        if found and lane < found[-1][0] + size:
            continue
        if len(found) == MAX_WINDOWS:
            return None
        found.append((min(lane, high - size + 1), size))
    return found


def assembled(e: Emitter, parts: list[Value], found: list[Window], lanes: list[int]) -> Value:
    """Combine the loaded windows into the vector whose lane k is element ``lanes[k]``."""
    width = e.vector.width
    total: Value | None = None
    for part, (start, size) in zip(parts, found, strict=True):
        picked = [lane - start if 0 <= lane - start < size else None for lane in lanes]
        picked += [None] * (width - len(picked))
        part = shuffled(e, part, part, [p if p is not None else "poison" for p in picked])
        if total is None:
            total = part
            continue
        merge: list[int | str] = [width + k if p is not None else k for k, p in enumerate(picked)]
        total = shuffled(e, total, part, merge)
    assert total is not None
    return total


def shuffled(e: Emitter, a: Value, b: Value, order: Sequence[int | str]) -> Value:
    """Shuffle two vectors: pick elements of *a* followed by *b* by the numbers in *order*."""
    mask = "<" + ", ".join(f"i32 {k}" for k in order) + ">"
    text = f"shufflevector {a.typed}, {b.typed}, <{len(order)} x i32> {mask}"
    return e.text.value(a.element, len(order), text)
