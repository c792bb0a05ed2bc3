"""Random loop programs: any mixture of loop kinds, odd extents, guards and index arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from ansorpy.ir.builders import select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Binary, BinaryOp, Const, Expr, Load, ReduceKind, Var, const
from ansorpy.ir.loops import Alloc, Buffer, For, If, Program, Scope, Seq, Stmt, Store
from tests.codegen.programs import KINDS, buffer, program

T = TypeVar("T")
TYPES = (DType.FLOAT32, DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64, DType.INT8)
COMBINE = (BinaryOp.MUL, BinaryOp.MUL, BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MAX, BinaryOp.MIN)


class RandomProgram:
    """One statement (a reduction or elementwise) over C, and an epilogue from C to D."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = self.pick(TYPES)
        self.space = [self.between(1, 9) for _ in range(self.between(1, 4))]
        if self.chance(0.6):
            self.space[-1] = self.pick((3, 5, 7, 16, 17, 20, 24, 32, 33, 40))
        self.reduced = [self.between(1, 6) for _ in range(self.between(0, 3))]
        self.a = buffer("A", self.between(1, 40), self.between(1, 40), dtype=self.dtype)
        self.b = buffer("B", self.between(1, 40), dtype=self.dtype)
        self.c, self.d = (buffer(name, *self.space, dtype=self.dtype) for name in "CD")

    def between(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, options: Sequence[T]) -> T:
        return options[self.between(0, len(options))]

    def number(self, value: int) -> Const:
        return Const(float(value) if self.dtype.is_float else value, self.dtype)

    def build(self) -> Program:
        self.space_vars = self.variables("s", self.space)
        main = self.reduction() if self.reduced else self.elementwise()
        e = self.variables("f", self.space)
        value = Binary(BinaryOp.MAX, Load(self.c, e), self.number(-5))
        epilogue = self.nest(e, self.space, Store(self.d, e, value, None), self.chance(0.3))
        return program(Seq((main, epilogue)), [self.a, self.b], [self.c, self.d])

    def variables(self, prefix: str, extents: Sequence[object]) -> tuple[Var, ...]:
        return tuple(Var(f"{prefix}{n}") for n in range(len(extents)))

    def nest(
        self, variables: Sequence[Var], extents: Sequence[int], body: Stmt, parallel: bool = False
    ) -> Stmt:
        kinds = [self.pick("suuvv") for _ in variables]
        if parallel and kinds:
            kinds[0] = "p"
        for var, extent, kind in reversed(list(zip(variables, extents, kinds, strict=True))):
            body = For(var, extent, KINDS[kind], body)
        return body

    def elementwise(self) -> Stmt:
        stmt: Stmt = Store(self.c, self.space_vars, self.value(self.space_vars), None)
        if self.chance(0.2):
            cond = self.space_vars[-1] * 2 + self.space_vars[0] < self.between(1, 60)
            other = Store(self.c, self.space_vars, self.number(2), None)
            stmt = If(cond, stmt, other)
        return self.nest(self.space_vars, self.space, stmt, self.chance(0.5))

    def reduction(self) -> Stmt:
        split = self.between(0, len(self.space) + 1)
        outer, inner = self.space_vars[:split], self.space_vars[split:]
        local = bool(inner) and self.chance(0.4)
        tile = buffer("L", *self.space[split:], dtype=self.dtype, scope=Scope.LOCAL)
        target, indices = (tile, inner) if local else (self.c, self.space_vars)
        kind = self.pick((ReduceKind.SUM, ReduceKind.SUM, ReduceKind.MAX, ReduceKind.MIN))
        fresh = self.variables("q", inner)
        renamed = dict(zip(inner, fresh, strict=True))
        start = Store(target, tuple(renamed.get(v, v) for v in indices), self.number(0), None)
        parts = [
            self.nest(fresh, self.space[split:], start),
            self.accumulation(target, indices, inner, self.space[split:], kind),
        ]
        if local:
            e = self.variables("e", inner)
            copy = Store(self.c, (*outer, *e), Load(tile, e), None)
            parts.append(self.nest(e, self.space[split:], copy))
        stmt: Stmt = Alloc(tile, Seq(tuple(parts))) if local else Seq(tuple(parts))
        for var, extent in reversed(list(zip(outer, self.space[:split], strict=True))):
            stmt = For(var, extent, KINDS[self.pick("su" if local else "suv")], stmt)
        return stmt

    def accumulation(
        self, target: Buffer, indices: tuple[Var, ...], inner: Sequence[Var],
        extents: Sequence[int], kind: ReduceKind,
    ) -> Stmt:  # fmt: skip
        reduced = self.variables("r", self.reduced)
        stmt: Stmt = Store(target, indices, self.value((*self.space_vars, *reduced)), kind)
        if self.chance(0.15):
            limit: Expr = self.space_vars[-1] + (reduced[0] if self.chance(0.5) else 0)
            stmt = If(limit < self.between(1, 20), stmt, None)
        order = [*zip(inner, extents, strict=True), *zip(reduced, self.reduced, strict=True)]
        if self.chance(0.5):
            order = [order[n] for n in self.rng.permutation(len(order))]
        else:
            order = order[len(inner) :] + order[: len(inner)]
        return self.nest([v for v, _ in order], [n for _, n in order], stmt)

    def value(self, variables: Sequence[Var]) -> Expr:
        a, b = self.read(self.a, variables), self.read(self.b, variables)
        value: Expr = Binary(self.pick(COMBINE), a, b)
        if self.chance(0.2):
            value = select(a < b, value, self.read(self.a, variables))
        if self.chance(0.1):
            value = select(variables[-1] < self.between(1, 30), value, self.read(self.a, variables))
        return value

    def read(self, source: Buffer, variables: Sequence[Var]) -> Expr:
        indices = [self.index(variables, extent) for extent in source.shape]
        last = source.shape[-1]
        if self.chance(0.4):
            indices[-1] = self.pick((variables[-1], variables[-1] * 2)) % last
        if self.chance(0.25):
            moved = self.pick(variables) * self.between(1, 3) + self.between(-4, 5)
            inside = (moved >= 0) & (moved < last)
            load = Load(source, (*indices[:-1], moved))
            return select(inside, load, self.number(self.pick((0, 3))))
        return Load(source, tuple(indices))

    def index(self, variables: Sequence[Var], extent: int) -> Expr:
        total: Expr = const(self.between(0, extent))
        for var in variables:
            if self.chance(0.7):
                total = total + var * self.between(-2, 4)
        if self.chance(0.2):
            total = total // self.between(1, 6)
        if self.chance(0.1):
            total = Binary(BinaryOp.MIN, total, variables[0] * 3)
        return total % extent
