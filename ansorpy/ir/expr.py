"""Scalar expressions: the right-hand sides of compute definitions and of stores.

Grammar::

    Expr := Const | Var | Axis | SizeVar | Binary | Compare | Call | Select | Cast | Load | Reduce

Each kind is one class, immutable and compared by identity (:mod:`ansorpy.ir.node`).  Python
operators build nodes; constructors fold nothing (:mod:`ansorpy.ir.rewrite.simplify` does), except
that integer arithmetic on two constants gives a constant.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from functools import cache, reduce
from typing import TYPE_CHECKING, Any, TypeAlias

from ansorpy.errors import UsageError
from ansorpy.ir.dtypes import DType, as_dtype, python_number
from ansorpy.ir.extents import AnyExtent, Form, Symbolic
from ansorpy.ir.functions import Function
from ansorpy.ir.node import node
from ansorpy.ir.operators import BinaryOp, CompareOp, ReduceKind, demand_no_truth
from ansorpy.ir.symbols import Dim, SizeOp

if TYPE_CHECKING:
    from ansorpy.ir.loops import Buffer
    from ansorpy.ir.tensor import Tensor

__all__ = [
    "Axis", "AxisKind", "Binary", "BinaryOp", "Call", "Cast", "Compare", "CompareOp", "Const",
    "Expr", "ExprLike", "Function", "Load", "Reduce", "ReduceKind", "Select", "SizeVar", "Var",
    "as_expr", "children", "const", "has_load", "is_zero", "size_var", "walk",
]  # fmt: skip


class AxisKind(Enum):
    """SPACE axes index the output and may run in parallel; REDUCE axes are reduced over."""

    SPACE = "space"
    REDUCE = "reduce"


def _operator(op: BinaryOp, of_conditions: BinaryOp | None = None) -> tuple[_Method, _Method]:
    """The methods for ``self op other`` and ``other op self``."""

    def straight(self: Expr, other: ExprLike) -> Expr:
        return _binary(op, self, other, of_conditions)

    def reflected(self: Expr, other: ExprLike) -> Expr:
        return _binary(op, other, self, of_conditions)

    return straight, reflected


def _comparison(op: CompareOp) -> _Method:
    def method(self: Expr, other: ExprLike) -> Expr:
        return _compare(op, self, other)

    return method


class Expr:
    """Base of all expressions; carries the Python operators.

    The operators raise :class:`UsageError` where they are not defined on the type of the operands,
    and ``TypeError`` where the types differ.
    """

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        """The element type of the value."""
        raise NotImplementedError(type(self).__name__)

    __add__, __radd__ = _operator(BinaryOp.ADD)
    __sub__, __rsub__ = _operator(BinaryOp.SUB)
    __mul__, __rmul__ = _operator(BinaryOp.MUL)
    __truediv__, __rtruediv__ = _operator(BinaryOp.DIV)
    __floordiv__, __rfloordiv__ = _operator(BinaryOp.FLOORDIV)
    __mod__, __rmod__ = _operator(BinaryOp.FLOORMOD)
    __pow__, __rpow__ = _operator(BinaryOp.POW)
    __and__, __rand__ = _operator(BinaryOp.BIT_AND, BinaryOp.AND)
    __or__, __ror__ = _operator(BinaryOp.BIT_OR, BinaryOp.OR)
    __xor__, __rxor__ = _operator(BinaryOp.BIT_XOR)
    __lshift__, __rlshift__ = _operator(BinaryOp.SHL)
    __rshift__, __rrshift__ = _operator(BinaryOp.SHR)

    def __neg__(self) -> Expr:
        return Call(Function.NEG, (self,))

    def __abs__(self) -> Expr:
        return Call(Function.ABS, (self,))

    def __invert__(self) -> Expr:
        """The opposite of a condition, or an integer with every bit turned over."""
        if self.dtype is DType.BOOL:
            return Call(Function.NOT, (self,))
        return self ^ (-1 if self.dtype.is_signed else self.dtype.limits[1])

    __lt__, __gt__ = _comparison(CompareOp.LT), _comparison(CompareOp.GT)
    __le__, __ge__ = _comparison(CompareOp.LE), _comparison(CompareOp.GE)

    def equal(self, other: ExprLike) -> Expr:
        """``self == other`` as an expression; ``==`` itself compares the identity of nodes."""
        return _compare(CompareOp.EQ, self, other)

    def not_equal(self, other: ExprLike) -> Expr:
        """``self != other`` as an expression."""
        return _compare(CompareOp.NE, self, other)

    def __bool__(self) -> bool:
        raise TypeError(
            "an expression has no truth value while the program is being built; "
            "use ap.select(cond, a, b), & and | instead of if, and, or"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Expr:
        """Arithmetic with numbers of numpy, which try it before the methods here.

        Raises:
            TypeError: *ufunc* is no operator; expressions have functions of their own.
        """
        operate = None if options or method != "__call__" else _IN_NUMPY.get(ufunc.__name__)
        if operate is None:
            raise TypeError(
                f"numpy.{ufunc.__name__} takes arrays, not expressions; build one with operators "
                f"and with ansorpy's functions, such as ap.exp and ap.maximum"
            )
        return operate(*(x if isinstance(x, Expr) else python_number(x) for x in inputs))

    def astype(self, dtype: DType | str) -> Expr:
        """Convert to *dtype* (floats to integers truncate towards zero)."""
        wanted = as_dtype(dtype)
        return self if wanted is self.dtype else Cast(wanted, self)


ExprLike: TypeAlias = Expr | Symbolic | int | float | bool
_Method: TypeAlias = Callable[[Expr, ExprLike], Expr]

_IN_NUMPY: Mapping[str, Callable[..., Expr]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "divide": operator.truediv, "floor_divide": operator.floordiv, "remainder": operator.mod,
    "power": operator.pow, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor, "left_shift": operator.lshift, "right_shift": operator.rshift,
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt,
    "greater_equal": operator.ge,
}  # fmt: skip
"""What numpy's scalars call for an operator with an expression."""


