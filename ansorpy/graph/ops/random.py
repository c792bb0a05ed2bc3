"""Random numbers by position: the draws of a counter-based generator, which keeps no state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.graph.ops.base import Op, Pattern, Shape, TensorType
from ansorpy.graph.ops.movement import flat
from ansorpy.graph.ops.names import Names
from ansorpy.graph.ops.sizes import SizesOp
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, as_expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["Uniform", "UniformInLoop", "key_of", "start_of"]

_HALF = 1 << 32
_WHOLE = 1 << 64
_STEP = 0x9E3779B97F4A7C15
"""The step of SplitMix64: its multiples are far apart, however many there are."""


@dataclass(frozen=True)
class Uniform(SizesOp):
    """Multiples of ``2**-24`` from 0 to below 1, each equally likely: one draw for each position.

    Draws are those of the generator Squares with four rounds, whose counter is ``start`` plus the
    row-major position; other keys, which :func:`key_of` makes, give other sequences.

    **Paper:** Widynski, Squares: A Fast Counter-Based RNG, arXiv:2004.06278.
    """

    key: int = 1
    start: int = 0

    @property
    def element_type(self) -> DType:
        return DType.FLOAT32

    def element(self, position: Expr) -> Expr:
        counter = position.astype(DType.UINT64)
        if self.start != 0:
            counter = counter + as_expr(self.start, DType.UINT64)
        return _drawn(counter, self.key)


@dataclass(frozen=True)
class UniformInLoop(Op):
    """The draws of :class:`Uniform` with counters that differ from iteration to iteration.

    Inputs are the numbers of the iterations of loops around it, the outermost first: they lead from
    ``start`` to where the counters of this iteration begin, as :func:`start_of` does.
    """

    shape: Shape
    key: int = 1
    start: int = 0
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        if any(kind != TensorType((), DType.INT64) for kind in inputs):
            raise ValueError(f"numbers of iterations are {[str(kind) for kind in inputs]}")
        return TensorType(self.shape, DType.FLOAT32)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """``out[i] = draw(start + position of i)``."""

        def body(*i: Expr) -> Expr:
            start, step = (as_expr(number, DType.UINT64) for number in (self.start, _STEP))
            for number in inputs:
                start = (start + number[()].astype(DType.UINT64) + 1) * step
            return _drawn(start + flat(i, self.shape).astype(DType.UINT64), self.key)

        return compute(self.shape, body, name=names.fresh("uniform"))


def _drawn(counter: Expr, key: int) -> Expr:
    """The upper 24 of the 32 bits of the draw of *counter*, as a fraction."""
    factor = as_expr(key, DType.UINT64)
    first = counter * factor
    second = first + factor
    x = _turned(first * first + first)
    x = _turned(x * x + second)
    x = _turned(x * x + first)
    bits = (x * x + second) // (_HALF << 8)
    return bits.astype(DType.INT32).astype(DType.FLOAT32) * (1.0 / (1 << 24))


def _turned(x: Expr) -> Expr:
    """*x* with its halves of 32 bits exchanged."""
    return x // _HALF + x * _HALF


def start_of(numbers: Iterable[int]) -> int:
    """Where the counters of an iteration begin, by its number behind those of the loops around."""
    start = 0
    for number in numbers:
        start = (start + number + 1) * _STEP % _WHOLE
    return start


def key_of(seed: int, stream: int) -> int:
    """A key for *seed* and the number of a stream of draws: irregular bits, odd in both halves.

    It is a step of SplitMix64, whose state starts at the seed and advances once for each stream.
    """
    state = (seed + (stream + 1) * _STEP) % _WHOLE
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % _WHOLE
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) % _WHOLE
    return (state ^ (state >> 31)) | _HALF | 1
