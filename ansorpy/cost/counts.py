"""Counts of the operations of each kind in one evaluation of a body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ansorpy.ir.analysis.conditions import choices, skip_condition
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
    has_load,
    walk,
)
from ansorpy.ir.operators import BITWISE

__all__ = ["OpCounts", "count_choices", "count_ops"]

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
    **dict.fromkeys(BITWISE, "addsub"),
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

    Shared subexpressions count once.  With ``indices=False``, arithmetic inside load indices is
    left out, and so is the condition that guards a sum, which is tested outside the loops that do
    not change it.  A choice by an axis's value (Winograd's rows) evaluates only one branch, so the
    costliest branch counts.
    Source: the op counters of TVM's per-store features (``mad`` is always 0 there too).
    """
    counts = OpCounts()
    for expr in _Evaluated(indices).nodes(body):
        _count(counts, expr)
    return counts


@lru_cache(maxsize=1024)
def count_choices(body: Expr) -> OpCounts:
    """Count the operations of the conditions by which *body* chooses (:func:`.choices`).

    :func:`count_ops` counts them, too.
    """
    counts = OpCounts()
    asked = [e for e in walk(body) if isinstance(e, Select) and not _chooses_by_axis(e)]
    conditions = {e.cond for e in asked}.intersection(choices(body))
    for expr in {part for condition in conditions for part in walk(condition)}:
        _count(counts, expr)
    return counts


def _count(counts: OpCounts, expr: Expr) -> None:
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
            _add(counts, expr, _CALL_FIELD.get(fn, "mathfunc"))
        case Select():
            counts.selects += 1
        case Cast():
            _add(counts, expr, "otherfunc")
        case _:
            pass


def _add(counts: OpCounts, typed: Expr, name: str) -> None:
    group = counts.floats if typed.dtype.is_float else counts.ints
    setattr(group, name, getattr(group, name) + 1)


class _Evaluated:
    """Finds the nodes evaluated with a body: each counts once, as in the emitted code."""

    def __init__(self, indices: bool) -> None:
        self.indices = indices
        self._sizes: dict[Expr, int] = {}

    def nodes(self, body: Expr) -> Iterator[Expr]:
        """The distinct nodes that count."""
        seen: set[Expr] = set()
        stack = [body]
        while stack:
            e = stack.pop()
            if e not in seen:
                seen.add(e)
                stack.extend(self._below(e))
                if not _chooses_by_axis(e):
                    yield e

    def _below(self, e: Expr) -> Sequence[Expr]:
        if isinstance(e, Select) and _chooses_by_axis(e):
            return (max(e.then, e.other, key=self._size),)
        if isinstance(e, Reduce) and not self.indices:
            return (_summed(e),)
        return () if isinstance(e, Load) and not self.indices else children(e)

    def _size(self, e: Expr) -> int:
        if e not in self._sizes:
            self._sizes[e] = sum(1 for _ in self.nodes(e))
        return self._sizes[e]


def _summed(e: Reduce) -> Expr:
    """The source of *e*, without the condition that guards it if the condition loads nothing."""
    skips = isinstance(e.source, Select) and skip_condition(e) is not None
    return e.source.then if skips and isinstance(e.source, Select) else e.source


def _chooses_by_axis(e: Expr) -> bool:
    """True for a choice by comparing loop indices with a constant, which unrolling decides."""
    match e:
        case Select(Compare(CompareOp.EQ, _, Const()) as cond, _, _):
            return not has_load(cond)
        case _:
            return False
