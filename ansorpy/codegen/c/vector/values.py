"""Expressions that differ between lanes, as C vectors: one function a node kind.

Values that are the same in all lanes are scalars.  Conditions are vectors of int32: -1 where they
hold, else 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansorpy.codegen.c.arithmetic import helper_call
from ansorpy.codegen.c.emitter import Emitter
from ansorpy.codegen.c.expressions import branches, decided
from ansorpy.codegen.c.prelude import elementary_name
from ansorpy.codegen.c.types import computed_type, short_name
from ansorpy.codegen.c.vector.accesses import (
    is_safe,
    lane_by_lane,
    load,
    narrowed,
    scalar,
    splat,
    steps_of,
    vector_of,
)
from ansorpy.codegen.clike.code import ADD, ATOM, UNARY, Code
from ansorpy.codegen.clike.indices import is_index
from ansorpy.codegen.clike.operators import INFIX, chosen, compared, converted, infix
from ansorpy.codegen.clike.sharing import reads_twice, sharing
from ansorpy.codegen.unsupported import undefined
from ansorpy.ir.dots import DOTS
from ansorpy.ir.dtypes import DType
from ansorpy.ir.elementary.table import APPROXIMATIONS, ELEMENTARY
from ansorpy.ir.expr import (
    Axis,
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Function,
    Load,
    ReduceKind,
    Select,
    SizeVar,
    Var,
    has_load,
    walk,
)
from ansorpy.ir.operators import BITWISE, SHIFTS

__all__ = ["combined", "mask", "operand", "vector"]

_BITWISE = {BinaryOp.AND: "&", BinaryOp.MIN: "&", BinaryOp.OR: "|", BinaryOp.MAX: "|"}
_NAMES = {
    BinaryOp.MIN: "min", BinaryOp.MAX: "max", BinaryOp.DIV: "quotient",
    BinaryOp.FLOORDIV: "floor_div", BinaryOp.FLOORMOD: "floor_mod", BinaryOp.POW: "pow",
    BinaryOp.SHL: "shl", BinaryOp.SHR: "shr",
}  # fmt: skip
_UNSIGNED = {BinaryOp.FLOORDIV: "quotient", BinaryOp.FLOORMOD: "rest"}


def vector(e: Emitter, expr: Expr) -> Code:
    """All lanes of *expr*; a value that a statement uses several times gets a name."""
    varies, known = e.vector.varies(expr), e.known.get(expr)
    if not varies and (known is not None or _is_alike(e, expr)):
        return splat(e, e.value(expr), expr.dtype)
    if known is not None:
        return known
    if not varies or expr not in e.repeated:
        return _VECTORS[type(expr)](e, expr)
    found, name = _VECTORS[type(expr)](e, expr), e.names.fresh("t")
    e.line(f"const {vector_of(e, expr.dtype)} {name} = {found.text};")
    e.known[expr] = Code(name)
    return e.known[expr]


def _is_alike(e: Emitter, expr: Expr) -> bool:
    """True if *expr* is the same in all lanes and safe to compute whichever sides they choose."""
    return not e.vector.varies(expr) and is_safe(e, expr)


def operand(e: Emitter, expr: Expr) -> Code:
    """Emit *expr* as a vector, or as a scalar float if all lanes agree: C broadcasts it itself."""
    if expr.dtype.is_float and _is_alike(e, expr):
        return e.value(expr)
    return vector(e, expr)


def _index(e: Emitter, expr: Expr) -> Code:
    """Index arithmetic: the first lane's value plus constant steps of the other lanes."""
    start, steps = steps_of(e, expr)
    if steps is None or isinstance(start, Const):
        return lane_by_lane(e, expr)
    more = (str(steps[min(k, e.vector.active - 1)]) for k in range(e.vector.width))
    first = splat(e, scalar(e, start), DType.INT64)
    return Code(f"{first.text} + ({vector_of(e, DType.INT64)}){{{', '.join(more)}}}", ADD)


