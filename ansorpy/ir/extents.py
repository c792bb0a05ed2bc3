"""Extents: the length of an axis, a number or an expression of named dimensions.

A definition whose extents are expressions of dimensions stands for one definition per value of
them.  An expression is kept as a polynomial over dimensions, quotients, minima and maxima, so two
extents that are equal for all values are equal objects wherever this form shows it:

>>> n = dim("n", 1, 512)
>>> (n + 3) * 4 - 12 == n * 4, str((n * 8 + 4) // 4), str(-(-n // 16))
(True, '2*n + 1', '(n + 15)//16')
>>> least(n * 4 - 1), most(n - n // 16 * 16)
(3, 15)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from math import gcd, prod
from typing import Any, TypeAlias

from ansorpy.errors import UsageError
from ansorpy.ir.atoms import (
    Atom,
    Form,
    Monomial,
    Terms,
    divisor_of,
    ends_of,
    least,
    most,
    multiple_of,
    product_ends,
    rank_of,
    shared_factor,
    text_of,
    whole_quotient,
    whole_scale,
    without,
)
from ansorpy.ir.symbols import Dim, SizeOp, Symbol
from ansorpy.quantities import whole_of

__all__ = [
    "AnyExtent", "Atom", "Extent", "Form", "Symbolic", "dim", "dim_extent",
    "dims_of", "extreme", "least", "most", "multiple_of", "prod_of",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Symbolic(Symbol):
    """A polynomial that is not a number: coefficients of products of atoms, in order of text."""

    terms: Terms

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Symbolic) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.terms)

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return text_of(self.terms)

    __repr__ = __str__

    def __mod__(self, other: Extent) -> Extent:
        return _sum([(self, 1), (_product(_quotient(self, other), other), -1)])

    def __rmod__(self, other: int) -> Extent:
        return _sum([(other, 1), (_product(_quotient(other, self), self), -1)])

    def combine(self, op: SizeOp, a: Any, b: Any) -> Any:
        """``a op b``.

        GCD is a common divisor for all sizes.  ABOVE is 1 unless *a* is never above *b*.
        """
        if not isinstance(a, int | Symbolic) or not isinstance(b, int | Symbolic):
            return NotImplemented
        match op:
            case SizeOp.ADD:
                return _plus(a, b, 1)
            case SizeOp.SUB:
                return _plus(a, b, -1)
            case SizeOp.MUL:
                return _product(a, b)
            case SizeOp.FLOORDIV:
                return _quotient(a, b)
            case SizeOp.GCD:
                return gcd(multiple_of(a), multiple_of(b))
            case SizeOp.ABOVE:
                return int(most(_plus(a, b, -1)) > 0)
        return extreme(op, a, b)

    @cached_property
    def ends(self) -> tuple[int, int]:
        """Bounds of the value for all sizes: exact, unless atoms depend on each other."""
        negated = tuple((atoms, -c) for atoms, c in self.terms)
        return _least(self.terms), -_least(negated)

    @cached_property
    def dims(self) -> tuple[Dim, ...]:
        """The dimensions that occur, in order of text."""
        found: dict[Dim, None] = {}
        for atoms, _ in self.terms:
            for atom in atoms:
                parts = (atom,) if isinstance(atom, Dim) else dims_of([atom.a, atom.b])
                found.update(dict.fromkeys(parts))
        return tuple(found)


Extent: TypeAlias = int | Symbolic
AnyExtent: TypeAlias = int | Any
"""The declared type of extents in definitions and programs.

