"""Random numbers by position: the draws of a counter-based generator, which keeps no state."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.graph.ops.sizes import SizesOp
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, as_expr

__all__ = ["Uniform", "key_of"]

_HALF = 1 << 32
_WHOLE = 1 << 64


@dataclass(frozen=True)
class Uniform(SizesOp):
    """Multiples of ``2**-24`` from 0 to below 1, each equally likely: one draw for each position.

    Draws are those of the generator Squares with four rounds, whose counter is the row-major
    position; other keys, which :func:`key_of` makes, give other sequences.

    **Paper:** Widynski, Squares: A Fast Counter-Based RNG, arXiv:2004.06278.
    """

    key: int = 1

    @property
    def element_type(self) -> DType:
        return DType.FLOAT32

    def element(self, position: Expr) -> Expr:
        """The upper 24 of the 32 bits of the draw at *position*, as a fraction."""
        key = as_expr(self.key, DType.UINT64)
        first = position.astype(DType.UINT64) * key
        second = first + key
        x = _turned(first * first + first)
        x = _turned(x * x + second)
        x = _turned(x * x + first)
        bits = (x * x + second) // (_HALF << 8)
        return bits.astype(DType.INT32).astype(DType.FLOAT32) * (1.0 / (1 << 24))


def _turned(x: Expr) -> Expr:
    """*x* with its halves of 32 bits exchanged."""
    return x // _HALF + x * _HALF


def key_of(seed: int, stream: int) -> int:
    """A key for *seed* and the number of a stream of draws: irregular bits, odd in both halves.

    It is a step of SplitMix64, whose state starts at the seed and advances once for each stream.
    """
    state = (seed + (stream + 1) * 0x9E3779B97F4A7C15) % _WHOLE
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % _WHOLE
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) % _WHOLE
    return (state ^ (state >> 31)) | _HALF | 1
