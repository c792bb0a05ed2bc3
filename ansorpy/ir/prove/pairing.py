"""Pair the executions of one iteration with the corresponding executions of another.

The statements that write a buffer private to an iteration show in one of three ways that two of
its elements are equal:

* Only one statement writes it, with the same value in all executions that write either element.
* Both are the same element, and both iterations execute all writes to the buffer in step.
* The executions that write one element correspond, in their order, to those that write the other.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.analysis.isl import Domain, Holds
from ansorpy.ir.expr import Expr, Var
from ansorpy.ir.loops import Buffer, Store
from ansorpy.ir.prove.facts import Facts, Use
from ansorpy.ir.prove.relations import related
from ansorpy.ir.prove.sites import Site

if TYPE_CHECKING:
    import islpy as isl

__all__ = ["Differ", "Pairs", "Writer", "generalised", "in_one_order"]


class Differ(Exception):
    """Values are not proved equal.

    *refuted* if they are known to come from different inputs, *by_data* if an index or a condition
    that depends on data prevents the proof.
    """

    def __init__(self, why: str, *, refuted: bool = False, by_data: bool = False):
        super().__init__(why)
        self.refuted = refuted
        self.by_data = by_data


class Pairs:
    """Pairs of executions of the statement at ``site``, as a map over the points of ``domain``.

    Args:
        exact: All of them write one element in different iterations.
        whole: A superset of the pairs.
        chain: The buffers through which these executions were reached.
    """

    def __init__(
        self,
        facts: Facts,
        site: Site,
        domain: Domain,
        pairs: isl.Map,
        *,
        exact: bool = False,
        whole: Pairs | None = None,
        chain: frozenset[Buffer] = frozenset(),
    ):
        self.facts = facts
        self.site = site
        self.domain = domain
        self.map = pairs
        self.exact = exact
        self.chain = chain
        self._whole = whole
        self._agreed: dict[frozenset[tuple[Expr, int]], bool] = {}

    def only_where(self, points: isl.Set) -> Pairs:
        """The pairs whose first execution is among *points*."""
        return Pairs(
            self.facts, self.site, self.domain, self.map.intersect_domain(points),
            exact=self.exact, whole=self, chain=self.chain,
        )  # fmt: skip

    def agree_on(self, e: Expr) -> bool:
        """True when the affine expression *e* has one value in both executions of each pair."""
        terms = linear(e).terms
        if all(self._agree(atom, {atom: 1}) for atom in terms):
            return True
        return self._agree(e, terms)

    def _agree(self, e: Expr, terms: Mapping[Expr, int]) -> bool:
        key = frozenset(terms.items())
        found = self._agreed.get(key)
        if found is None:
            found = self._agreed[key] = self._whole is not None and self._whole._agree(e, terms)
            if not found:
                value = self.image([e])
                found = bool(self.map.is_subset(value.apply_range(value.reverse())))
                self._agreed[key] = found
        return found

    def agree_whether(self, points: isl.Set) -> bool:
        """True when, in each pair, both executions are among *points* or neither is."""
        reached = self.map.intersect_domain(points).range()
        left = self.map.intersect_domain(points.complement()).range()
        return bool(reached.is_subset(points)) and bool(left.is_disjoint(points))

    def image(self, exprs: Sequence[Expr]) -> isl.Map:
        """From points to the values of affine *exprs*.

        Raises:
            Differ: Some depend on data.
        """
        found = self.domain.values(exprs)
        if not found.exact:
            raise Differ("an index or value depends on data", by_data=True)
        return found.map

    def values_of(self, exprs: Sequence[Expr]) -> isl.Map:
        """The pairs of values that *exprs* have in the pairs of executions."""
        image = self.image(exprs)
        return image.reverse().apply_range(self.map).apply_range(image)


class Writer:
    """The executions of a store to a buffer with an instance per iteration of loops to *level*.

    ``moving`` are its other loops that determine the element, ``repeated`` those that do not.
    """

    def __init__(self, facts: Facts, use: Use, level: int):
        store, indices = use.site.stmt, use.access.indices
        self.facts, self.site, self.line = facts, use.site, use.site.line
        if not isinstance(store, Store):
            raise Differ(f'"{self.line}" is not a store')
        self.store = store
        around = facts.around(use.site, level)
        self.around = around
        self.inside = [var for at, var in use.site.loops if at > level]
        indexing = set[Expr]().union(*(use.site.free(index) for index in indices))
        self.moving = [var for var in self.inside if var in indexing]
        self.repeated = [var for var in self.inside if var not in indexing]
        roots = (*around, *self.inside, *indices, *use.site.conditions, store.value)
        self.domain = facts.relations.domain(use.site, roots)
        self.points = self.domain.within(use.site.conditions)
        self.elements = (*around, *indices)
        if not self.points.exact:
            raise Differ(f'whether "{self.line}" runs depends on data', by_data=True)

    def iterations(self, loops: Sequence[Var]) -> isl.Map:
        """From elements to the iterations of *loops* that write them."""
        return self.image(self.elements).reverse().apply_range(self.image(loops))

    def only_in(self, loops: Sequence[Var], chosen: isl.Map) -> Writer:
        """The executions in the iterations of *loops* that are *chosen* for an element."""
        found = copy.copy(self)
        at = self.image((*self.elements, *loops)).intersect_range(chosen.wrap().flatten())
        found.points = self.points & Holds(at.domain(), at.domain(), exact=True)
        return found

    def to_either(self, cells: isl.Map, chain: frozenset[Buffer]) -> Pairs:
        """All pairs of executions that write the elements of a pair of *cells*."""
        at = self.image(self.elements)
        return self._pairs(at.apply_range(cells).apply_range(at.reverse()), chain)

    def in_step(self, instances: isl.Map, chain: frozenset[Buffer]) -> Pairs:
        """The same execution in both of a pair of *instances*.

        Raises:
            Differ: Only one of the two has it, or it writes different elements in them.
        """
        counted = (*self.around, *self.inside)
        number = self.domain.values(counted).map
        number = number.intersect_domain(self.domain.box)
        both = instances.flat_product(_same(len(self.inside)))
        pairs = self._pairs(number.apply_range(both).apply_range(number.reverse()), chain)
        if not pairs.agree_whether(self.points.may):
            raise Differ(f'"{self.line}" runs in only one of the iterations')
        if not all(pairs.agree_on(index) for index in self.store.indices):
            raise Differ(f'"{self.line}" writes different elements in the two iterations')
        return pairs.only_where(self.points.may)

    def in_sequence(self, cells: isl.Map, chain: frozenset[Buffer]) -> Pairs:
        """The executions that write the elements of each pair of *cells*, in their order.

        Raises:
            Differ: One has no counterpart, or they may come in another order.
        """
        number = self.image((*self.elements, *self.repeated))
        both = cells.flat_product(_same(len(self.repeated)))
        found = number.apply_range(both).apply_range(number.reverse())
        for side, paired in ((both.domain(), found.domain()), (both.range(), found.range())):
            if not number.intersect_range(side).domain().is_subset(paired):
                raise Differ(f'"{self.line}" runs in only one of the iterations')
        if not number.is_injective() or not self._is_in_one_order():
            raise Differ(
                f'"{self.line}" writes an element several times, in an order that may vary'
            )
        return self._pairs(found, chain)

    def image(self, exprs: Sequence[Expr]) -> isl.Map:
        """From executions to the values of *exprs*."""
        found = self.domain.values(exprs)
        if not found.exact:
            raise Differ(f'which element "{self.line}" writes depends on data', by_data=True)
        return found.map.intersect_domain(self.points.may)

    def _is_in_one_order(self) -> bool:
        """True if only one iteration of the loops that determine an element writes it."""
        if not self.moving or not self.repeated:
            return True
        moved = self.image(self.elements).reverse().apply_range(self.image(self.moving))
        return bool(moved.is_single_valued())

    def _pairs(self, found: isl.Map, chain: frozenset[Buffer]) -> Pairs:
        return Pairs(self.facts, self.site, self.domain, found, chain=chain)


def in_one_order(writers: Sequence[Writer], level: int) -> Sequence[Writer]:
    """*writers* whose executions store to an element in the same order everywhere.

    A loop inside *level* around two of them must not determine the element, or must be in the same
    iteration when both write it.  Overlapping tiles write some elements in several iterations: if
    each of these starts anew, only the executions in an element's last iteration count.

    Raises:
        Differ: It may be in different iterations.
    """
    try:
        _require_one_order(writers, level)
    except Differ:
        writers = _in_last_iterations(writers, level)
        _require_one_order(writers, level)
    return writers


def _require_one_order(writers: Sequence[Writer], level: int) -> None:
    for mine, others in combinations(writers, 2):
        together = _loops_around([mine, others], level)
        problem = Differ(f'"{mine.line}" and "{others.line}" write in an order that may vary')
        moving = [var for var in together if var in mine.moving]
        if moving != [var for var in together if var in others.moving]:
            raise problem
        if not moving:
            continue
        one, other = (writer.iterations(moving) for writer in (mine, others))
        if not one.union(other).is_single_valued():
            raise problem


def _in_last_iterations(writers: Sequence[Writer], level: int) -> Sequence[Writer]:
    """*writers* restricted to each element's last iteration, in which the first starts anew."""
    first, *rest = writers
    together = _loops_around(writers, level)
    carrying = {var for _, var in first.site.carrying}
    if first.store.reduce is not None or not all(first.site.is_before(w.site) for w in rest):
        raise Differ(f'"{first.line}" is not the first to write an element')
    if not all(var in carrying and var in w.moving for w in writers for var in together):
        raise Differ(f'"{first.line}" writes an element several times')
    every = [writer.iterations(together) for writer in writers]
    last = functools.reduce(lambda a, b: a.union(b), every).lexmax()
    if not last.is_subset(every[0]):
        raise Differ(f'"{first.line}" does not start anew in the last iteration for an element')
    return [writer.only_in(together, last) for writer in writers]


def _loops_around(writers: Sequence[Writer], level: int) -> list[Var]:
    """The loops inside *level* around all *writers*, from the outermost."""
    first, *rest = writers
    shared = min(first.site.shared_levels(other.site) for other in rest)
    return [var for at, var in first.site.loops if level < at < shared]


def generalised(cells: isl.Map) -> isl.Map:
    """A superset of the pairs *cells* that is easier to compare.

    A coordinate that is equal in all pairs may take any value; of the other coordinates, only the
    equations between them are kept.
    """
    import islpy

    dims, kept = cells.dim(islpy.dim_type.out), cells
    found = islpy.Map.universe(cells.get_space())
    for d in reversed(range(dims)):
        same = found.equate(islpy.dim_type.in_, d, islpy.dim_type.out, d)
        if cells.is_subset(same):
            found = same
            kept = kept.project_out(islpy.dim_type.in_, d, 1).insert_dims(islpy.dim_type.in_, d, 1)
            kept = kept.project_out(islpy.dim_type.out, d, 1).insert_dims(islpy.dim_type.out, d, 1)
    return found & kept.affine_hull().to_map()


def _same(dims: int) -> isl.Map:
    return related(("=",) * dims)
