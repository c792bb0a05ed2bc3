"""Expressions taken apart: what they are without operands or casts, and which operands fit."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Reduce,
    Select,
)

if TYPE_CHECKING:
    from ansorpy.ir.loops import Buffer
    from ansorpy.ir.tensor import Tensor

__all__ = ["LABELS", "misfit", "misplaced", "with_operands", "without_casts"]

LABELS: Mapping[type[Expr], Callable[[Any], Hashable]] = {
    Const: lambda e: (e.type, float(e.value).hex() if e.type.is_float else e.value),
    Binary: attrgetter("op"),
    Compare: attrgetter("op"),
    Call: attrgetter("fn"),
    Select: lambda e: None,
    Cast: attrgetter("type"),
    Load: attrgetter("source"),
    Reduce: attrgetter("kind", "axes"),
}
"""What distinguishes expressions of one class with the same operands; variables have no label.

Constants have equal labels if their bits are equal, or if both are NaN.
"""

_REBUILT: Mapping[type[Expr], Callable[[Any, Sequence[Expr]], Expr]] = {
    Binary: lambda e, operands: Binary(e.op, operands[0], operands[1]),
    Compare: lambda e, operands: Compare(e.op, *operands),
    Call: lambda e, operands: Call(e.fn, tuple(operands)),
    Select: lambda e, operands: Select(*operands),
    Cast: lambda e, operands: Cast(e.type, *operands),
    Load: lambda e, operands: Load(e.source, tuple(operands)),
    Reduce: lambda e, operands: Reduce(e.kind, operands[0], e.axes),
}


def with_operands(e: Expr, operands: Sequence[Expr]) -> Expr:
    """*e* with other *operands*, in the order of :func:`~ansorpy.ir.expr.children`."""
    return _REBUILT[type(e)](e, operands)


def without_casts(e: Expr) -> Expr:
    """*e* without conversions around it."""
    while isinstance(e, Cast):
        e = e.x
    return e


def misfit(e: Expr) -> str | None:
    """The problem with the number or the types of *e*'s own operands; None if there is none.

    >>> from ansorpy.ir.expr import Var
    >>> i = Var("i")
    >>> misfit(Binary(BinaryOp.AND, i, i < 3)), misfit(i + 1)
    ('the second operand is bool, not int64', None)
    """
    match e:
        case Binary(op, a, b):
            if op in (BinaryOp.AND, BinaryOp.OR) and a.dtype is b.dtype:
                return _unlike(a, DType.BOOL, f"an operand of {op.value}")
            if a.dtype is b.dtype and not op.accepts(a.dtype):
                return f"{op.value} of {a.dtype.value} values is not defined"
            return _unlike(b, a.dtype, "the second operand")
        case Reduce(kind, source, _) if not kind.combiner.accepts(source.dtype):
            return f"the {kind.value} of {source.dtype.value} values is not defined"
        case Compare(_, a, b):
            return _unlike(b, a.dtype, "the second operand")
        case Select(cond, then, other):
            if then.dtype is not other.dtype:
                return f"a select between {then.dtype.value} and {other.dtype.value}"
            return _unlike(cond, DType.BOOL, "the condition")
        case Call():
            return _misfit_call(e)
        case Load(source, indices):
            return misplaced(source, indices)
        case _:
            return None


def misplaced(source: Tensor | Buffer, indices: Sequence[Expr]) -> str | None:
    """The problem with the number or the types of *indices* into *source*; None if none."""
    if len(indices) != len(source.shape):
        return f"{source.name} has {len(source.shape)} dimensions, got {len(indices)}"
    for index in indices:
        if index.dtype is not DType.INT64:
            return f"{source.name} is indexed with a {index.dtype.value}"
    return None


def _misfit_call(e: Call) -> str | None:
    name = e.fn.value
    if len(e.args) not in e.fn.arities:
        wanted = " or ".join(map(str, e.fn.arities))
        return f"{name} takes {wanted} operands, got {len(e.args)}"
    first = e.args[0].dtype
    for arg in e.args:
        if arg.dtype is not first:
            return _unlike(arg, first, f"an operand of {name}")
    return None if e.fn.accepts(first) else f"{name} of {first.value} values is not defined"


def _unlike(e: Expr, wanted: DType, what: str) -> str | None:
    return None if e.dtype is wanted else f"{what} is {e.dtype.value}, not {wanted.value}"