def _decided(e: Emitter, cond: Expr) -> tuple[bool, ...] | None:
    """The value of a condition in each lane, if bounds decide it in all; else None."""
    if has_load(cond):
        return None
    found = [e.simplified(e.vector.in_lane(cond, k)) for k in range(e.vector.width)]
    constants = [bool(x.value) for x in found if isinstance(x, Const)]
    return tuple(constants) if len(constants) == len(found) else None


def mask(e: Emitter, bits: Sequence[bool]) -> Code:
    """A condition that is known in each lane."""
    numbers = ", ".join("-1" if bit else "0" for bit in bits)
    return Code(f"({vector_of(e, DType.BOOL)}){{{numbers}}}", UNARY)


def _binary(e: Emitter, expr: Binary) -> Code:
    if is_index(expr) and not e.may_wrap(expr):
        return _index(e, expr)
    if expr.op in (BinaryOp.MIN, BinaryOp.MAX) or expr.dtype is DType.BOOL:
        # The helper tests whether its first operand is NaN, which no constant is.
        sides = (expr.b, expr.a) if isinstance(expr.b, Const) else (expr.a, expr.b)
        return binary(e, expr.op, expr.dtype, *(vector(e, x) for x in sides))
    if expr.op in SHIFTS and isinstance(expr.b, Const) and 0 <= expr.b.value < expr.dtype.bits:
        return _shifted(e, expr.op, expr.dtype, vector(e, expr.a), int(expr.b.value))
    all_lanes = operand if expr.op in INFIX else vector
    return binary(e, expr.op, expr.dtype, all_lanes(e, expr.a), all_lanes(e, expr.b))


def binary(e: Emitter, op: BinaryOp, dtype: DType, a: Code, b: Code) -> Code:
    """``a op b`` on vectors of values of *dtype*."""
    if dtype is DType.BOOL:
        return Code(f"({a.at(ATOM)} {_BITWISE[op]} {b.at(ATOM)})")
    if op in INFIX and (dtype.is_float or op is not BinaryOp.DIV):
        return _arithmetic(e, op, dtype, a, b)
    if op is BinaryOp.POW:
        return elementary(e, op, dtype, a, b)
    if op in BITWISE and op not in SHIFTS:
        return Code(f"({a.at(UNARY)} {op.value} {b.at(UNARY)})")
    unsigned = not dtype.is_float and not dtype.is_signed
    name = (_UNSIGNED if unsigned else _NAMES).get(op, _NAMES[op])
    return helper_call(e, f"{name}_{vector_of(e, dtype)}", a, b)


def _shifted(e: Emitter, op: BinaryOp, dtype: DType, a: Code, distance: int) -> Code:
    """A shift by a distance that leaves bits; those to the left are unsigned."""
    if op is BinaryOp.SHR or not dtype.is_signed:
        return Code(f"({a.at(UNARY)} {op.value} {distance})")
    shifted = f"({_unsigned(e, dtype)}){a.at(UNARY)} << {distance}"
    return Code(f"({vector_of(e, dtype)})({shifted})", UNARY)


def _arithmetic(e: Emitter, op: BinaryOp, dtype: DType, a: Code, b: Code) -> Code:
    """Sums and products; signed integers are computed as unsigned, so that they wrap around."""
    if dtype.is_float or not dtype.is_signed:
        return infix(op, a, b)
    kind, unsigned = vector_of(e, dtype), _unsigned(e, dtype)
    return converted(kind, infix(op, *(converted(unsigned, x) for x in (a, b))))


def _unsigned(e: Emitter, dtype: DType) -> str:
    """The C vector type of unsigned integers that are as wide as *dtype*."""
    kind = f"u{dtype.bits}x{e.vector.width}"
    e.need(kind)
    return kind


def _compare(e: Emitter, expr: Compare) -> Code:
    known = decided(expr)
    if known is not None:
        return splat(e, Code("true" if known else "false"), DType.BOOL)
    if expr.a.dtype is DType.BOOL:
        return _compared_conditions(e, expr)
    bits = _decided(e, expr)
    if bits is not None:
        return mask(e, bits)
    a, b = (vector(e, x) for x in (expr.a, expr.b))
    found = compared(expr.op.value, a, b)
    if expr.a.dtype.is_half or expr.a.dtype.bits == 32:
        return found
    return Code(f"__builtin_convertvector({found.text}, {vector_of(e, DType.BOOL)})")