Most code works where dimensions have sizes, so that every extent is an int, and need not check it:
a :class:`Symbolic` refuses whatever only an int can do.
"""


def dim(name: str, low: int, high: int, *, step: int = 1) -> Extent:
    """An extent that may be any multiple of *step* from *low* to *high*, both included.

    Raises:
        UsageError: As :class:`Dim`, or a bound or *step* is no whole number, or *name* is no text.
    """
    if not isinstance(name, str):
        raise UsageError(f"the name of a dimension is a text, got {name!r}")
    low, high = (whole_of(end, f"an end of the range of {name}", 0) for end in (low, high))
    made = Dim(name, low, high, whole_of(step, f"the step of {name}"))
    return low if low == high else dim_extent(made)


@lru_cache(maxsize=1024)
def dim_extent(dim: Dim) -> Extent:
    """The size of *dim*."""
    return _made({(dim,): 1})


def dims_of(extents: Iterable[Extent]) -> tuple[Dim, ...]:
    """The dimensions that occur in *extents*, in order of appearance."""
    found: dict[Dim, None] = {}
    for extent in extents:
        if isinstance(extent, Symbolic):
            found.update(dict.fromkeys(extent.dims))
    return tuple(found)


def prod_of(extents: Iterable[Extent]) -> Extent:
    """The product of *extents*; 1 if there are none."""
    total: Extent = 1
    for extent in extents:
        total = _product(total, extent)
    return total


# Arithmetic


_remembered = lru_cache(maxsize=1 << 14)
"""Bounds are kept with an extent, so the same result is best the same object.  Lowering one program
asks for the same few sums thousands of times."""


def _terms(extent: Extent) -> Terms:
    if isinstance(extent, Symbolic):
        return extent.terms
    return (((), extent),) if extent else ()


def _made(terms: Mapping[Monomial, int]) -> Extent:
    """The extent with these *terms*, a number if only the constant one is there."""
    kept = {atoms: c for atoms, c in terms.items() if c}
    if any(whole_quotient(atom) for atoms in kept for atom in atoms):
        kept = _undivided(kept)
    if not kept.keys() - {()}:
        return kept.get((), 0)
    return Symbolic(tuple(sorted(kept.items(), key=_text_order)))


def _text_order(term: tuple[Monomial, int]) -> tuple[bool, tuple[str, ...]]:
    return not term[0], tuple(map(str, term[0]))


def _undivided(terms: Mapping[Monomial, int]) -> dict[Monomial, int]:
    """*terms* in the one form of a sum with quotients that have no remainder.

    It is that of a polynomial with fractions as coefficients.  What a coefficient is divided by
    divides the first factors that are multiples of it: ``(h // 2) * (w // 2) + h * w`` is
    ``5 * (h // 4) * w`` if 4 divides h.
    """
    total: dict[Monomial, Fraction] = {}
    for atoms, c in terms.items():
        for own, part in _expanded(atoms).items():
            total[own] = total.get(own, Fraction(0)) + c * part
    return dict(_divided(atoms, c) for atoms, c in total.items() if c)


def _expanded(atoms: Monomial) -> dict[Monomial, Fraction]:
    """The product of *atoms* without quotients that have no remainder."""
    total: dict[Monomial, Fraction] = {(): Fraction(1)}
    for atom in atoms:
        over = whole_quotient(atom)
        factor: dict[Monomial, Fraction] = {(atom,): Fraction(1)}
        if over is not None:
            factor = {}
            for own, c in over[0].terms:
                for inner, part in _expanded(own).items():
                    factor[inner] = factor.get(inner, Fraction(0)) + part * c / over[1]
        made: dict[Monomial, Fraction] = {}
        for (left, a), (right, b) in product(total.items(), factor.items()):
            both = tuple(sorted((*left, *right), key=str))
            made[both] = made.get(both, Fraction(0)) + a * b
        total = made
    return total


def _divided(atoms: Monomial, c: Fraction) -> tuple[Monomial, int]:
    """*c* times *atoms*, which are multiples of its denominator, as a term."""
    below = c.denominator
    found: list[Atom] = []
    for atom in atoms:
        share = gcd(divisor_of(atom), below)
        below //= share
        one = Symbolic((((atom,), 1),))
        found.append(atom if share == 1 else Form(SizeOp.FLOORDIV, one, share))
    return tuple(sorted(found, key=str)), c.numerator


def _sum(parts: Iterable[tuple[Extent, int]]) -> Extent:
    """``sum(extent * coefficient)``."""
    total: dict[Monomial, int] = {}
    for extent, scale in parts:
        for atoms, c in _terms(extent):
            total[atoms] = total.get(atoms, 0) + scale * c
    return _made(total)


@_remembered
def _plus(a: Extent, b: Extent, scale: int) -> Extent:
    """``a + scale * b``."""
    return _sum([(a, 1), (b, scale)])


@_remembered
def _product(a: Extent, b: Extent) -> Extent:
    total: dict[Monomial, int] = {}
    for left, c in _terms(a):
        for right, k in _terms(b):
            atoms = tuple(sorted((*left, *right), key=str))
            total[atoms] = total.get(atoms, 0) + c * k
    return _made(total)


@_remembered
def _quotient(a: Extent, b: Extent) -> Extent:
    """``a // b``; *b* is at least 1 wherever the result is used."""
    if isinstance(b, Symbolic):
        return _quotient_by_symbol(a, b)
    if isinstance(a, int):
        return a // b
    whole = {atoms: c // b for atoms, c in a.terms if c % b == 0 or not atoms}
    rest = {atoms: c if atoms else c % b for atoms, c in a.terms if c % b}
    inner = [c for atoms, c in rest.items() if atoms]
    if not inner:
        return _made({**whole, (): whole.get((), 0) + rest.get((), 0) // b})
    return _sum([(_made(whole), 1), (_small_quotient(rest, inner, b), 1)])


def _small_quotient(rest: dict[Monomial, int], inner: list[int], b: int) -> Extent:
    """The quotient of terms none of which *b* divides; *inner* are those that are no constant."""
    common = gcd(b, *inner)
    if common > 1:
        reduced = {atoms: c // common for atoms, c in rest.items()}
        return _quotient(_made(reduced), b // common)
    step = gcd(b, *(c * prod(map(divisor_of, atoms)) for atoms, c in rest.items() if atoms))
    offset = rest.get((), 0) // step * step
    if offset != rest.get((), 0):
        return _quotient(_made({**rest, (): offset}), b)
    x = _made(rest)
    assert isinstance(x, Symbolic)
    if x.terms[0][1] < 0:
        return _sum([(_quotient(_sum([(x, -1), (b - 1, 1)]), b), -1)])
    if x.ends[0] // b == x.ends[1] // b:
        return x.ends[0] // b
    (atoms, c), *others = x.terms
    if c == 1 and len(atoms) == 1 and isinstance(atoms[0], Form) and not any(k for k, _ in others):
        inside = atoms[0]
        if inside.op is SizeOp.FLOORDIV and isinstance(inside.b, int):
            offset = rest.get((), 0) * inside.b
            return _quotient(_sum([(inside.a, 1), (offset, 1)]), inside.b * b)
    return _made({(Form(SizeOp.FLOORDIV, x, b),): 1})


def _quotient_by_symbol(a: Extent, b: Symbolic) -> Extent:
    """``a // b``, which is a polynomial if *b* divides *a* as one."""
    above, below = whole_scale(a), whole_scale(b)
    divisor = _product(b, below)
    assert isinstance(divisor, Symbolic)
    whole = _exact_quotient(_product(a, above), divisor)
    if whole is None:
        form = Form(SizeOp.FLOORDIV, a, b)
        low, high = form.ends
        return low if low == high else _made({(form,): 1})
    return _quotient(_product(whole, below), above)


def _exact_quotient(a: Extent, b: Symbolic) -> Extent | None:
    """The polynomial whose product with *b* is *a*, by long division; None if there is none."""
    atoms, c = max(b.terms, key=rank_of)
    total: Extent = 0
    while a != 0:
        own, k = max(_terms(a), key=rank_of)
        factor = Counter(own)
        factor.subtract(atoms)
        if k % c or min(factor.values(), default=0) < 0:
            return None
        term = _made({tuple(sorted(factor.elements(), key=str)): k // c})
        total, a = _sum([(total, 1), (term, 1)]), _sum([(a, 1), (_product(term, b), -1)])
        if rank_of(max(_terms(a), key=rank_of, default=((), 0))) >= rank_of((own, k)):
            return None  # equal forms that are not equal objects
    return total


@_remembered
def extreme(op: SizeOp, a: Extent, b: Extent) -> Extent:
    """The smaller or the larger of *a* and *b*."""
    difference = _plus(a, b, -1)
    if most(difference) <= 0:
        return a if op is SizeOp.MIN else b
    if least(difference) >= 0:
        return b if op is SizeOp.MIN else a
    first, second = sorted((a, b), key=str)
    return _made({(Form(op, first, second),): 1})


# Bounds


_MOST_CASES = 4
"""Quotients and extremes of one sum whose correlation with other terms is looked at."""


@lru_cache(maxsize=4096)
def _least(terms: Terms) -> int:
    """A lower bound of a sum of terms.

    Remembered, because forms are replaced in every order, which leads to the same sums again.
    """
    known = sum(c * product_ends(atoms)[0 if c > 0 else 1] for atoms, c in terms)
    if len(terms) > 1 and any(len(atoms) > 1 for atoms, _ in terms):
        corner = _least_corner(terms)
        if corner is not None:
            return corner
        known = max(known, _least_above_lows(terms, known))
    shared = shared_factor(terms)
    if shared is not None:
        low, high = ends_of(shared)
        rest = _least(tuple((without(atoms, shared), c) for atoms, c in terms))
        return max(known, rest * (low if rest > 0 else high))
    alone = [atoms[0] if len(atoms) == 1 else None for atoms, _ in terms]
    forms = [n for n, atom in enumerate(alone) if isinstance(atom, Form)]
    if len(terms) == 1 or len(forms) > _MOST_CASES:
        return known
    return max([known, *(_least_without(terms, n) for n in forms)])


def _least_corner(terms: Terms) -> int | None:
    """The least value of a sum in which no dimension is multiplied by itself: one with all
    dimensions at their ends.  None for other sums, and for those of many dimensions."""
    whole = Symbolic(terms)
    scale = whole_scale(whole)
    flat = _terms(_product(whole, scale))
    dims = {atom for atoms, _ in flat for atom in atoms if isinstance(atom, Dim)}
    if len(dims) > _MOST_CASES or any(
        len({*atoms}) < len(atoms) or not dims.issuperset(atoms) for atoms, _ in flat
    ):
        return None
    corners: Iterator[dict[Atom, int]] = (
        dict(zip(dims, ends, strict=True)) for ends in product(*map(ends_of, dims))
    )
    values = [sum([c * prod([at[a] for a in atoms]) for atoms, c in flat]) for at in corners]
    return -(-min(values) // scale)


def _least_above_lows(terms: Terms, known: int) -> int:
    """A lower bound of a sum of powers of dimensions, each written as its least size and a rest,
    which is not negative: ``h*h - 4*h + 4`` is ``t*t`` for ``h = 2 + t``.  *known* for other sums.
    """
    whole = Symbolic(terms)
    scale = whole_scale(whole)
    flat = _terms(_product(whole, scale))
    if not all(isinstance(atom, Dim) for atoms, _ in flat for atom in atoms):
        return known
    rests: dict[Monomial, int] = {}
    for atoms, c in flat:
        for is_rest in product((False, True), repeat=len(atoms)):
            own = tuple(atom for atom, rest in zip(atoms, is_rest, strict=True) if rest)
            lows = [ends_of(a)[0] for a, rest in zip(atoms, is_rest, strict=True) if not rest]
            rests[own] = rests.get(own, 0) + c * prod(lows)
    spreads = {atom: ends_of(atom)[1] - ends_of(atom)[0] for own in rests for atom in own}
    total = rests.pop((), 0) + sum(
        c * prod(spreads[atom] for atom in own) for own, c in rests.items() if c < 0
    )
    return -(-total // scale)


def _least_without(terms: Terms, n: int) -> int:
    """A lower bound of a sum with the form in term number *n* replaced by what it is made of."""
    ((form,), c), others = terms[n], [*terms[:n], *terms[n + 1 :]]
    assert isinstance(form, Form)
    rest = _made(dict(others))

    def with_it(extent: Extent, times: int) -> int:
        return least(_sum([(rest, 1), (extent, times)]))

    if form.op is SizeOp.FLOORDIV:
        if not isinstance(form.b, int):
            return least(rest) + c * form.ends[0 if c > 0 else 1]
        k = form.b // gcd(c, form.b)
        inside = form.a if c < 0 else form.a - (form.b - 1)
        return -(-least(_sum([(rest, k), (inside, k * c // form.b)])) // k)
    cases = [with_it(form.a, c), with_it(form.b, c)]
    return min(cases) if (form.op is SizeOp.MIN) is (c > 0) else max(cases)
