"""Translate index expressions and conditions to isl, and limit the cost of isl queries.

A :class:`Domain` is a box of integer variables; dimensions are parameters of isl, so an answer
holds for all of their sizes.  Over it an index becomes a ``PwAff``
(:meth:`Domain.affine`), a condition a pair of sets (:meth:`Domain.where`), and the indices of an
access a map from points to elements (:meth:`Domain.access`).  Sums, products with numbers, ``min``,
``max``, selects, and quotients and remainders by positive numbers are exact.  Expressions that isl
cannot represent (loads, products of variables or sizes, narrow integers, which may wrap around) are
opaque: an opaque index may be any element of its dimension, an opaque condition may hold anywhere
or nowhere.

This module is independent of definitions and loop programs, so the analyses of both share it.  The
first domain loads islpy.  Queries go through :func:`decide`, which limits them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from ansorpy.ir.analysis.affine import Linear, difference, linear
from ansorpy.ir.dtypes import DType
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
    Select,
    SizeVar,
    Var,
    as_expr,
    size_var,
)
from ansorpy.ir.extents import Extent, most
from ansorpy.ir.symbols import Dim

if TYPE_CHECKING:
    import islpy as isl

__all__ = ["MAX_OPERATIONS", "Domain", "Holds", "Relation", "decide", "without_inputs"]

T = TypeVar("T")

MAX_OPERATIONS = 100_000
"""Basic steps isl may take for one query: a few milliseconds.  Most need a few hundred steps."""


def decide(question: Callable[[], T], operations: int = MAX_OPERATIONS) -> T | None:
    """The answer to *question*, which calls isl; None if isl needs more than *operations* steps.

    isl does not count all of its work: a difference of sets whose quotients have coprime divisors
    may run for minutes within any limit, so callers must avoid it where nothing can stop it.
    """
    import islpy

    context = islpy.DEFAULT_CONTEXT
    context.reset_operations()
    context.set_max_operations(operations)
    try:
        return question()
    except islpy.Error as error:
        if "maximal number of operations" not in str(error):
            raise
        return None
    finally:
        context.set_max_operations(0)
        context.reset_operations()


@dataclass(frozen=True, eq=False)
class Holds:
    """The points where a condition holds: everywhere in *must*, and nowhere outside of *may*."""

    may: isl.Set
    must: isl.Set
    exact: bool

    def __and__(self, other: Holds) -> Holds:
        return Holds(self.may & other.may, self.must & other.must, self.exact and other.exact)

    def __or__(self, other: Holds) -> Holds:
        return Holds(self.may | other.may, self.must | other.must, self.exact and other.exact)

    def __invert__(self) -> Holds:
        return Holds(self.must.complement(), self.may.complement(), self.exact)


@dataclass(frozen=True, eq=False)
class Relation:
    """The elements accessed at each point; unless *exact*, *map* may contain more elements."""

    map: isl.Map
    exact: bool


class Domain:
    """The points of integer variables, each from 0 up to its extent.

    Expressions are translated over the whole space of the variables; :attr:`box` is the set of
    points.

    Args:
        extents: The variables in the order of the dimensions, with their extents.
        name: Name of the points in printed relations, such as a stage's name.
        values: Values of other variables, such as those bound by a let.
        sizes: The dimensions that extents and expressions may depend on.
    """

    def __init__(
        self,
        extents: Mapping[Var, Extent],
        name: str | None = None,
        values: Mapping[Var, Expr] | None = None,
        sizes: tuple[Dim, ...] = (),
    ):
        self.extents = dict(extents)
        limits = tuple(map(most, extents.values()))
        self.box = _box_of(limits, name, tuple(v.name for v in extents), sizes)
        self._space = self.box.get_space()
        self._sizes = {dim: n for n, dim in enumerate(sizes)}
        self._position = {v: n for n, v in enumerate(extents)}
        self._values = values or {}
        self._affine: dict[Expr, isl.PwAff | None] = {}
        self._holds: dict[Expr, Holds] = {}
        for dim in sizes:
            self.box = self.box & self.where((size_var(dim) % dim.step).equal(0)).may
        self._exact = True
        for v, extent in extents.items():
            if not isinstance(extent, int):
                inside = self.where(v < as_expr(extent))
                self.box, self._exact = self.box & inside.may, self._exact and inside.exact

    def affine(self, e: Expr) -> isl.PwAff | None:
        """The value of an int64 expression at each point of the space; None if it is opaque.

        Variables that are not dimensions and have no value are opaque.
        """
        if e.dtype is not DType.INT64:
            return None
        if e not in self._affine:
            self._affine[e] = self._sum(linear(e))
        return self._affine[e]

    def where(self, condition: Expr) -> Holds:
        """The part of the space where a boolean expression holds."""
        if condition not in self._holds:
            self._holds[condition] = self._where(condition)
        return self._holds[condition]

    def within(self, conditions: Sequence[Expr]) -> Holds:
        """The part of the :attr:`box` where all *conditions* hold."""
        held = Holds(self.box, self.box, self._exact)
        for condition in conditions:
            held &= self.where(condition)
        return held

    def access(
        self,
        indices: Sequence[Expr],
        shape: Sequence[Extent],
        name: str | None = None,
        conditions: Sequence[Expr] = (),
    ) -> Relation:
        """The elements of a tensor of *shape* that are accessed where *conditions* hold.

        An opaque index may be any element of its dimension.
        """
        import islpy

        held, values = self.within(conditions), [self.affine(index) for index in indices]
        known: list[isl.PwAff] = [value for value in values if value is not None]
        plain = self._space.params().set_from_params()
        image_space = plain.add_dims(islpy.dim_type.set, len(known))
        space = self._space.map_from_domain_and_range(image_space)
        image = islpy.MultiPwAff.zero(space)
        for d, affine in enumerate(known):
            image = image.set_at(d, affine)
        found = image.as_map()
        for d, (value, extent) in enumerate(zip(values, shape, strict=True)):
            if value is None:
                found = found.insert_dims(islpy.dim_type.out, d, 1)
                found = found.lower_bound_val(islpy.dim_type.out, d, 0)
                found = found.upper_bound_val(islpy.dim_type.out, d, most(extent) - 1)
        if name is not None:
            found = found.set_tuple_name(islpy.dim_type.out, _isl_name(name))
        return Relation(found.intersect_domain(held.may), held.exact and len(known) == len(values))

    def values(self, exprs: Sequence[Expr], conditions: Sequence[Expr] = ()) -> Relation:
        """From each point of the :attr:`box` where *conditions* hold to the values of *exprs*.

        Exact if neither has opaque parts.
        """
        return self.access(exprs, (0,) * len(exprs), conditions=conditions)

    def step(self, e: Expr, variable: Var) -> int | None:
        """The change of *e* in the :attr:`box` with one step of *variable*, whose extent exceeds 1.

        None if it varies, if *e* is opaque, or if isl cannot decide it.
        """
        import islpy

        value, at = self.affine(e), self._position[variable]
        if value is None:
            return None
        moved = islpy.MultiAff.identity(self._space.map_from_set())
        moved = moved.set_at(at, moved.get_at(at).add_constant_val(1))
        inside = self.box & self.where(variable < as_expr(self.extents[variable] - 1)).may
        change = (value.pullback_multi_aff(moved) - value).intersect_domain(inside)
        ends = decide(lambda: (change.min_val(), change.max_val()))
        return None if ends is None or ends[0] != ends[1] else ends[0].to_python()

    def at_origin(self, e: Expr) -> int | None:
        """The value of *e* when all variables are 0; None if it is opaque or there are sizes."""
        import islpy

        value = self.affine(e)
        if value is None or self._sizes:
            return None
        return value.eval(islpy.Point.zero(self._space)).to_python()

    # Values

    def _sum(self, form: Linear) -> isl.PwAff | None:
        """*form* at each point; None if an atom is opaque."""
        import islpy

        plain = islpy.Aff.zero_on_domain(islpy.LocalSpace.from_space(self._space))
        plain = plain.set_constant_val(form.const)
        others: list[isl.PwAff] = []
        for atom, c in form.terms.items():
            if isinstance(atom, Var) and atom in self._position:
                plain = plain.set_coefficient_val(islpy.dim_type.in_, self._position[atom], c)
                continue
            if isinstance(atom, SizeVar) and atom.dim in self._sizes:
                at = self._sizes[atom.dim]
                plain = plain.set_coefficient_val(islpy.dim_type.param, at, c)
                continue
            part = self._atom(atom)
            if part is None:
                return None
            others.append(part if c == 1 else part.scale_val(c))
        return sum(others, start=islpy.PwAff.from_aff(plain))

    def _atom(self, e: Expr) -> isl.PwAff | None:
        """The value of an expression that is not a sum; None if it is opaque."""
        match e:
            case Var() if e in self._values:
                return self.affine(self._values[e])
            case Binary(op, a, Const(divisor, _)) if op in _QUOTIENTS and divisor > 0:
                inner = self.affine(a)
                return None if inner is None else _QUOTIENTS[op](inner, int(divisor))
            case Binary(BinaryOp.MIN | BinaryOp.MAX as op, a, b):
                left, right = self.affine(a), self.affine(b)
                if left is None or right is None:
                    return None
                return left.min(right) if op is BinaryOp.MIN else left.max(right)
            case Call(Function.ABS, (x,)):
                inner = self.affine(x)
                return None if inner is None else inner.max(inner.neg())
            case Select(cond, then, other):
                return self._choice(cond, self.affine(then), self.affine(other))
            case Cast(_, x) if x.dtype is DType.BOOL:
                return self._choice(x, self.affine(as_expr(1)), self.affine(as_expr(0)))
            case _:
                return None

    def _choice(
        self, cond: Expr, then: isl.PwAff | None, other: isl.PwAff | None
    ) -> isl.PwAff | None:
        holds = self.where(cond)
        if then is None or other is None or not holds.exact:
            return None
        return then.intersect_domain(holds.may).union_add(
            other.intersect_domain(holds.may.complement())
        )

    # Conditions

    def _where(self, e: Expr) -> Holds:
        match e:
            case Const(value, _):
                return self._everywhere if value else ~self._everywhere
            case Compare(op, a, b) if a.dtype is DType.INT64:
                return self._compared(op, self._sum(difference(linear(a), linear(b))))
            case Call(Function.NOT, (x,)):
                return ~self.where(x)
            case Binary(BinaryOp.AND, a, b):
                return self.where(a) & self.where(b)
            case Binary(BinaryOp.OR, a, b):
                return self.where(a) | self.where(b)
            case _:
                return self._unknown

    def _compared(self, op: CompareOp, gap: isl.PwAff | None) -> Holds:
        """The points where ``gap op 0`` holds."""
        if gap is None:
            return self._unknown
        found = _COMPARISONS[op](gap)
        return Holds(found, found, exact=True)

    @property
    def _everywhere(self) -> Holds:
        import islpy

        space = islpy.Set.universe(self._space)
        return Holds(space, space, exact=True)

    @property
    def _unknown(self) -> Holds:
        space = self._everywhere.may
        return Holds(space, space.complement(), exact=False)


_QUOTIENTS: dict[BinaryOp, Callable[[isl.PwAff, int], isl.PwAff]] = {
    BinaryOp.FLOORDIV: lambda a, divisor: a.scale_down_val(divisor).floor(),
    BinaryOp.FLOORMOD: lambda a, divisor: a.mod_val(divisor),
}
_COMPARISONS: dict[CompareOp, Callable[[isl.PwAff], isl.Set]] = {
    CompareOp.LT: lambda d: d.neg().pos_set(),
    CompareOp.LE: lambda d: d.neg().nonneg_set(),
    CompareOp.GT: lambda d: d.pos_set(),
    CompareOp.GE: lambda d: d.nonneg_set(),
    CompareOp.EQ: lambda d: d.zero_set(),
    CompareOp.NE: lambda d: d.non_zero_set(),
}


@lru_cache(maxsize=1024)
def _box_of(
    extents: tuple[int, ...],
    name: str | None,
    variables: tuple[str, ...],
    sizes: tuple[Dim, ...],
) -> isl.Set:
    """The points from 0 up to *extents*, in a tuple called *name* with the given *variables*.

    *sizes* are parameters of the set, each within its range.
    """
    import islpy

    dims = islpy.dim_type.set
    space = islpy.Space.set_alloc(islpy.DEFAULT_CONTEXT, len(sizes), len(extents))
    found = islpy.Set.universe(space)
    for n, dim in enumerate(sizes):
        found = found.set_dim_name(islpy.dim_type.param, n, _isl_name(dim.name))
        found = found.lower_bound_val(islpy.dim_type.param, n, dim.low)
        found = found.upper_bound_val(islpy.dim_type.param, n, dim.high)
    for d, extent in enumerate(extents):
        found = found.lower_bound_val(dims, d, 0).upper_bound_val(dims, d, extent - 1)
    for d, variable in enumerate(variables):
        found = found.set_dim_name(dims, d, _isl_name(variable))
    return found if name is None else found.set_tuple_name(_isl_name(name))


def without_inputs(relation: isl.Map, dims: Sequence[int]) -> isl.Map:
    """*relation* with the input dimensions *dims* projected out."""
    import islpy

    for d in sorted(dims, reverse=True):
        relation = relation.project_out(islpy.dim_type.in_, d, 1)
    return relation


def _isl_name(name: str) -> str:
    """*name*, unless isl could read it as a number, such as that of an exporter's tensor."""
    return f"_{name}" if name[:1].isdigit() else name