def _compared_conditions(e: Emitter, expr: Compare) -> Code:
    """Compare conditions: they are 0 and -1, so the order is the reverse of 0 and 1."""
    a, b = vector(e, expr.b), vector(e, expr.a)
    return compared(expr.op.value, a, b)


def _call(e: Emitter, expr: Call) -> Code:
    if is_index(expr) and not e.may_wrap(expr):
        return _index(e, expr)
    fn, dtype = expr.fn, expr.args[0].dtype
    if fn is Function.FMA:
        a, b, c = (operand(e, arg) for arg in expr.args)
        product = binary(e, BinaryOp.MUL, dtype, a, b)
        return binary(e, BinaryOp.ADD, dtype, product, c)
    args = [vector(e, arg) for arg in expr.args]
    if fn in ELEMENTARY:
        return elementary(e, fn, dtype, *args)
    return _FUNCTIONS[fn](e, dtype, *args)


def elementary(e: Emitter, fn: Function | BinaryOp, dtype: DType, *args: Code) -> Code:
    """Call a generated vector function, or that of ``math.h`` lane by lane."""
    if not dtype.is_float:
        raise undefined(fn, dtype)
    kind = vector_of(e, dtype)
    known = (fn, computed_type(dtype)) in APPROXIMATIONS
    name = elementary_name(fn, computed_type(dtype)) if known else f"{fn.name.lower()}_f64"
    return helper_call(e, f"{name}x{kind.rpartition('x')[2]}", *args)


def _negative(e: Emitter, dtype: DType, x: Code) -> Code:
    if dtype.is_float or not dtype.is_signed:
        return Code(f"-{x.at(UNARY + 1)}", UNARY)
    return Code(f"({vector_of(e, dtype)})-({_unsigned(e, dtype)}){x.at(UNARY)}", UNARY)


def _absolute(e: Emitter, dtype: DType, x: Code) -> Code:
    if not dtype.is_float and not dtype.is_signed:
        return x
    return helper_call(e, f"abs_{vector_of(e, dtype)}", x)


def _not(e: Emitter, dtype: DType, x: Code) -> Code:
    return Code(f"~{x.at(UNARY + 1)}", UNARY)


def _rounding(name: str) -> Callable[[Emitter, DType, Code], Code]:
    def emit(e: Emitter, dtype: DType, x: Code) -> Code:
        if dtype.is_float:
            return helper_call(e, f"{name}_{vector_of(e, dtype)}", x)
        if name == "sqrt":
            raise undefined(Function.SQRT, dtype)
        return x

    return emit


def _reinterpreted(e: Emitter, dtype: DType, x: Code) -> Code:
    if dtype.is_half:
        return narrowed(e, x, dtype)
    if dtype is DType.UINT16:
        return helper_call(e, f"from_{_lanes(e, 'f16')}", x)
    wanted = Function.BITS if dtype.is_float else Function.FROM_BITS
    return Code(f"({vector_of(e, wanted.result(dtype))}){x.at(UNARY)}", UNARY)


def _scale(e: Emitter, dtype: DType, y: Code, n: Code) -> Code:
    return helper_call(e, f"scale_{vector_of(e, dtype)}", y, n)


def _word(e: Emitter, dtype: DType, *parts: Code) -> Code:
    result = vector_of(e, DType.UINT32)
    if len(parts) == 2:
        return helper_call(e, f"word_bf16_{result}", *parts)
    wide = vector_of(e, DType.INT32)
    parts = tuple(Code(f"__builtin_convertvector({x.text}, {wide})") for x in parts)
    return helper_call(e, f"word_8_{result}", *parts)


def _dot(fn: Function) -> Callable[[Emitter, DType, Code, Code], Code]:
    return lambda e, dtype, a, b: helper_call(e, f"{fn.value}_{vector_of(e, dtype)}", a, b)


