"""Counting the operations of each kind in one evaluation of a body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ansorpy.ir.conditions import skip_condition
from ansorpy.ir.dots import DOTS
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

_SIMPLE_CALLS = (
    Function.NEG, Function.ABS, Function.FLOOR, Function.CEIL, Function.ROUND, Function.WORD,
    Function.BITS, Function.FROM_BITS,
)  # fmt: skip
_CALL_FIELD = (
    dict.fromkeys(_SIMPLE_CALLS, "otherfunc") | dict.fromkeys(DOTS, "mul") | {Function.FMA: "mad"}
)


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
    """Operations of one evaluation; ``ints`` includes index arithmetic."""

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

    With ``indices=False``, arithmetic inside load indices is left out, and so is the condition that
    guards a sum, which is tested outside the loops that do not change it.
    A choice by an axis's value (Winograd's rows) evaluates one branch: the costliest counts.
    Source: the op counters of TVM's per-store features (``mad`` is always 0 there too).
    """
    counts = OpCounts()
    for expr, times in _occurrences(body, indices=indices).items():
        _count(counts, expr, times)
    return counts


def _count(counts: OpCounts, expr: Expr, times: int) -> None:
    match expr:
        case Binary(op, _, _) if op in (BinaryOp.AND, BinaryOp.OR):
            counts.bools += times
        case Binary(op, _, _):
            _add(counts, expr, _BINARY_FIELD[op], times)
        case Compare(_, a, _):
            _add(counts, a, "cmp", times)
        case Reduce(kind, _, _):
            _add(counts, expr, _COMBINER_FIELD[kind], times)
        case Call(Function.NOT, _):
            counts.bools += times
        case Call(fn, _):
            _add(counts, expr, _CALL_FIELD.get(fn, "mathfunc"), times)
        case Select():
            counts.selects += times
        case Cast():
            _add(counts, expr, "otherfunc", times)
        case _:
            pass


def _add(counts: OpCounts, typed: Expr, name: str, times: int) -> None:
    group = counts.floats if typed.dtype.is_float else counts.ints
    setattr(group, name, getattr(group, name) + times)


def _occurrences(body: Expr, *, indices: bool) -> dict[Expr, int]:
    """How often each node of *body* is evaluated if nothing is shared; 1 for *body* itself.

    Linear in distinct nodes: all parents of a node are counted before the node itself.
    """
    tree = _Evaluated(indices)
    times = dict.fromkeys(_parents_first(body, tree.below), 0)
    times[body] = 1
    for expr in times:
        for child in tree.below(expr):
            times[child] += times[expr]
    return {expr: n for expr, n in times.items() if not _chooses_by_axis(expr)}


class _Evaluated:
    """Determines which operands of a node are evaluated with it."""

    def __init__(self, indices: bool) -> None:
        self.indices = indices
        self._sizes: dict[Expr, int] = {}

    def below(self, e: Expr) -> Sequence[Expr]:
        if isinstance(e, Select) and _chooses_by_axis(e):
            return (max(e.then, e.other, key=self._size),)
        if isinstance(e, Reduce) and not self.indices:
            return (_summed(e),)
        return () if isinstance(e, Load) and not self.indices else children(e)

    def _size(self, e: Expr) -> int:
        found = self._sizes.get(e)
        if found is None:
            own = int(not _chooses_by_axis(e))
            found = self._sizes[e] = own + sum(self._size(child) for child in self.below(e))
        return found


def _parents_first(body: Expr, below: Callable[[Expr], Sequence[Expr]]) -> list[Expr]:
    done: dict[Expr, None] = {}
    stack: list[tuple[Expr, bool]] = [(body, False)]
    while stack:
        expr, expanded = stack.pop()
        if expanded:
            done[expr] = None
        elif expr not in done:
            stack.append((expr, True))
            stack.extend((child, False) for child in below(expr))
    return list(reversed(done))


def _summed(e: Reduce) -> Expr:
    """The source of *e*, without the condition that guards it if that loads nothing."""
    skips = isinstance(e.source, Select) and skip_condition(e) is not None
    return e.source.then if skips and isinstance(e.source, Select) else e.source


def _loads(e: Expr) -> bool:
    return any(isinstance(part, Load) for part in walk(e))


def _chooses_by_axis(e: Expr) -> bool:
    """True for a choice by comparing loop indices with a constant, which unrolling decides."""
    match e:
        case Select(Compare(CompareOp.EQ, _, Const()) as cond, _, _):
            return not _loads(cond)
        case _:
            return False
