"""Running sums and products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from ansorpy.arrays import Array
from ansorpy.ir.dtypes import as_dtype
from ansorpy.ir.expr import Expr, as_expr
from ansorpy.ir.extents import most
from ansorpy.ir.loops import Buffer, Stmt
from ansorpy.ir.routines.base import Routine
from ansorpy.ir.routines.statements import (
    at,
    in_vectors,
    let,
    local,
    loop,
    over_rows,
    put,
    seq,
)

__all__ = ["Prefixes"]

_LANES = 16
"""Columns that are added at a time."""


@dataclass(frozen=True)
class Prefixes(Routine):
    """Along the middle axis of ``x[rows, n, columns]``, the sum of all elements up to each one.

    It is the *product* if that is set.  The element itself is left out if *exclusive*.  If
    *backwards*, these are the elements from it to the last.
    """

    name: ClassVar[str] = "prefixes"
    product: bool = False
    exclusive: bool = False
    backwards: bool = False

    def body(self, inputs: Sequence[Buffer], output: Buffer) -> Stmt:
        (x,) = inputs
        rows, n, columns = x.shape
        first = as_expr(1 if self.product else 0, x.dtype)

        def element(total: Buffer, row: Expr, place: Expr, column: Expr) -> Stmt:
            value = at(x, row, place, column).astype(total.dtype)
            old = at(total, column)
            new = put(total, column, value=old * value if self.product else old + value)
            told = put(output, row, place, column, value=old.astype(output.dtype))
            return seq(told, new) if self.exclusive else seq(new, told)

        def of_row(row: Expr) -> Stmt:
            def each(body: Callable[[Expr], Stmt]) -> Stmt:
                return in_vectors(columns, _LANES, body)

            def step(total: Buffer, i: Expr) -> Stmt:
                place = as_expr(n) - 1 - i if self.backwards else i
                return let("place", place, lambda p: each(partial(element, total, row, p)))

            def run(total: Buffer) -> Stmt:
                begin = each(lambda c: put(total, c, value=first.astype(total.dtype)))
                return seq(begin, loop("i", n, partial(step, total)))

            return local("total", (most(columns),), x.dtype.of_sums, run)

        return over_rows(rows, n * columns, of_row)

    def evaluate(self, inputs: Sequence[Array], shape: tuple[int, ...]) -> Array:
        x = inputs[0]
        summed = x.astype(as_dtype(x.dtype).of_sums.numpy)
        turned = summed[:, ::-1] if self.backwards else summed
        run = (np.cumprod if self.product else np.cumsum)(turned, axis=1, dtype=summed.dtype)
        if self.exclusive:
            first = np.full_like(run[:, :1], 1 if self.product else 0)
            run = np.concatenate([first, run[:, :-1]], axis=1)
        return (run[:, ::-1] if self.backwards else run).astype(x.dtype)