def _select(e: Emitter, expr: Select) -> Code:
    """Select by the condition of each lane; loads that may be out of bounds are guarded."""
    if is_index(expr) and not e.may_wrap(expr):
        return _index(e, expr)
    if _is_alike(e, expr.cond):
        if any(reads_twice(x) or _chooses(e, x) for x in (expr.then, expr.other)):
            return branches(e, expr, vector_of(e, expr.dtype), vector)
        cond, then, other = e.value(expr.cond), vector(e, expr.then), vector(e, expr.other)
        return chosen(cond, then, other)
    bits = _decided(e, expr.cond)
    if bits is not None and len(set(bits)) == 1:
        return vector(e, expr.then if bits[0] else expr.other)
    cond = vector(e, expr.cond)
    sides = []
    for side, needed in ((expr.then, expr.cond), (expr.other, Call(Function.NOT, (expr.cond,)))):
        known = e.known
        with e.guarded(needed), sharing(e, side):
            e.known.update(known)
            sides.append(vector(e, side))
    return helper_call(e, f"select_{vector_of(e, expr.dtype)}", cond, *sides)


def _chooses(e: Emitter, side: Expr) -> bool:
    """True if *side* has a select by lanes; its parts become statements."""
    return any(isinstance(x, Select) and not _is_alike(e, x.cond) for x in walk(side))


def _cast(e: Emitter, expr: Cast) -> Code:
    source, wanted, x = expr.x.dtype, expr.type, vector(e, expr.x)
    if source is wanted:
        return x
    if wanted is DType.BOOL:
        zero = compared("!=", x, Code("0"))
        return Code(f"__builtin_convertvector({zero.text}, {vector_of(e, DType.BOOL)})")
    if source is DType.BOOL:
        x, source = Code(f"({x.at(ATOM)} & 1)"), DType.INT32
    if wanted.is_half:
        rounded = narrowed(e, _float_of(e, x, source, wanted), wanted)
        return helper_call(e, f"from_{_lanes(e, short_name(wanted))}", rounded)
    if source.is_float and wanted.is_int:
        short = short_name(wanted.of_floats)
        x = helper_call(e, f"{short}_of_{vector_of(e, source)}", x)
        source = wanted.of_floats
    return _converted(e, x, source, wanted)


def _converted(e: Emitter, x: Code, source: DType, wanted: DType) -> Code:
    if vector_of(e, source) == vector_of(e, wanted):
        return x
    return Code(f"__builtin_convertvector({x.text}, {vector_of(e, wanted)})")


def _float_of(e: Emitter, x: Code, source: DType, wanted: DType) -> Code:
    """Convert *x* to float32 that round to the same 16-bit floats *wanted* as *x* itself does."""
    if source.passes_float32(wanted):
        return _converted(e, x, source, DType.FLOAT32)
    if source.is_int and source.bits < 64:
        x, source = _converted(e, x, source, DType.FLOAT64), DType.FLOAT64
    return helper_call(e, f"odd_{vector_of(e, source)}", x)


def _lanes(e: Emitter, short: str) -> str:
    return f"{short}x{e.vector.width}"


def combined(e: Emitter, kind: ReduceKind, dtype: DType, old: Code, value: Expr) -> Code:
    """*old* combined with all lanes of *value*."""
    of_lanes = operand if kind in (ReduceKind.SUM, ReduceKind.PROD) else vector
    return binary(e, kind.combiner, dtype, old, of_lanes(e, value))


_FUNCTIONS: Mapping[Function, Callable[..., Code]] = {
    Function.NEG: _negative, Function.NOT: _not, Function.ABS: _absolute,
    Function.SQRT: _rounding("sqrt"), Function.FLOOR: _rounding("floor"),
    Function.CEIL: _rounding("ceil"), Function.ROUND: _rounding("rint"),
    Function.BITS: _reinterpreted, Function.FROM_BITS: _reinterpreted, Function.SCALE: _scale,
    Function.WORD: _word, **{fn: _dot(fn) for fn in DOTS},
}  # fmt: skip
_VECTORS: Mapping[type[Expr], Callable[[Emitter, Any], Code]] = {
    Var: _index, Axis: _index, SizeVar: _index, Binary: _binary, Compare: _compare, Call: _call,
    Select: _select, Cast: _cast, Load: load,
}  # fmt: skip
