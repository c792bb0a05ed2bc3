"""Index arithmetic in C, in the narrow index type where bounds prove that it suffices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansorpy.codegen.clike.code import ATOM, MULTIPLY, UNARY, Code
from ansorpy.codegen.clike.operators import WRAPPING, chosen, converted, infix
from ansorpy.codegen.clike.writer import Writer
from ansorpy.errors import CodegenError
from ansorpy.ir.analysis.interval import INT64_MAX, INT64_MIN
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Const,
    Expr,
    Function,
    Load,
    Select,
    SizeVar,
    Var,
    walk,
)
from ansorpy.ir.loops import Buffer
from ansorpy.ir.operators import BITWISE

__all__ = ["flat_index", "index", "is_choice_of_numbers", "is_index"]

_INT_MAX = (1 << 31) - 1


def is_index(e: Expr) -> bool:
    """Return whether *e* is int64 arithmetic on variables only, which seldom overflows."""
    if e.dtype is not DType.INT64:
        return False
    return not any(isinstance(x, Load) or x.dtype.is_float or _is_no_index(x) for x in walk(e))


def _is_no_index(e: Expr) -> bool:
    """Whether *e* is written as other values are: bit operations, and quotients rounded to zero."""
    return isinstance(e, Binary) and (e.op in BITWISE or e.op is BinaryOp.DIV)


def flat_index(e: Writer, buffer: Buffer, indices: Sequence[Expr]) -> Expr:
    """The offset of *indices* in *buffer*, in elements, before swizzling."""
    return e.simplified(buffer.offset(indices))


def index(e: Writer, expr: Expr) -> Code:
    """Emit *expr* (int64) as C.

    Raises:
        CodegenError: It is not index arithmetic.
    """
    write = _INDEX.get(type(expr))
    if write is None:
        raise CodegenError(f"an index cannot contain a {type(expr).__name__}")
    return write(e, expr)


def _const(e: Writer, expr: Const) -> Code:
    value = int(expr.value)
    if value == INT64_MIN:  # no type has its magnitude
        return Code(f"(-{INT64_MAX}{e.indices.suffix} - 1)", ATOM, True)
    wide = abs(value) > e.indices.most
    text = f"{value}{e.indices.suffix}" if wide else f"{value}"
    return Code(text, ATOM if value >= 0 else UNARY, wide)


def _var(e: Writer, expr: Var) -> Code:
    return e.variables[expr]


_DIVISIONS = {BinaryOp.FLOORDIV: ("/", "floor_div"), BinaryOp.FLOORMOD: ("%", "floor_mod")}


def _binary(e: Writer, expr: Binary) -> Code:
    if _is_no_index(expr):
        found = e.value(expr)
        return Code(found.text, found.level, True)
    a, b = index(e, expr.a), index(e, expr.b)
    if not b.wide:
        a = _widened(e, expr, a)
    wide = a.wide or b.wide
    if expr.op in WRAPPING:
        return infix(expr.op, a, b, wide=wide)
    if expr.op in _DIVISIONS:
        return _division(e, expr, a, b)
    if expr.op in (BinaryOp.MIN, BinaryOp.MAX):
        return Code(e.integer_call(expr.op.value, wide, a, b), ATOM, wide)
    raise CodegenError(f"an index cannot contain {expr.op.value}")


def _widened(e: Writer, expr: Expr, operand: Code) -> Code:
    """Convert *operand* of *expr* to the width that the result needs."""
    if operand.wide or e.fits(expr):
        return operand
    return converted(e.indices.wide, operand, wide=True)


def _division(e: Writer, expr: Binary, a: Code, b: Code) -> Code:
    """Use C's own division, which rounds towards zero, if neither side is negative."""
    sign, helper = _DIVISIONS[expr.op]
    wide = a.wide or b.wide
    if e.bounds(expr.a)[0] >= 0 and e.bounds(expr.b)[0] > 0:
        return Code(f"{a.at(MULTIPLY)} {sign} {b.at(MULTIPLY + 1)}", MULTIPLY, wide)
    return Code(e.integer_call(helper, wide, a, b), ATOM, wide)


def _call(e: Writer, expr: Call) -> Code:
    if expr.fn is Function.NEG:
        x = _widened(e, expr, index(e, expr.args[0]))
        return Code(f"-{x.at(UNARY + 1)}", UNARY, x.wide)
    if expr.fn is Function.ABS:
        x = _widened(e, expr, index(e, expr.args[0]))
        return Code(e.integer_call("abs", x.wide, x), ATOM, x.wide)
    raise CodegenError(f"an index cannot contain {expr.fn.value}")


def _select(e: Writer, expr: Select) -> Code:
    cond, then, other = e.value(expr.cond), index(e, expr.then), index(e, expr.other)
    if is_choice_of_numbers(expr) and e.indices.most > _INT_MAX:
        then = converted(e.indices.narrow, then)
    return chosen(cond, then, other, wide=then.wide or other.wide)


def is_choice_of_numbers(expr: Select) -> bool:
    """Whether both sides are literals, which C takes for an ``int`` if they are small."""
    return isinstance(expr.then, Const) and isinstance(expr.other, Const)


def _converted(e: Writer, expr: Cast | Load) -> Code:
    """Use a value of the program as an index."""
    inner = expr.x if isinstance(expr, Cast) else expr
    if inner.dtype.is_float:
        found = e.value(expr)
        return Code(found.text, found.level, True)
    if isinstance(expr, Cast) and expr.type is DType.INT64 and inner.dtype is DType.INT64:
        return index(e, inner)
    found = e.value(inner)
    is_int = inner.dtype.bits < 32 or inner.dtype in (DType.INT32, DType.BOOL)
    if is_int and e.indices.most == _INT_MAX:
        return Code(found.text, found.level)
    return converted(e.indices.wide, found, wide=not is_int)


_INDEX: Mapping[type[Expr], Callable[[Writer, Any], Code]] = {
    Const: _const, Var: _var, SizeVar: _var, Binary: _binary, Call: _call, Select: _select,
    Cast: _converted, Load: _converted,
}  # fmt: skip
