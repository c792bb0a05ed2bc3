"""How many operations of each kind one evaluation of a body costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from ansorpy.ir.expr import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    Function,
    Load,
    Reduce,
    ReduceKind,
    Select,
    children,
    walk,
)

__all__ = ["OpCounts", "count_ops"]

_SIMPLE_CALLS = (Function.NEG, Function.ABS, Function.FLOOR, Function.CEIL, Function.ROUND)


@dataclass
class ClassCounts:
    """Operations on one class of types (floats, or integers)."""

    mad: int = 0
    addsub: int = 0
    mul: int = 0
    divmod: int = 0
    cmp: int = 0
    mathfunc: int = 0
    otherfunc: int = 0

    @property
    def total(self) -> int:
        return (
            self.mad + self.addsub + self.mul + self.divmod
            + self.cmp + self.mathfunc + self.otherfunc
        )  # fmt: skip


@dataclass
class OpCounts:
    """Operations of one evaluation, index arithmetic included under ``ints``."""

    floats: ClassCounts = field(default_factory=ClassCounts)
    ints: ClassCounts = field(default_factory=ClassCounts)
    bools: int = 0
    selects: int = 0


_BINARY_FIELD = {
    BinaryOp.ADD: "addsub",
    BinaryOp.SUB: "addsub",
    BinaryOp.MUL: "mul",
    BinaryOp.DIV: "divmod",
    BinaryOp.FLOORDIV: "divmod",
    BinaryOp.FLOORMOD: "divmod",
    BinaryOp.MIN: "cmp",
    BinaryOp.MAX: "cmp",
    BinaryOp.POW: "mathfunc",
}

_COMBINER_FIELD = {
    ReduceKind.SUM: "addsub",
    ReduceKind.PROD: "mul",
    ReduceKind.MAX: "cmp",
    ReduceKind.MIN: "cmp",
}


@lru_cache(maxsize=1024)
def count_ops(body: Expr, *, indices: bool = True) -> OpCounts:
    """Count the operations of *body*; a reduction adds one combining step.

    With ``indices=False`` the arithmetic inside load indices is left out.
    Of a choice by an axis's value (Winograd's rows) one evaluation makes one: the costliest counts.
    Source: the op counters of TVM's per-store features (``mad`` is always 0 there too).
    """
    counts = OpCounts()
    for expr in _walk(body, indices):
        match expr:
            case Binary(op, _, _) if op in (BinaryOp.AND, BinaryOp.OR):
                counts.bools += 1
            case Binary(op, _, _):
                _add(counts, expr, _BINARY_FIELD[op])
            case Compare(_, a, _):
                _add(counts, a, "cmp")
            case Reduce(kind, _, _):
                _add(counts, expr, _COMBINER_FIELD[kind])
            case Call(Function.NOT, _):
                counts.bools += 1
            case Call(fn, _):
                simple = fn in _SIMPLE_CALLS
                name = "mad" if fn is Function.FMA else "otherfunc" if simple else "mathfunc"
                _add(counts, expr, name)
            case Select():
                counts.selects += 1
            case Cast():
                _add(counts, expr, "otherfunc")
            case _:
                pass
    return counts


def _add(counts: OpCounts, typed: Expr, name: str) -> None:
    group = counts.floats if typed.dtype.is_float else counts.ints
    setattr(group, name, getattr(group, name) + 1)


def _walk(expr: Expr, indices: bool) -> Iterator[Expr]:
    if isinstance(expr, Select) and _chooses_by_axis(expr.cond):
        yield from _walk(max(expr.then, expr.other, key=lambda e: _size(e, indices)), indices)
        return
    yield expr
    if isinstance(expr, Load) and not indices:
        return
    for child in children(expr):
        yield from _walk(child, indices)


def _chooses_by_axis(cond: Expr) -> bool:
    """True for an equality of loop indices with a number: a constant once those are unrolled."""
    equal = isinstance(cond, Compare) and cond.op is CompareOp.EQ and isinstance(cond.b, Const)
    return equal and not any(isinstance(e, Load) for e in walk(cond))


def _size(expr: Expr, indices: bool) -> int:
    return sum(1 for _ in _walk(expr, indices))
