"""Access relations: the elements that each load of a stage reads, and queries about them.

The relation ``{ reader[axes] -> tensor[indices] : guard }`` is an isl map that is built when it is
first needed, and it is authoritative.  If every index is a sum of axes, queries are answered from
the coefficients, which is much faster; tests compare these answers with isl's.  The index of a
gather is opaque: it may be any element of its dimension, and moves with every axis that occurs in
it.

A stage writes each element once, at its own space axes.  So the relation of a load is also its flow
dependence: it depends on all points of the producing stage that compute this element.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from itertools import combinations
from math import gcd
from typing import NamedTuple

from ansorpy.ir.analysis.affine import index_terms
from ansorpy.ir.analysis.isl import Domain, Relation, decide, without_inputs
from ansorpy.ir.analysis.sharing import operands_first
from ansorpy.ir.expr import (
    Axis,
    Binary,
    BinaryOp,
    Call,
    Expr,
    Function,
    Load,
    Reduce,
    ReduceKind,
    Select,
    SizeVar,
    Var,
    children,
    walk,
)
from ansorpy.ir.extents import Extent, dims_of
from ansorpy.ir.sizes import fixed
from ansorpy.ir.symbols import Dim
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["Access", "Shift", "Terms", "accesses", "domain_of", "multiplied_loads", "reads"]

Terms = tuple[Mapping[Axis, int], int]
"""The nonzero coefficients of axes, and the offset."""


class Shift(NamedTuple):
    """``axis + offset``, or the constant *offset* if there is no axis."""

    axis: Axis | None
    offset: int


class Access:
    """One load of *tensor* in the body of *reader*.

    Args:
        indices: One per dimension of *tensor*, over the axes of *reader*.
        guard: The condition under which the element is read; None if it is always read.
    """

    def __init__(
        self, reader: ComputeOp, tensor: Tensor, indices: tuple[Expr, ...], guard: Expr | None
    ):
        self.reader = reader
        self.tensor = tensor
        self.indices = indices
        self.guard = guard
        self.axes = (*reader.axes, *reader.reduce_axes)

    @cached_property
    def relation(self) -> Relation:
        """The relation from points of the reader, its axes in order, to the elements they read."""
        guards = () if self.guard is None else (self.guard,)
        name, shape = self.tensor.name, self.tensor.shape
        return domain_of(self.reader).access(self.indices, shape, name, guards)

    @cached_property
    def terms(self) -> tuple[Terms | None, ...]:
        """Each index as a sum of axes with coefficients; None if it is not such a sum.

        Extents are taken into account: ``(i * 4 + j) // 4`` is ``i`` if the extent of *j* is 4.
        """
        return tuple(self._terms(d) for d in range(len(self.indices)))

    @cached_property
    def shifts(self) -> tuple[Shift | None, ...]:
        """Each index as at most one axis plus a constant; None if it is something else.

        An axis of extent 1 is the constant 0.
        """
        return tuple(None if terms is None else _shift(terms) for terms in self.terms)

    def step(self, d: int, axis: Axis) -> int | None:
        """The change of index *d* with one step along *axis*; None if it varies or is unknown.

        The step of an axis of extent 1 is 0.
        """
        if axis.extent == 1:
            return 0
        terms = self.terms[d]
        return self._steps[d].get(axis, 0) if terms is None else terms[0].get(axis, 0)

    @cached_property
    def moving(self) -> frozenset[Axis]:
        """The axes along which the element changes; along all other axes it is read again."""
        dims = range(len(self.indices))
        return frozenset(a for a in self.axes if any(self.step(d, a) != 0 for d in dims))

    @property
    def innermost(self) -> int:
        """The last dimension of the tensor with several elements; 0 if there is none."""
        return max((d for d, n in enumerate(self.tensor.shape) if n > 1), default=0)

    @cached_property
    def is_injective(self) -> bool:
        """True if different values of the :attr:`moving` axes give different indices.

        This concerns the indices alone, not the guard.  False if isl cannot decide it.
        """
        known = [dict(terms[0]) for terms in self.terms if terms is not None]
        if len(known) == len(self.terms):
            if all(map(_is_counter, known)):
                return True
            if _repeats(known):
                return False
        relation = domain_of(self.reader).access(self.indices, self.tensor.shape)
        if not relation.exact:
            return False
        still = [n for n, axis in enumerate(self.axes) if axis not in self.moving]
        return decide(lambda: without_inputs(relation.map, still).is_injective()) is True

    @cached_property
    def is_once(self) -> bool:
        """True if no element is read at two points of the reader that satisfy the guard."""
        if all(axis.extent == 1 or axis in self.moving for axis in self.axes) and self.is_injective:
            return True
        if self.guard is None or not self.relation.exact:
            return False
        return decide(self.relation.map.is_injective) is True

    def _terms(self, d: int) -> Terms | None:
        found = index_terms(self.indices[d], self.axes)
        if found is not None:
            return found
        steps = {axis: step for axis, step in self._steps[d].items() if step is not None}
        if len(steps) < len(self._steps[d]):
            return None
        start = domain_of(self.reader).at_origin(self.indices[d])
        return None if start is None else ({a: c for a, c in steps.items() if c}, start)

    @cached_property
    def _steps(self) -> tuple[Mapping[Axis, int | None], ...]:
        """For each dimension, isl's answer for the step of each axis that occurs in the index."""
        domain = domain_of(self.reader)
        found: list[Mapping[Axis, int | None]] = []
        for index in self.indices:
            inside = set(walk(index))
            axes = [axis for axis in self.axes if axis.extent != 1 and axis in inside]
            found.append({axis: domain.step(index, axis) for axis in axes})
        return tuple(found)


