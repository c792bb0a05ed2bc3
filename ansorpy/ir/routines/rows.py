"""The order of rows that are compared element by element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ansorpy.arrays import Array
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, as_expr
from ansorpy.ir.extents import most
from ansorpy.ir.loops import Buffer, Stmt
from ansorpy.ir.routines.base import Routine
from ansorpy.ir.routines.keys import has_place, key_of
from ansorpy.ir.routines.sorting import Items, sort, with_items
from ansorpy.ir.routines.statements import at, let, local, loop, put, seq
from ansorpy.ir.routines.top import order_of

__all__ = ["RowOrder"]


@dataclass(frozen=True)
class RowOrder(Routine):
    """The places of the rows of ``x[n, m]``, of which the first that differs in an earlier column
    comes first; equal rows keep their order.

    The rows are sorted by each column, the last one first.
    """

    name: ClassVar[str] = "row_order"

    def body(self, inputs: Sequence[Buffer], output: Buffer) -> Stmt:
        (x,) = inputs
        n, m = x.shape

        def by_column(items: Items, before: Buffer, step: Expr) -> Stmt:
            def key(place: Expr, i: Expr) -> Stmt:
                value = at(x, place, as_expr(m) - 1 - step)
                return items.put(0, i, key_of(value, i, largest=False), i)

            def kept(i: Expr) -> Stmt:
                return let(
                    "was", items.place(0, i), lambda was: put(output, i, value=at(before, was))
                )

            return seq(
                loop("i", n, lambda i: put(before, i, value=at(output, i))),
                loop("i", n, lambda i: let("place", at(output, i), lambda place: key(place, i))),
                sort(items, n),
                loop("i", n, kept),
            )

        def run(items: Items, before: Buffer) -> Stmt:
            return seq(
                loop("i", n, lambda i: put(output, i, value=i)),
                loop("step", m, lambda step: by_column(items, before, step)),
            )

        return with_items(
            most(n), has_place(x.dtype),
            lambda items: local("before", (most(n),), DType.INT64, lambda b: run(items, b)),
        )  # fmt: skip

    def evaluate(self, inputs: Sequence[Array], shape: tuple[int, ...]) -> Array:
        (x,) = inputs
        order = np.arange(shape[0])
        for column in range(x.shape[1] - 1, -1, -1):
            order = order[order_of(x[order, column][None], largest=False)[0]]
        return order.astype(np.int64)
