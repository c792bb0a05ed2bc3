"""Affine forms of integer expressions: a sum of integer multiples of atoms, plus a constant.

An atom is a variable or a sub-expression that is not linear (``//``, ``%``, ``min``, ``max``,
loads, selections, products of two non-constants).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import gcd

from ansorpy.ir.analysis.structural_equality import same_structure
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Axis,
    Binary,
    BinaryOp,
    Call,
    Const,
    Expr,
    Function,
    SizeVar,
    Var,
    const,
    walk,
)
from ansorpy.ir.extents import most

__all__ = [
    "Linear", "axes_in", "common_quotient", "difference", "divided", "divisor_of", "index_terms",
    "linear", "multiples",
]  # fmt: skip

_LOWEST, _HIGHEST = DType.INT64.limits


@dataclass(frozen=True, slots=True)
class Linear:
    """``sum(coefficient * atom) + const``; no coefficient is 0, atoms in order of appearance."""

    terms: Mapping[Expr, int]
    const: int

    def to_expr(self) -> Expr:
        """The form as an expression: ``atom * coefficient`` terms, then the constant.

        >>> i, j = Var("i"), Var("j")
        >>> linear(linear(3 + i * 2 - j + i).to_expr()) == Linear({i: 3, j: -1}, 3)
        True
        """
        result: Expr | None = None
        for atom, c in self.terms.items():
            result = _plus(result, atom, c)
        if result is None:
            return const(DType.INT64.wrapped(self.const))
        if self.const == 0:
            return result
        op, number = _signed(DType.INT64.wrapped(self.const))
        return Binary(op, result, const(number))


def _plus(total: Expr | None, atom: Expr, c: int) -> Expr:
    if total is None:
        return atom if c == 1 else Binary(BinaryOp.MUL, atom, const(c))
    op, number = _signed(c)
    return Binary(op, total, atom if number == 1 else Binary(BinaryOp.MUL, atom, const(number)))


def _signed(number: int) -> tuple[BinaryOp, int]:
    """*number* as what is added or subtracted, which is negative only if int64 has no opposite."""
    return (BinaryOp.SUB, -number) if _LOWEST < number < 0 else (BinaryOp.ADD, number)


def linear(expr: Expr) -> Linear:
    """The affine form of an int64 expression; equal atoms are merged.

    It has the value of *expr* modulo ``2**64``, and numbers of int64.  An expression of another
    type is one atom, because narrow integers may wrap around.

    >>> i, j = Var("i"), Var("j")
    >>> linear((i + 2) * 3 - j + i) == Linear({i: 4, j: -1}, 6)
    True
    """
    terms: dict[Expr, int] = {}
    offset = _collect(expr, 1, terms, {})
    return _fitted(terms, offset)


def difference(a: Linear, b: Linear) -> Linear:
    """``a - b`` over the integers: its numbers may be larger than those of int64."""
    terms = dict(a.terms)
    for atom, c in b.terms.items():
        _add_atom(atom, -c, terms)
    return Linear({atom: c for atom, c in terms.items() if c}, a.const - b.const)


def _fitted(terms: dict[Expr, int], offset: int) -> Linear:
    """The form with the numbers wrapped around to int64, and without terms of coefficient 0."""
    numbers = terms.values()
    if 0 in numbers or (numbers and (min(numbers) < _LOWEST or max(numbers) > _HIGHEST)):
        wrapped = ((atom, DType.INT64.wrapped(c)) for atom, c in terms.items())
        terms = {atom: c for atom, c in wrapped if c}
    is_fitting = _LOWEST <= offset <= _HIGHEST
    return Linear(terms, offset if is_fitting else DType.INT64.wrapped(offset))


def common_quotient(low: int, high: int, divisor: int) -> int | None:
    """The quotient that all values in ``[low, high]`` have in common; None if they have several.

    If it is q, then ``x // divisor == q`` and ``x % divisor == x - q * divisor``: with the multiple
    taken out, ``0 <= remainder < divisor``.

    >>> common_quotient(0, 3, 4), common_quotient(-4, -1, 4), common_quotient(3, 4, 4)
    (0, -1, None)
    """
    quotient = low // divisor
    return quotient if high // divisor == quotient else None


def divisor_of(e: Expr) -> int:
    """A number that divides *e* whatever the values of its variables; 0 for 0.

    >>> from ansorpy.ir.expr import as_expr
    >>> from ansorpy.ir.extents import dim
    >>> divisor_of(Var("i") * as_expr(dim("n", 8, 64, step=8) * 2) + 12)
    4
    """
    form = linear(e)
    return gcd(form.const, *(c * _atom_divisor(atom) for atom, c in form.terms.items()))


def _atom_divisor(e: Expr) -> int:
    match e:
        case SizeVar():
            return e.dim.step
        case Binary(BinaryOp.MUL, a, b):
            return divisor_of(a) * divisor_of(b)
        case Binary(BinaryOp.MIN | BinaryOp.MAX, a, b):
            return gcd(divisor_of(a), divisor_of(b))
    return 1


def multiples(form: Linear, divisor: int) -> tuple[Linear, Linear]:
    """(q, r) with ``form == divisor * q + r``, where r has what *divisor* does not divide.

    So ``form // divisor == q + r // divisor`` and ``form % divisor == r % divisor``.
    """
    whole = {atom: k // divisor for atom, k in form.terms.items() if k % divisor == 0}
    rest = {atom: k for atom, k in form.terms.items() if k % divisor}
    return Linear(whole, form.const // divisor), Linear(rest, form.const % divisor)


def divided(
    form: Linear, divisor: int, bounds: Callable[[Linear], tuple[int, int]]
) -> tuple[Linear, Linear] | None:
    """``(form // divisor, form % divisor)`` as affine forms; None where *bounds* prove none.

    This is the rule ``form == divisor * q + r`` with ``0 <= r < divisor``.
    """
    whole, rest = multiples(form, divisor)
    extra = common_quotient(*bounds(rest), divisor)
    if extra is None:
        return None
    quotient = Linear(whole.terms, whole.const + extra)
    return quotient, Linear(rest.terms, rest.const - extra * divisor)


_Forms = dict[Expr, Linear | None]
"""The forms of the sums and products that were met twice; None for those that were met once."""


def _collect(e: Expr, scale: int, terms: dict[Expr, int], forms: _Forms) -> int:
    """Add ``scale * e`` to *terms*, and return its constant part."""
    kind = type(e)
    if kind is Axis or kind is Var or kind is SizeVar:
        terms[e] = terms.get(e, 0) + scale
        return 0
    if kind is Const and e.type is DType.INT64:  # type: ignore[attr-defined]
        return scale * int(e.value)  # type: ignore[attr-defined]
    if kind is Binary:
        if e not in forms:
            forms[e] = None
            return _collect_binary(e, scale, terms, forms)  # type: ignore[arg-type]
        return _add_form(_form(e, forms), scale, terms)
    if kind is Call and e.fn is Function.NEG and e.dtype is DType.INT64:  # type: ignore[attr-defined]
        return _collect(e.args[0], -scale, terms, forms)  # type: ignore[attr-defined]
    return _collect_atom(e, scale, terms)


def _collect_binary(e: Binary, scale: int, terms: dict[Expr, int], forms: _Forms) -> int:
    op = e.op
    if (op is BinaryOp.ADD or op is BinaryOp.SUB) and e.dtype is DType.INT64:
        offset = _collect(e.a, scale, terms, forms)
        return offset + _collect(e.b, scale if op is BinaryOp.ADD else -scale, terms, forms)
    if op is BinaryOp.MUL and e.dtype is DType.INT64:
        if type(e.b) is Const:
            return _collect(e.a, scale * int(e.b.value), terms, forms)
        return _collect_product(e, scale, terms, forms)
    return _collect_atom(e, scale, terms)


def _collect_product(e: Binary, scale: int, terms: dict[Expr, int], forms: _Forms) -> int:
    a, b = _form(e.a, forms), _form(e.b, forms)
    if a.terms and b.terms:
        return _collect_atom(e, scale, terms)
    factor, form = (b.const, a) if a.terms else (a.const, b)
    return _add_form(form, scale * factor, terms)


def _form(e: Expr, forms: _Forms) -> Linear:
    """The affine form of *e*, a part of an expression, which is collected once."""
    known = forms.get(e)
    if known is None:
        terms: dict[Expr, int] = {}
        collect = _collect_binary if type(e) is Binary else _collect
        known = forms[e] = _fitted(terms, collect(e, 1, terms, forms))  # type: ignore[arg-type]
    return known


def _add_form(form: Linear, scale: int, terms: dict[Expr, int]) -> int:
    for atom, c in form.terms.items():
        _add_atom(atom, scale * c, terms)
    return scale * form.const


def _collect_atom(e: Expr, scale: int, terms: dict[Expr, int]) -> int:
    _add_atom(e, scale, terms)
    return 0


def _add_atom(e: Expr, scale: int, terms: dict[Expr, int]) -> None:
    if e not in terms and not isinstance(e, Var):
        for other in terms:
            if type(other) is type(e) and same_structure(other, e):
                e = other
                break
    terms[e] = terms.get(e, 0) + scale


def index_terms(index: Expr, axes: Iterable[Axis]) -> tuple[dict[Axis, int], int] | None:
    """The coefficient of each of *axes* in *index*, and the offset; None if it is not affine.

    Axes with coefficient 0 are absent.  A quotient or remainder counts as affine if the axes'
    extents make it affine.

    >>> from ansorpy.ir.expr import AxisKind
    >>> i, j = Axis("i", 3, AxisKind.SPACE), Axis("j", 4, AxisKind.SPACE)
    >>> terms, offset = index_terms(i * 2 + j - 1, (i, j))
    >>> terms[i], terms[j], offset
    (2, 1, -1)
    >>> index_terms((i * 4 + j) // 4, (i, j)) == ({i: 1}, 0)
    True
    >>> index_terms(i // 2, (i, j)) is None
    True
    """
    form = linear(index)
    known = axes if isinstance(axes, tuple) else tuple(axes)
    coefficients: dict[Axis, int] = {}
    offset = form.const
    for atom, c in form.terms.items():
        if type(atom) is Axis:
            if atom not in known:
                return None
            coefficients[atom] = coefficients.get(atom, 0) + c
            continue
        inner = _division_terms(atom, known)
        if inner is None:
            return None
        offset += c * inner[1]
        for axis, k in inner[0].items():
            coefficients[axis] = coefficients.get(axis, 0) + c * k
    if 0 in coefficients.values():
        coefficients = {axis: c for axis, c in coefficients.items() if c}
    return coefficients, offset


def _division_terms(atom: Expr, axes: tuple[Axis, ...]) -> tuple[dict[Axis, int], int] | None:
    """Terms of ``x // c`` or ``x % c`` whose remainder part the extents keep in ``[0, c)``."""
    if not isinstance(atom, Binary) or atom.op not in (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD):
        return None
    divisor = atom.b
    if not isinstance(divisor, Const) or divisor.value <= 0:
        return None
    inner = index_terms(atom.a, axes)
    if inner is None:
        return None
    form = Linear({axis: k for axis, k in inner[0].items()}, inner[1])
    found = divided(form, int(divisor.value), _bounds)
    if found is None:
        return None
    quotient, remainder = found
    part = quotient if atom.op is BinaryOp.FLOORDIV else remainder
    return {axis: k for axis, k in part.terms.items() if isinstance(axis, Axis)}, part.const


def _bounds(form: Linear) -> tuple[int, int]:
    """Inclusive bounds of a form of axes, which run over their extents."""
    low = high = form.const
    for axis, k in form.terms.items():
        assert isinstance(axis, Axis)
        end = k * (most(axis.extent) - 1)
        low, high = low + min(0, end), high + max(0, end)
    return low, high


def axes_in(e: Expr) -> frozenset[Axis]:
    """The axes on which *e* depends."""
    return frozenset(part for part in walk(e) if isinstance(part, Axis))
