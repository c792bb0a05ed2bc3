"""Elementary functions at every argument: a case is a function and a class of bit patterns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansorpy.ir.dtypes import DType
from tests.campaigns.campaign import Campaign, Tally
from tests.codegen.llvm.sweep import BLOCK, FUNCTIONS, PAIRS, Errors, Swept

__all__ = ["NUMBERS"]

Array = NDArray[Any]

_CLASSES = 256
"""Classes of float32 patterns, by their last byte: each has all signs, exponents and high bits."""
_SPREAD = 101  # odd: classes that follow each other have different last bits
_BLOCKS_OF_PAIRS = 64
_NAMES = (*FUNCTIONS, *PAIRS)
_HALF = [
    (name, dtype)
    for dtype in (DType.FLOAT16, DType.BFLOAT16)
    for name in _NAMES
    if not name.startswith("to ")
]
"""Functions of 16-bit floats, each of which is one case."""


def _case(rng: np.random.Generator, number: int) -> Tally:
    if number < len(_HALF):
        (name, dtype), bits = _HALF[number], np.arange(1 << 16, dtype=np.uint16)
    else:
        part, at = divmod(number - len(_HALF), len(_NAMES))
        name, dtype = _NAMES[at], DType.FLOAT32
        last = np.uint32(part * _SPREAD % _CLASSES)
        bits = np.arange(1 << 24, dtype=np.uint32) * np.uint32(_CLASSES) + last
    swept, what, seen = _swept(name, dtype), f"{name} of {dtype.value}", Tally()
    worst, wrong = Errors(0.0, (), 0), 0
    for x in _pairs(rng, dtype) if name in PAIRS else _blocks(bits.view(dtype.numpy)):
        found = swept.block(*x)
        worst, wrong = max(worst, found, key=lambda e: e.worst), wrong + found.wrong
        seen.kinds[what] += BLOCK
    where = f"at {' and '.join(f'{v:.9g}' for v in worst.where)}" if worst.where else "anywhere"
    assert not wrong, f"{what}: {wrong} special values are wrong"
    assert worst.worst <= swept.stated, f"{what}: {worst.worst:.4g} ULP {where}"
    seen.note(what, worst.worst, f"{where}; {swept.stated:.4g} is stated")
    return seen


@cache
def _swept(name: str, dtype: DType) -> Swept:
    return Swept(name, dtype)


def _blocks(x: Array) -> Iterator[tuple[Array]]:
    for start in range(0, x.size, BLOCK):
        yield (x[start : start + BLOCK],)


def _pairs(rng: np.random.Generator, dtype: DType) -> Iterator[tuple[Array, Array]]:
    """Any two patterns, or numbers of ordinary size; the second may be a whole or half one."""
    unsigned = f"u{dtype.bytes}"
    for n in range(_BLOCKS_OF_PAIRS):
        x, y = (rng.integers(0, 1 << dtype.bits, BLOCK, unsigned) for _ in range(2))
        x, y = x.view(dtype.numpy), y.view(dtype.numpy)
        if n % 4:
            x, y = (_ordinary(rng).astype(dtype.numpy) for _ in range(2))
        if n % 4 > 2:
            y = (rng.integers(-40, 41, BLOCK) / 2).astype(dtype.numpy)
        yield x, y


def _ordinary(rng: np.random.Generator) -> Array:
    found: Array = np.exp2(rng.uniform(-12, 8, BLOCK)) * rng.choice([-1, 1, 1, 1], BLOCK)
    return found


NUMBERS = Campaign(
    "the errors of elementary functions at every float32 and 16-bit float",
    _case,
    size=len(_HALF) + _CLASSES * len(_NAMES),
    short=6,
)
