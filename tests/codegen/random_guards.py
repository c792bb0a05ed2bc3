"""Random programs that read under conditions of every shape, in every mixture of two loops.

What is read is used once, twice or to decide, and some of it says where to read on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from ansorpy.ir.builders import all_of, select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Const, Expr, Load, Var, const
from ansorpy.ir.loops import Program, Stmt
from tests.codegen.programs import at, buffer, nest, program, put

__all__ = ["guarded_program"]

T = TypeVar("T")
TYPES = (DType.FLOAT32, DType.FLOAT32, DType.INT32, DType.FLOAT64, DType.BFLOAT16)
LOOPS = ("s{} v{}", "v{} v{}", "u{} v{}", "v{} u{}", "v{} s{}", "s{} u{}", "u{} s{}")


def guarded_program(seed: int) -> Program:
    """``out[i, j]`` chosen from elements of a row and of a table, most of them near an edge; places
    are of elements of the row."""
    return _Guarded(seed).build()


class _Guarded:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = self.pick(TYPES)
        self.row = buffer("row", self.between(1, 20), dtype=self.dtype)
        self.table = buffer("table", self.between(1, 9), self.between(1, 20), dtype=self.dtype)
        self.places = buffer("places", self.between(1, 20), dtype=DType.INT64)

    def between(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def pick(self, options: Sequence[T]) -> T:
        return options[self.between(0, len(options))]

    def build(self) -> Program:
        extents = self.between(1, 12), self.pick((3, 8, 11, 16, 17, 24, 33))
        out = buffer("out", *extents, dtype=self.dtype)
        loops = self.pick(LOOPS).format(*extents)

        def body(i: Var, j: Var) -> Stmt:
            return put(out, (i, j), self.value(i, j, 2))

        return program(nest(loops, body), [self.row, self.table, self.places], [out])

    def value(self, i: Var, j: Var, depth: int) -> Expr:
        if depth == 0:
            return self.pick((self.constant(), self.guarded(i, j)))
        if self.rng.random() < 0.5:
            return self.guarded(i, j)
        sides = self.value(i, j, depth - 1), self.value(i, j, depth - 1)
        return select(self.condition(i, j), *sides)

    def guarded(self, i: Var, j: Var) -> Expr:
        """An element where its indices are inside and more may have to hold, else a constant."""
        source = self.pick((self.row, self.table, self.places))
        indices = [self.index(i, j) for _ in source.shape]
        guards = [
            edge
            for index, extent in zip(indices, source.shape, strict=True)
            for edge in (index >= 0, index < extent)
        ]
        if self.rng.random() < 0.6:
            guards.insert(self.between(0, len(guards) + 1), self.condition(i, j))
        element = self.used(at(source, *indices))
        if self.rng.random() < 0.3:
            split = self.between(1, len(guards))
            inner = select(all_of(*guards[split:]), element, self.constant())
            return select(all_of(*guards[:split]), inner, self.constant())
        return select(all_of(*guards), element, self.constant())

    def used(self, element: Load) -> Expr:
        """A value made of *element*."""
        if element.source is self.places:
            element = at(self.row, element % self.row.shape[0])
        ways = (element, element * element, select(element > 1, element, self.constant()))
        return self.pick(ways)

    def index(self, i: Var, j: Var) -> Expr:
        """One that moves with a row, with a column, with both or with neither."""
        start = self.between(-3, 4)
        return self.pick((i + start, j + start, i + j + start, j - i, (i + j) // 2, const(start)))

    def condition(self, i: Var, j: Var) -> Expr:
        """One that is triangular, the same along a row or a column, or periodic."""
        limit = self.between(0, 24)
        return self.pick(
            (i + j < limit, i < limit, j < limit, i <= j, j % 3 < 2, (i * 3 + j) % 5 < 3)
        )

    def constant(self) -> Const:
        number = self.pick((0, 0, 0, 3))
        if not self.dtype.is_float:
            return Const(number, self.dtype)
        return Const(self.pick((float(number), -0.0)), self.dtype)
