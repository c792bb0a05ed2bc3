"""Updates written to places of a tensor, or combined with what is there, one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ansorpy.arrays import Array
from ansorpy.ir.expr import Binary, Expr, as_expr
from ansorpy.ir.extents import AnyExtent, most
from ansorpy.ir.loops import Buffer, ForKind, Stmt
from ansorpy.ir.operators import BinaryOp
from ansorpy.ir.routines.base import Routine
from ansorpy.ir.routines.statements import at, let, loop, over_rows, put, seq, when

__all__ = [
    "SCATTERS", "ScatterLast", "ScatterMax", "ScatterMin", "ScatterProduct", "ScatterSum",
    "Scatters",
]  # fmt: skip

_COLUMNS = 64
"""Columns that one thread writes; fewer would share cache lines with other threads'."""


@dataclass(frozen=True)
class Scatters(Routine):
    """``x[batch, n, columns]`` with updates ``[batch, k, columns]`` at their places along ``n``.

    Places are ``[batch, k, columns]``, or ``[batch, k, 1]`` for whole rows; those below 0, or above
    all, are ignored.  Updates are applied in order, so of several the last one remains.
    """

    combiner: ClassVar[BinaryOp | None] = None
    """Combines what is there with the update, which replaces it if this is None."""

    def body(self, inputs: Sequence[Buffer], output: Buffer) -> Stmt:
        """Batches are in parallel, or else blocks of columns."""
        batch, n, columns = output.shape
        count = inputs[1].shape[1]
        if columns == 1 or most(batch) > 1:
            whole = (n + count) * columns
            return over_rows(batch, whole, lambda b: self._part(inputs, output, b, 0, columns))
        blocks = columns // _COLUMNS
        rest = columns - blocks * _COLUMNS

        def block(c: Expr) -> Stmt:
            return self._part(inputs, output, as_expr(0), c * _COLUMNS, _COLUMNS)

        parts = [loop("block", blocks, block, ForKind.PARALLEL)] if most(blocks) else []
        if most(rest):
            parts.append(self._part(inputs, output, as_expr(0), blocks * _COLUMNS, rest))
        return seq(*parts)

    def _part(
        self, inputs: Sequence[Buffer], output: Buffer, b: Expr, first: Expr | AnyExtent,
        columns: AnyExtent,
    ) -> Stmt:  # fmt: skip
        """The result in *columns* columns from the *first* on, for one batch."""
        x, places, updates = inputs
        n, by_row = x.shape[1], places.shape[2] == 1

        def copied(i: Expr) -> Stmt:
            return loop(
                "c", columns, lambda c: put(output, b, i, c + first, value=at(x, b, i, c + first))
            )

        def written(k: Expr, c: Expr, to: Expr) -> Stmt:
            old, new = at(output, b, to, c), at(updates, b, k, c)
            value = new if self.combiner is None else Binary(self.combiner, old, new)
            return put(output, b, to, c, value=value)

        def guarded(place: Expr, then: Callable[[Expr], Stmt]) -> Stmt:
            return let(
                "place", place,
                lambda p: when((p >= 0) & (p < as_expr(n)), let("to", p % n, then)),
            )  # fmt: skip

        def row(k: Expr) -> Stmt:
            return guarded(
                at(places, b, k, 0),
                lambda to: loop("c", columns, lambda c: written(k, c + first, to)),
            )

        def elements(k: Expr) -> Stmt:
            return loop(
                "c", columns,
                lambda c: guarded(
                    at(places, b, k, c + first), lambda to: written(k, c + first, to)
                ),
            )  # fmt: skip

        each = row if by_row else elements
        return seq(loop("i", n, copied), loop("k", places.shape[1], each))

    def evaluate(self, inputs: Sequence[Array], shape: tuple[int, ...]) -> Array:
        x, places, updates = inputs
        found = x.copy()
        to = np.broadcast_to(places, updates.shape)
        for k in range(updates.shape[1]):
            b, c = np.nonzero((to[:, k] >= 0) & (to[:, k] < x.shape[1]))
            where, new = (b, to[b, k, c], c), updates[b, k, c]
            combine = None if self.combiner is None else _IN_NUMPY[self.combiner]
            found[where] = new if combine is None else combine(found[where], new)
        return found


class ScatterLast(Scatters):
    """Of several updates, the last one remains."""

    name: ClassVar[str] = "scatter"


class ScatterSum(Scatters):
    """Updates are added."""

    name: ClassVar[str] = "scatter_sum"
    combiner = BinaryOp.ADD


class ScatterProduct(Scatters):
    """What is there is multiplied by updates."""

    name: ClassVar[str] = "scatter_product"
    combiner = BinaryOp.MUL


class ScatterMax(Scatters):
    """The largest remains."""

    name: ClassVar[str] = "scatter_max"
    combiner = BinaryOp.MAX


class ScatterMin(Scatters):
    """The smallest remains."""

    name: ClassVar[str] = "scatter_min"
    combiner = BinaryOp.MIN


SCATTERS: tuple[type[Scatters], ...] = (
    ScatterLast, ScatterSum, ScatterProduct, ScatterMax, ScatterMin,
)  # fmt: skip
_IN_NUMPY: Mapping[BinaryOp, np.ufunc] = {
    BinaryOp.ADD: np.add, BinaryOp.MUL: np.multiply, BinaryOp.MAX: np.maximum,
    BinaryOp.MIN: np.minimum,
}  # fmt: skip