@node
class Const(Expr):
    """A literal of type ``type``."""

    value: int | float | bool
    type: DType

    @property
    def dtype(self) -> DType:
        return self.type


@node
class Var(Expr):
    """A named integer bound by a loop, an axis or a let; variables are compared by identity."""

    name: str

    @property
    def dtype(self) -> DType:
        return DType.INT64


@node
class Axis(Var):
    """An iteration axis of a compute definition, ranging over ``0 .. extent - 1``."""

    extent: AnyExtent
    kind: AxisKind


@node
class SizeVar(Var):
    """The size of a dimension, which each call of a program states; :func:`size_var` makes it."""

    dim: Dim


@node
class Binary(Expr):
    """``a op b``; both operands and the result have the same dtype."""

    op: BinaryOp
    a: Expr
    b: Expr
    # Computed once: a long sum is a deep nest.
    dtype: DType = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.a.dtype)


@node
class Compare(Expr):
    """``a op b`` as a boolean."""

    op: CompareOp
    a: Expr
    b: Expr

    @property
    def dtype(self) -> DType:
        return DType.BOOL


@node
class Call(Expr):
    """A call of an elementwise function; ``fn.result`` gives its dtype."""

    fn: Function
    args: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:
        return self.fn.result(self.args[0].dtype)


@node
class Select(Expr):
    """``then`` where ``cond`` holds, else ``other``; the side not taken is not read."""

    cond: Expr
    then: Expr
    other: Expr

    @property
    def dtype(self) -> DType:
        return self.then.dtype


@node
class Cast(Expr):
    """``x`` converted to ``type``.

    To floats, it rounds once to nearest.  Integers keep their low bits in other integer types.

    Floats are rounded towards zero and saturate in :attr:`DType.of_floats` (int32, int64 or
    uint64), with 0 for NaN; narrower integer types keep the low bits of that.
    """

    type: DType
    x: Expr

    @property
    def dtype(self) -> DType:
        return self.type


@node
class Load(Expr):
    """Read one element: ``source[indices]``, indices in elements along each axis.

    ``source`` is a tensor in compute definitions and a buffer in loop programs.
    """

    source: Tensor | Buffer
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:
        return self.source.dtype


@node
class Reduce(Expr):
    """``source`` combined over ``axes``; only the root of a compute body may be a Reduce."""

    kind: ReduceKind
    source: Expr
    axes: tuple[Axis, ...]

    @property
    def dtype(self) -> DType:
        return self.source.dtype


def const(value: int | float | bool, dtype: DType = DType.INT64) -> Const:
    """The literal *value* of type *dtype*."""
    return Const(value, dtype)


def is_zero(e: Expr) -> bool:
    """True for a constant whose bits are all 0: 0 and False, but not -0.0."""
    return isinstance(e, Const) and e.value == 0 and math.copysign(1.0, e.value) > 0


