"""Convert integer index expressions to linear forms, and linear forms to instructions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ansorpy.codegen.llvm.emit.affine import (
    Affine,
    Symbol,
    constant,
    from_lane_values,
    lane_values,
    symbol,
)
from ansorpy.codegen.llvm.emit.arithmetic import divided, integer_binary
from ansorpy.codegen.llvm.emit.text import Value, int_vector
from ansorpy.ir.analysis.affine import common_quotient
from ansorpy.ir.analysis.interval import INT64_MAX, INT64_MIN, bounds, decided
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Axis,
    Binary,
    BinaryOp,
    Call,
    Cast,
    CompareOp,
    Const,
    Expr,
    Function,
    Load,
    Select,
    SizeVar,
    Var,
    children,
)
from ansorpy.ir.operators import BITWISE

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.emitter import Emitter

__all__ = ["INDICES", "compare", "expanded", "index_value", "is_index", "scalar", "vector"]


def is_index(e: Emitter, expr: Expr) -> bool:
    """True for int64 arithmetic on loop variables only, which has a useful linear form."""
    return expr.dtype is DType.INT64 and not _has_data(e, expr)


def _has_data(e: Emitter, expr: Expr) -> bool:
    known = e.has_data.get(expr)
    if known is None:
        known = _is_data(expr) or any(_has_data(e, c) for c in children(expr))
        e.has_data[expr] = known
    return known


def _is_data(expr: Expr) -> bool:
    """True for nodes that have no linear form, whatever their operands are."""
    if isinstance(expr, Binary):
        return expr.op in BITWISE
    return isinstance(expr, Load | Cast) or (isinstance(expr, Call) and expr.fn is not Function.NEG)


def index_value(e: Emitter, index: Affine) -> Value:
    """*index* as an ``i64`` value: a scalar, or a vector if it differs between lanes."""
    if index.is_vector:
        return vector(e, index, "i64")
    text, level = scalar(e, index)
    return Value("i64", text, 0, level)


def scalar(e: Emitter, index: Affine) -> tuple[str, int]:
    """Emit a linear form without lanes; return its text and level."""
    total, level = "", 0
    for term, coef in sorted(index.terms.items(), key=lambda item: item[0].level):
        part = term.text
        if coef != 1:
            part = e.pure(term.level, f"mul i64 {part}, {DType.INT64.wrapped(coef)}")
        level = max(level, term.level)
        total = e.pure(level, f"add i64 {total}, {part}") if total else part
    if not total:
        return str(DType.INT64.wrapped(index.const)), 0
    if index.const:
        total = e.pure(level, f"add i64 {total}, {DType.INT64.wrapped(index.const)}")
    return total, level


def vector(e: Emitter, index: Affine, element: str) -> Value:
    """Emit a linear form as a vector of *element* (``i64``, or ``i32`` if bounds allow it)."""
    lanes = e.vector.width
    kind = f"<{lanes} x {element}>"
    base, level = scalar(e, Affine({s: c for s, c in index.terms.items() if not s.lanes}, 0))
    if element == "i32" and base.startswith("%"):
        base = e.pure(level, f"trunc i64 {base} to i32")
    total = e.widened(Value(element, base, 0, level), lanes)
    offsets = int_vector(element, map(DType.INT64.wrapped, lane_values(index, lanes)))
    total = Value(element, e.pure(level, f"add {kind} {total.text}, {offsets}"), lanes, level)
    for term, coef in index.terms.items():
        if not term.lanes:
            continue
        part, level = term.text, max(level, term.level)
        if element == "i32":
            part = e.pure(level, f"trunc <{lanes} x i64> {part} to {kind}")
        part = e.pure(level, f"mul {kind} {part}, splat ({element} {DType.INT64.wrapped(coef)})")
        total = Value(element, e.pure(level, f"add {kind} {total.text}, {part}"), lanes, level)
    return total


def _opaque(value: Value, low: int, high: int) -> Affine:
    """A linear form of the single symbol *value*, whose bounds are clipped to those of ``i64``."""
    low, high = max(low, INT64_MIN), min(high, INT64_MAX)
    return symbol(Symbol(value.text, low, high, value.level, value.lanes))


def _from_value(e: Emitter, expr: Expr) -> Affine:
    """An index that depends on data (a gather), computed in place."""
    value = e.value(expr)
    if not value.text.startswith("%") and not value.lanes:
        return constant(int(value.text))
    return _opaque(value, *bounds(expr, {}))


def _const(e: Emitter, expr: Const) -> Affine:
    return constant(int(expr.value))


def _var(e: Emitter, expr: Var) -> Affine:
    return e.env[expr]


def _multiply(e: Emitter, a: Affine, b: Affine) -> Affine:
    if b.is_constant:
        return a.scaled(b.const)
    if a.is_constant:
        return b.scaled(a.const)
    if not a.terms and not b.terms:
        count = len(a.lanes or b.lanes or ())
        pairs = zip(lane_values(a, count), lane_values(b, count), strict=True)
        return from_lane_values([x * y for x, y in pairs])
    ends = [x * y for x in a.bounds() for y in b.bounds()]
    return _instruction(e, "mul", a, b, min(ends), max(ends))


def expanded(e: Emitter, index: Affine, stride: Affine) -> Affine:
    """``index * stride``, multiplied term by term, so that each product is hoisted by itself."""
    if index.lanes is not None or stride.is_constant:
        return _multiply(e, index, stride)
    total = stride.scaled(index.const)
    for term, coef in index.terms.items():
        total = total + _multiply_term(e, term, stride).scaled(coef)
    return total


def _multiply_term(e: Emitter, term: Symbol, stride: Affine) -> Affine:
    total = symbol(term).scaled(stride.const)
    for other, coef in stride.terms.items():
        total = total + _multiply(e, symbol(term), symbol(other)).scaled(coef)
    return total


def _instruction(e: Emitter, op: str, a: Affine, b: Affine, low: int, high: int) -> Affine:
    """Apply an ``i64`` instruction (or two-operand intrinsic) to two linear forms."""
    left, right = e.unified(index_value(e, a), index_value(e, b))
    level = max(left.level, right.level)
    if op in ("smin", "smax"):
        name = e.module.intrinsic(op, left.type, 2)
        text = f"call {left.type} @{name}({left.typed}, {right.typed})"
    else:
        text = f"{op} {left.type} {left.text}, {right.text}"
    return _opaque(Value("i64", e.pure(level, text), left.lanes, level), low, high)


def _floordiv(e: Emitter, a: Affine, b: Affine) -> Affine:
    if not b.is_constant or b.const <= 0:
        return _in_signed(e, BinaryOp.FLOORDIV, a, b)
    even, rest = a.divided(b.const)
    rest, divisor = rest.reduced(b.const)
    if not _can_lift(rest, divisor):
        return _in_signed(e, BinaryOp.FLOORDIV, a, b)
    return even + _quotient(e, rest, divisor)


def _floormod(e: Emitter, a: Affine, b: Affine) -> Affine:
    if not b.is_constant or b.const <= 0:
        return _in_signed(e, BinaryOp.FLOORMOD, a, b)
    _, rest = a.divided(b.const)
    smaller, divisor = rest.reduced(b.const)
    if not _can_lift(smaller, divisor):
        return _in_signed(e, BinaryOp.FLOORMOD, a, b)
    low, high = smaller.bounds()
    if not smaller.terms or common_quotient(low, high, divisor) is not None:
        return rest - _quotient(e, smaller, divisor).scaled(b.const)
    if smaller.is_vector or divisor != b.const:
        return rest - _quotient(e, smaller, divisor).scaled(b.const)
    lift = -(low // divisor) * divisor
    return _instruction(e, "urem", rest.shifted(lift), b, 0, b.const - 1)


def _can_lift(a: Affine, divisor: int) -> bool:
    """True if *a* plus the multiple of *divisor* that makes it non-negative fits in ``i64``."""
    low, high = a.bounds()
    return high - low // divisor * divisor <= INT64_MAX


def _quotient(e: Emitter, a: Affine, divisor: int) -> Affine:
    """``floor(a / divisor)``: constant per lane, decided by bounds, or one unsigned division."""
    if not a.terms:
        count = len(a.lanes) if a.lanes is not None else 1
        return from_lane_values([v // divisor for v in lane_values(a, count)])
    low, high = a.bounds()
    common = common_quotient(low, high, divisor)
    if common is not None:
        return constant(common)
    least = low // divisor
    lifted = a.shifted(-least * divisor)  # never negative, so unsigned division is exact
    most = high // divisor - least
    return _instruction(e, "udiv", lifted, constant(divisor), 0, most).shifted(least)


def _in_signed(e: Emitter, which: BinaryOp, a: Affine, b: Affine) -> Affine:
    """A floor quotient or remainder for any *a* and *b*, without splitting *a* into terms."""
    low, high = b.bounds()
    divide = divided if low > 0 or high < -1 else integer_binary
    found = divide(e, which, DType.INT64, index_value(e, a), index_value(e, b))
    if which is BinaryOp.FLOORMOD:
        return _opaque(found, min(low + 1, 0), max(high - 1, 0))
    if low <= 0 <= high:
        return _opaque(found, INT64_MIN, INT64_MAX)
    ends = [x // y for x in a.bounds() for y in (low, high)]
    return _opaque(found, min(ends), max(ends))


def _extremum(op: str) -> Callable[[Emitter, Affine, Affine], Affine]:
    pick = min if op == "smin" else max

    def emit(e: Emitter, a: Affine, b: Affine) -> Affine:
        low, high = (a - b).bounds()
        if high <= 0:
            return a if op == "smin" else b
        if low >= 0:
            return b if op == "smin" else a
        (a_low, a_high), (b_low, b_high) = a.bounds(), b.bounds()
        if not a.terms and not b.terms:
            count = len(a.lanes or b.lanes or (0,))
            pairs = zip(lane_values(a, count), lane_values(b, count), strict=True)
            return from_lane_values([pick(x, y) for x, y in pairs])
        return _instruction(e, op, a, b, pick(a_low, b_low), pick(a_high, b_high))

    return emit


_BINARY: Mapping[BinaryOp, Callable[[Any, Affine, Affine], Affine]] = {
    BinaryOp.ADD: lambda e, a, b: a + b,
    BinaryOp.SUB: lambda e, a, b: a - b,
    BinaryOp.MUL: _multiply,
    BinaryOp.FLOORDIV: _floordiv,
    BinaryOp.FLOORMOD: _floormod,
    BinaryOp.MIN: _extremum("smin"),
    BinaryOp.MAX: _extremum("smax"),
}


def _binary(e: Emitter, expr: Binary) -> Affine:
    handler = _BINARY.get(expr.op)
    if handler is None:
        return _from_value(e, expr)
    return handler(e, e.index(expr.a), e.index(expr.b))


def _call(e: Emitter, expr: Call) -> Affine:
    if expr.fn is Function.NEG:
        return e.index(expr.args[0]).scaled(-1)
    return _from_value(e, expr)


def _select(e: Emitter, expr: Select) -> Affine:
    cond = e.value(expr.cond)
    if cond.text in ("true", "false"):
        return e.index(expr.then if cond.text == "true" else expr.other)
    if not is_index(e, expr):
        return _from_value(e, expr)
    then, other = e.index(expr.then), e.index(expr.other)
    lanes = cond.lanes or (e.lanes.width if e.lanes and (then.is_vector or other.is_vector) else 0)
    a, b = (e.widened(index_value(e, side), lanes) for side in (then, other))
    level = max(cond.level, a.level, b.level)
    text = e.pure(level, f"select {cond.typed}, {a.typed}, {b.typed}")
    low = min(then.bounds()[0], other.bounds()[0])
    high = max(then.bounds()[1], other.bounds()[1])
    return _opaque(Value("i64", text, lanes, level), low, high)


INDICES: Mapping[type, Callable[[Any, Any], Affine]] = {
    Const: _const,
    Var: _var,
    Axis: _var,
    SizeVar: _var,
    Binary: _binary,
    Call: _call,
    Select: _select,
    Cast: _from_value,
    Load: _from_value,
}


_PREDICATE = {
    CompareOp.LT: "slt", CompareOp.LE: "sle", CompareOp.GT: "sgt",
    CompareOp.GE: "sge", CompareOp.EQ: "eq", CompareOp.NE: "ne",
}  # fmt: skip


def compare(e: Emitter, op: CompareOp, a: Affine, b: Affine) -> Value:
    """``a op b``: a literal if bounds decide it, else an ``i1`` (per lane if needed)."""
    gap = a - b
    known = decided(op, *gap.bounds())
    if known is not None:
        return Value("i1", "true" if known else "false", 0, 0)
    if gap.is_vector and not gap.terms:
        bits = [int(bool(decided(op, v, v))) for v in lane_values(gap, e.vector.width)]
        return Value("i1", int_vector("i1", bits), e.vector.width, 0)
    if gap.is_vector:
        low, high = gap.bounds()
        narrow = low >= -(1 << 31) and high < (1 << 31) and not gap.has_vector_symbol
        left = vector(e, gap, "i32" if narrow else "i64")
        text = f"icmp {_PREDICATE[op]} {left.type} {left.text}, zeroinitializer"
        return Value("i1", e.pure(left.level, text), left.lanes, left.level)
    text, level = scalar(e, Affine(gap.terms, 0))
    return Value("i1", e.pure(level, f"icmp {_PREDICATE[op]} i64 {text}, {-gap.const}"), 0, level)