@lru_cache(maxsize=1024)
def accesses(op: ComputeOp) -> tuple[Access, ...]:
    """The loads in the body of *op*, in order of appearance; computed once per operator.

    A load that several expressions share counts once; its guard holds if any of them is evaluated.
    """
    guards = _guards(op.body)
    return tuple(
        Access(op, e.source, e.indices, guards[e])
        for e in walk(op.body)
        if isinstance(e, Load) and isinstance(e.source, Tensor)
    )


def reads(op: ComputeOp, tensor: Tensor) -> tuple[Access, ...]:
    """The loads of *tensor* in the body of *op*."""
    return tuple(access for access in accesses(op) if access.tensor is tensor)


def multiplied_loads(op: ComputeOp) -> tuple[Load, Load] | None:
    """The two loads whose products *op* sums; None for other operators."""
    match op.body:
        case Reduce(ReduceKind.SUM, Binary(BinaryOp.MUL, Load() as a, Load() as b), _):
            return a, b
    return None


@lru_cache(maxsize=1024)
def domain_of(op: ComputeOp) -> Domain:
    """The iteration domain of *op*: its space axes, then its reduce axes."""
    extents: dict[Var, Extent] = {axis: axis.extent for axis in (*op.axes, *op.reduce_axes)}
    return Domain(extents, op.name, sizes=_sizes_in(op))


def _sizes_in(op: ComputeOp) -> tuple[Dim, ...]:
    """The dimensions on which the axes and the body of *op* depend."""
    found = dict.fromkeys(dims_of(a.extent for a in (*op.axes, *op.reduce_axes)))
    for e in walk(op.body):
        if isinstance(e, SizeVar):
            found[e.dim] = None
        elif isinstance(e, Load):
            found.update(dict.fromkeys(dims_of(e.source.shape)))
    return tuple(found)


def _guards(body: Expr) -> dict[Expr, Expr | None]:
    """The condition under which each part of *body* is evaluated; None if it always is.

    The side of a select that is not taken is not evaluated.
    """
    found: dict[Expr, Expr | None] = {body: None}
    for e in reversed(list(operands_first([body]))):
        guard = found[e]
        for part, under in _parts(e, guard):
            if part in found and found[part] is not under:
                before = found[part]
                under = None if before is None or under is None else before | under
            found[part] = under
    return found


def _parts(e: Expr, guard: Expr | None) -> Iterable[tuple[Expr, Expr | None]]:
    """The operands of *e* and the condition under which each is evaluated."""
    if not isinstance(e, Select):
        return [(part, guard) for part in children(e)]
    otherwise = Call(Function.NOT, (e.cond,))
    then, other = (c if guard is None else guard & c for c in (e.cond, otherwise))
    return [(e.cond, guard), (e.then, then), (e.other, other)]


def _shift(terms: Terms) -> Shift | None:
    moving = {axis: c for axis, c in terms[0].items() if axis.extent != 1}
    if not moving:
        return Shift(None, terms[1])
    (axis, coefficient), *rest = moving.items()
    return None if rest or coefficient != 1 else Shift(axis, terms[1])


def _is_counter(coefficients: Mapping[Axis, int]) -> bool:
    """True if the sum determines the axes' values: each step exceeds the reach of smaller steps."""
    reach = 0
    for axis, c in sorted(coefficients.items(), key=lambda term: abs(term[1])):
        if axis.extent != 1 and abs(c) <= reach:
            return False
        reach += abs(c) * (axis.extent - 1)
    return True


def _repeats(indices: list[dict[Axis, int]]) -> bool:
    """True if changes of two axes that occur only in the same single index can cancel out."""
    for terms in indices:
        alone = [a for a in terms if sum(a in other for other in indices) == 1]
        for a, b in combinations(alone, 2):
            common = gcd(terms[a], terms[b])
            if abs(terms[b]) // common < fixed(a.extent) and abs(terms[a]) // common < fixed(
                b.extent
            ):
                return True
    return False