def as_expr(value: ExprLike, dtype: DType | None = None) -> Expr:
    """Turn a Python number into a constant of *dtype* (int64, float32 or bool by default).

    Raises:
        TypeError: *value* is neither an expression nor a number.
        ValueError: *value* does not fit in the integer type or bool *dtype*; nothing wraps around.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, Symbolic):
        return _of_symbolic(value)
    if not isinstance(value, int | float):
        value = python_number(value)
    if dtype is None:
        is_bool, is_int = isinstance(value, bool), isinstance(value, int)
        dtype = DType.BOOL if is_bool else DType.INT64 if is_int else DType.FLOAT32
    if dtype.is_float:
        return Const(float(value), dtype)
    if not dtype.holds(value):
        raise ValueError(
            f"{dtype.value} cannot represent {value}; convert the other operand with .astype"
        )
    return Const(bool(value) if dtype is DType.BOOL else int(value), dtype)


@cache
def size_var(dim: Dim) -> SizeVar:
    """The variable that holds the size of *dim*: the same object for equal dimensions."""
    return SizeVar(dim.name, dim)


@cache
def _of_symbolic(extent: Symbolic) -> Expr:
    """*extent* as an int64 expression of :class:`SizeVar`."""
    total: Expr | None = None
    for atoms, c in extent.terms:
        factors = [size_var(a) if isinstance(a, Dim) else _of_form(a) for a in atoms]
        if not factors:
            term: Expr = Const(abs(c), DType.INT64)
        else:
            term = reduce(lambda x, y: Binary(BinaryOp.MUL, x, y), factors)
            term = term if abs(c) == 1 else Binary(BinaryOp.MUL, term, Const(abs(c), DType.INT64))
        if total is None:
            total = term if c > 0 else Call(Function.NEG, (term,))
        else:
            total = Binary(BinaryOp.ADD if c > 0 else BinaryOp.SUB, total, term)
    assert total is not None
    return total


def _of_form(form: Form) -> Expr:
    return Binary(_BINARY_OF[form.op], as_expr(form.a), as_expr(form.b))


_BINARY_OF = {
    SizeOp.FLOORDIV: BinaryOp.FLOORDIV, SizeOp.MIN: BinaryOp.MIN, SizeOp.MAX: BinaryOp.MAX,
}  # fmt: skip


def _pair(a: ExprLike, b: ExprLike) -> tuple[Expr, Expr]:
    """Both operands as expressions of one type; a Python number takes the type of the other."""
    left = as_expr(a, b.dtype if isinstance(b, Expr) else None)
    right = as_expr(b, a.dtype if isinstance(a, Expr) else None)
    if left.dtype is not DType.BOOL:
        demand_no_truth(a, b)
    if left.dtype is not right.dtype:
        raise TypeError(
            f"operands have different types {left.dtype.value} and {right.dtype.value}; "
            "convert one with .astype(...)"
        )
    return left, right


_FOLD: Mapping[BinaryOp, Callable[[Any, Any], Any]] = {
    BinaryOp.ADD: operator.add, BinaryOp.SUB: operator.sub, BinaryOp.MUL: operator.mul,
    BinaryOp.FLOORDIV: operator.floordiv, BinaryOp.FLOORMOD: operator.mod,
}  # fmt: skip


def _binary(op: BinaryOp, a: ExprLike, b: ExprLike, of_conditions: BinaryOp | None = None) -> Expr:
    """``a op b``; of conditions, *of_conditions* if there is one."""
    left, right = _pair(a, b)
    if of_conditions is not None and left.dtype is DType.BOOL:
        demand_no_truth(a, b)
        op = of_conditions
    if not op.accepts(left.dtype):
        raise UsageError(
            f"{op.value} of {left.dtype.value} values is not defined",
            hint="combine conditions with & and |, or convert them with .astype(...) to count them",
        )
    if isinstance(left, Const) and isinstance(right, Const) and left.type is DType.INT64:
        fold = _FOLD.get(op)
        divides = op in (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD)
        if fold is not None and not (divides and right.value == 0):
            return Const(DType.INT64.wrapped(fold(left.value, right.value)), DType.INT64)
    return Binary(op, left, right)


def _compare(op: CompareOp, a: ExprLike, b: ExprLike) -> Expr:
    return Compare(op, *_pair(a, b))


def children(expr: Expr) -> Sequence[Expr]:
    """The direct operands of *expr*, in order, including the indices of a load."""
    operands = _OPERANDS.get(type(expr))
    return () if operands is None else operands(expr)


_OPERANDS: Mapping[type[Expr], Callable[[Any], Sequence[Expr]]] = {
    Binary: operator.attrgetter("a", "b"),
    Compare: operator.attrgetter("a", "b"),
    Call: operator.attrgetter("args"),
    Select: operator.attrgetter("cond", "then", "other"),
    Cast: lambda cast: (cast.x,),
    Load: operator.attrgetter("indices"),
    Reduce: lambda reduction: (reduction.source,),
}
"""The operands of the expressions that have some: a look-up is faster than a match."""


def walk(expr: Expr) -> Iterator[Expr]:
    """*expr* and every expression below it: each distinct node once, in order of appearance.

    A node comes after the first parent that reaches it.  **Cost:** linear in distinct nodes,
    however often they are shared; do not use this to count occurrences.

    >>> i = Var("i")
    >>> twice = i * 2
    >>> [type(e).__name__ for e in walk(twice + twice)]
    ['Binary', 'Binary', 'Var', 'Const']
    """
    seen: set[Expr] = set()
    stack = [expr]
    while stack:
        top = stack.pop()
        if top not in seen:
            seen.add(top)
            yield top
            stack.extend(reversed(children(top)))


def has_load(expr: Expr) -> bool:
    """True when *expr* reads an element of a tensor or buffer."""
    return any(isinstance(e, Load) for e in walk(expr))
