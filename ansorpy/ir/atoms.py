"""What polynomials over sizes are made of: dimensions, and quotients, minima and maxima of extents.

An extent is a number or a :class:`~ansorpy.ir.extents.Symbolic`, here any :class:`Symbol` with
``terms`` and ``ends``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import gcd, lcm, prod
from typing import Any, TypeAlias

from ansorpy.ir.symbols import Dim, SizeOp

__all__ = [
    "Atom", "Form", "Monomial", "Terms", "divisor_of", "ends_of", "least", "most", "multiple_of",
    "product_ends", "rank_of", "shared_factor", "text_of", "whole_quotient", "whole_scale",
    "without",
]  # fmt: skip

Extent: TypeAlias = int | Any


@dataclass(frozen=True)
class Form:
    """``a op b`` for a quotient, a minimum or a maximum."""

    op: SizeOp
    a: Extent
    b: Extent

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        if self.op is SizeOp.FLOORDIV:
            return f"{_factor(self.a)}//{_factor(self.b)}"
        return f"{self.op.value}({self.a}, {self.b})"

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The least and the greatest value."""
        a, b = (least(self.a), most(self.a)), (least(self.b), most(self.b))
        if self.op is SizeOp.MIN:
            return min(a[0], b[0]), min(a[1], b[1])
        if self.op is SizeOp.MAX:
            return max(a[0], b[0]), max(a[1], b[1])
        ends = [x // y for x in a for y in (max(b[0], 1), max(b[1], 1))]
        return min(ends), max(ends)

    @cached_property
    def whole(self) -> tuple[Any, int] | None:
        """Dividend and divisor of a quotient that has no remainder for all sizes."""
        if self.op is not SizeOp.FLOORDIV or isinstance(self.a, int):
            return None
        fits = isinstance(self.b, int) and multiple_of(self.a) % self.b == 0
        return (self.a, self.b) if fits else None


Atom: TypeAlias = Dim | Form
Monomial: TypeAlias = tuple[Atom, ...]
Terms: TypeAlias = tuple[tuple[Monomial, int], ...]


def least(extent: Extent) -> int:
    """A lower bound of *extent* for all sizes; the least value, unless atoms are correlated."""
    return extent if isinstance(extent, int) else extent.ends[0]


def most(extent: Extent) -> int:
    """An upper bound of *extent* for all sizes."""
    return extent if isinstance(extent, int) else extent.ends[1]


def multiple_of(extent: Extent) -> int:
    """A number that divides *extent* for all sizes; 0 for 0."""
    if isinstance(extent, int):
        return extent
    return gcd(*(c * prod(map(divisor_of, atoms)) for atoms, c in extent.terms))


def whole_quotient(atom: Atom) -> tuple[Any, int] | None:
    """The dividend and the divisor of a quotient without remainder for all sizes; None for others.

    The dividend depends on a size.
    """
    return atom.whole if isinstance(atom, Form) else None


def _divisors(atoms: Monomial) -> Iterator[int]:
    """The divisors of those of *atoms* that are quotients without remainder."""
    return (over[1] for over in map(whole_quotient, atoms) if over is not None)


def whole_scale(extent: Extent) -> int:
    """A number whose product with *extent* has no quotients without remainder."""
    if isinstance(extent, int):
        return 1
    return lcm(*(prod(_divisors(atoms)) for atoms, _ in extent.terms))


def rank_of(term: tuple[Monomial, int]) -> tuple[int, tuple[str, ...]]:
    """The place of *term* in an order in which products of terms keep the order of the terms."""
    return len(term[0]), tuple(map(str, term[0]))


def shared_factor(terms: Terms) -> Atom | None:
    """An atom that is never negative and a factor of every term, of which there are several."""
    if len(terms) < 2:
        return None
    for atom in terms[0][0]:
        if ends_of(atom)[0] >= 0 and all(atom in atoms for atoms, _ in terms):
            return atom
    return None


def without(atoms: Monomial, atom: Atom) -> Monomial:
    """*atoms* with *atom* once less."""
    at_ = atoms.index(atom)
    return (*atoms[:at_], *atoms[at_ + 1 :])


def product_ends(atoms: Monomial) -> tuple[int, int]:
    """The least and the greatest value of a product, as far as *atoms* are independent."""
    low, high = 1, 1
    for atom in atoms:
        ends = [x * y for x in (low, high) for y in ends_of(atom)]
        low, high = min(ends), max(ends)
    return low, high


def ends_of(atom: Atom) -> tuple[int, int]:
    """The least and the greatest value of *atom*."""
    return (atom.low, atom.high) if isinstance(atom, Dim) else atom.ends


def divisor_of(atom: Atom) -> int:
    """A number that divides *atom* for all sizes."""
    if isinstance(atom, Dim):
        return atom.step
    if atom.op is SizeOp.FLOORDIV:
        over = whole_quotient(atom)
        return 1 if over is None else multiple_of(over[0]) // over[1]
    return gcd(multiple_of(atom.a), multiple_of(atom.b))


def _named(atom: Atom, *, alone: bool) -> str:
    if isinstance(atom, Dim):
        return atom.name
    return str(atom) if alone else _factor(atom)


def _factor(value: Any) -> str:
    """*value* as a factor: in parentheses if it is a sum, a product or a quotient."""
    terms: Terms | None = getattr(value, "terms", None)
    if terms is not None:
        ((atoms, c), *others) = terms
        if len(atoms) == 1 and c == 1 and not others:
            return _named(atoms[0], alone=False)
    elif isinstance(value, int) or value.op is not SizeOp.FLOORDIV:
        return str(value)
    return f"({value})"


def text_of(terms: Terms) -> str:
    """The text of a sum of *terms*."""
    parts = []
    for atoms, c in terms:
        alone = len(atoms) == 1 and abs(c) == 1
        names = [_named(atom, alone=alone) for atom in atoms]
        shown = [str(abs(c))] if abs(c) != 1 or not atoms else []
        parts.append(("- " if c < 0 else "+ ") + "*".join([*shown, *names]))
    text = " ".join(parts)
    return text[2:] if text.startswith("+") else f"-{text[2:]}"
