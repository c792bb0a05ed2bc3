"""Declared hardware instructions: what they compute, so that programs using them can be checked.

An instruction is data: the shape of the tile each operand covers and a function on those tiles.
Code generators add how it is emitted, under the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ansorpy.errors import UsageError

__all__ = ["Intrinsic", "declare", "intrinsic"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Intrinsic:
    """One instruction.  Operand 0 is written; it is read too when ``accumulates``.

    Args:
        tiles: Shape of each operand's tile, along the last dimensions of its buffer.
        compute: Takes the tiles that are read, each ``(n, *tile)`` for n independent uses, and
            returns operand 0's new tiles.
    """

    name: str
    tiles: tuple[tuple[int, ...], ...]
    compute: Callable[[Sequence[Array]], Array]
    accumulates: bool = False


_DECLARED: dict[str, Intrinsic] = {}


def declare(instruction: Intrinsic) -> Intrinsic:
    """Make *instruction* known by its name; returns it.

    Raises:
        UsageError: Another instruction has that name.
    """
    if _DECLARED.setdefault(instruction.name, instruction) is not instruction:
        raise UsageError(f'an instruction named "{instruction.name}" is declared already')
    return instruction


def intrinsic(name: str) -> Intrinsic:
    """The instruction declared as *name*.

    Raises:
        UsageError: There is none.
    """
    found = _DECLARED.get(name)
    if found is None:
        raise UsageError(f'no instruction named "{name}" is declared', hint="call declare() first")
    return found


def _vnni(tiles: Sequence[Array]) -> Array:
    accumulator, a, b = tiles
    a = a.astype(np.int32).reshape(-1, 16, 4)
    return np.asarray(accumulator + (a * b.astype(np.int32).reshape(-1, 16, 4)).sum(2))


# AVX512-VNNI: sixteen int32 sums of four products of an unsigned and a signed byte.
declare(Intrinsic("vpdpbusd", ((16,), (64,), (64,)), _vnni, accumulates=True))
