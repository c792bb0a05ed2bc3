"""How many operations of each kind one evaluation of a body costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ansorpy.ir.expr import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    Expr,
    Function,
    Load,
    Reduce,
    ReduceKind,
    Select,
    children,
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


def count_ops(body: Expr, *, indices: bool = True) -> OpCounts:
    """Count the operations of *body*; a reduction adds one combining step.

    With ``indices=False`` the arithmetic inside load indices is left out.
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
    yield expr
    if isinstance(expr, Load) and not indices:
        return
    for child in children(expr):
        yield from _walk(child, indices)
