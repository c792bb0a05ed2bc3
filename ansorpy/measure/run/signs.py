"""Which inputs are positive, so that no sum cancels where small differences matter much.

A logarithm or a quotient of a sum whose terms cancel has few right digits, however it is computed:
two correct programs then give different results.  The sums that networks take logarithms of (powers
of a spectrum, probabilities) are of positive terms.
"""

from __future__ import annotations

from functools import lru_cache

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import (
    Binary,
    BinaryOp,
    Call,
    Cast,
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
from ansorpy.ir.tensor import ComputeOp

__all__ = ["positive_inputs"]

_POSITIVE = frozenset({Function.EXP, Function.ABS, Function.SQRT, Function.RSQRT})
_KEPT = frozenset({BinaryOp.ADD, BinaryOp.MUL, BinaryOp.DIV, BinaryOp.MIN, BinaryOp.POW})
"""Operations whose result has no sign if no operand has one."""


def positive_inputs(dag: ComputeDAG) -> frozenset[str]:
    """The names of the floats that a sum reads which cancels before a logarithm or a quotient."""
    sums = {
        op
        for stage in dag.computes
        for node in walk(stage.body)
        for op in _cancelling(stage, _sensitive(node))
    }
    needed = {op for stage in sums for op in dag.leading_to(stage)}
    return frozenset(
        arg.name for op in needed for arg in dag.reads(op) if arg in dag.args and arg.dtype.is_float
    )


def _sensitive(node: Expr) -> Expr | None:
    """The operand of *node* whose relative error is what matters."""
    if isinstance(node, Call) and node.fn is Function.LOG:
        return node.args[0]
    is_quotient = isinstance(node, Binary) and node.op is BinaryOp.DIV and node.dtype.is_float
    return node.b if isinstance(node, Binary) and is_quotient else None


def _cancelling(stage: ComputeOp, operand: Expr | None) -> set[ComputeOp]:
    """The stages up to *stage* with sums in *operand* whose terms may have both signs."""
    found: set[ComputeOp] = set()
    todo = [] if operand is None else [(stage, operand)]
    seen: set[ComputeOp] = set()
    while todo:
        op, e = todo.pop()
        if isinstance(e, Reduce) and e.kind is ReduceKind.SUM and not _is_positive(e.source):
            found.add(op)
        elif isinstance(e, Load) and isinstance(e.source, ComputeOp):
            if e.source not in seen:
                seen.add(e.source)
                todo.append((e.source, e.source.body))
        elif not isinstance(e, Load):
            todo += [(op, child) for child in children(e)]
    return found


@lru_cache(maxsize=1024)
def _is_positive(e: Expr) -> bool:
    """Whether *e* is never below zero, as its operations alone show."""
    match e:
        case Const(value):
            return value >= 0
        case Call(fn, _):
            return fn in _POSITIVE
        case Cast(_, x) | Reduce(_, x, _):
            return _is_positive(x)
        case Binary(BinaryOp.MUL, a, b) if a == b:
            return True
        case Binary(BinaryOp.POW, _, Const(n)) if n % 2 == 0:
            return True
        case Binary(BinaryOp.MAX, a, b):
            return _is_positive(a) or _is_positive(b)
        case Binary(op, a, b):
            return op in _KEPT and _is_positive(a) and _is_positive(b)
        case Select(_, then, other):
            return _is_positive(then) and _is_positive(other)
        case Load(source, _) if isinstance(source, ComputeOp):
            return _is_positive(source.body)
    return not e.dtype.is_float
