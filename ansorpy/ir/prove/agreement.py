"""Prove that iterations of a parallel loop that write the same element write the same value.

Shifted tiles overlap: the last tile starts early and recomputes elements of the previous tile.  Two
executions of a store are paired if they write the same element.  They store the same value if, for
all pairs, the operations are the same, inputs are read at equal indices, and local buffers are read
at elements whose writers can be paired in turn (a bisimulation).  Packed constants are traced into
the program that packs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Const, Expr, Load, Select, children
from ansorpy.ir.loops import Buffer, Role, Scope, Store
from ansorpy.ir.prove.facts import Facts, Use
from ansorpy.ir.prove.pairing import Differ, Pairs, Writer, generalised, in_one_order
from ansorpy.ir.prove.sites import Home, Site
from ansorpy.ir.prove.starts import starting_anywhere

if TYPE_CHECKING:
    import islpy as isl

__all__ = ["Agreement"]


class Agreement:
    """Compares the values that different iterations store.

    Args:
        facts: The program.
        packing: The program that computes the constants of the first, if there is one.
    """

    def __init__(self, facts: Facts, packing: Facts | None):
        self._facts = facts
        self._packing = packing
        params = () if packing is None else packing.program.params
        self._packed = {p.buffer.name: p.buffer for p in params if p.role is Role.OUTPUT}
        self._constants = {p.buffer for p in facts.program.params if p.role is Role.CONSTANT}

    def require(self, use: Use) -> None:
        """Check that iterations that write the same element with *use* write the same value.

        Raises:
            Differ: They may write different values.
        """
        anywhere = self._anywhere.sites[self._facts.sites.index(use.site)]
        for generally in (True, False):
            try:
                self._require(self._anywhere, anywhere, generally=generally, exact=False)
            except Differ:
                continue
            return
        self._require(self._facts, use.site, generally=False, exact=True)

    @cached_property
    def _anywhere(self) -> Facts:
        """The program with tiles that start anywhere, which has the same sites."""
        return Facts(starting_anywhere(self._facts.program))

    def _require(self, facts: Facts, site: Site, *, generally: bool, exact: bool) -> None:
        store = site.stmt
        if not isinstance(store, Store) or store.reduce is not None:
            raise Differ("the statement accumulates into the element", refuted=True)
        roots = (*facts.around(site, len(site.nodes)), *store.indices, *site.conditions)
        domain = facts.relations.domain(site, (*roots, store.value))
        inside = domain.within(site.conditions)
        written = domain.access(store.indices, store.buffer.shape)
        if not inside.exact or not written.exact:
            raise Differ("which element is written depends on data", by_data=True)
        at = written.map.intersect_domain(inside.may)
        found = at.apply_range(at.reverse())
        if exact:
            parallel = [var for _, var in site.parallel]
            thread = domain.values(parallel).map
            found = found - thread.apply_range(thread.reverse())
        pairs = Pairs(facts, site, domain, found, exact=exact)
        self._compare(store.value, pairs, _Comparison(self._packed_uses, generally=generally))

    def _compare(self, value: Expr, pairs: Pairs, comparison: _Comparison) -> None:
        """Raise unless *value* is the same in both executions of each of *pairs*."""
        pending, done = [(value, pairs)], set[tuple[Expr, Pairs]]()
        while pending:
            e, pairs = pending.pop()
            if isinstance(e, Const) or (e, pairs) in done:
                continue
            done.add((e, pairs))
            if pairs.domain.affine(e) is not None:
                if not pairs.agree_on(e):
                    raise Differ("the value depends on the iteration", refuted=pairs.exact)
            elif isinstance(e, Load):
                pending.extend(comparison.loaded(e, pairs))
            elif isinstance(e, Select):
                pending.extend(_chosen(e, pairs))
            elif not _holds_alike(e, pairs):
                pending.extend((child, pairs) for child in children(e))

    def _packed_uses(self, buffer: Buffer) -> tuple[Facts, Sequence[Use]] | None:
        """The accesses to a constant in the program that packs it."""
        if self._packing is None or buffer not in self._constants:
            return None
        made = self._packed.get(buffer.name)
        return None if made is None else (self._packing, self._packing.uses[made])


Equal = Iterator[tuple[Expr, Pairs]]
"""Expressions, and the pairs of executions in which they must be equal."""


class _Comparison:
    """One comparison of two iterations: reduces equal loads to equal values of their writers."""

    def __init__(
        self, packed: Callable[[Buffer], tuple[Facts, Sequence[Use]] | None], *, generally: bool
    ):
        self._packed = packed
        self._generally = generally
        self._in_step: dict[tuple[Buffer, Home], list[isl.Map]] = {}
        self._cells: dict[tuple[Use, ...], list[isl.Map]] = {}

    def loaded(self, load: Load, pairs: Pairs) -> Equal:
        """The expressions that must be equal for *load* to give the same value in each pair."""
        buffer = load.source
        assert isinstance(buffer, Buffer)
        writers = [use for use in pairs.facts.uses[buffer] if use.access.is_write]
        region, home = pairs.site.region, pairs.site.home(buffer)
        mine = [w for w in writers if region is not None and w.site.region is region]
        if mine and buffer.scope is not Scope.LOCAL:
            raise Differ(f"the value is read from {buffer.name}, which the same nest writes")
        affine = [index for index in load.indices if pairs.domain.affine(index) is not None]
        agree = all(pairs.agree_on(index) for index in affine)
        packed = self._packed(buffer)
        if agree and not mine:
            yield from ((index, pairs) for index in load.indices)
        elif len(affine) < len(load.indices):
            raise Differ(f"which element of {buffer.name} is read depends on data", by_data=True)
        elif mine:
            mine = [w for w in mine if w.home == home]
            yield from self._own(load, pairs, mine, home, agree=agree)
        elif packed is not None:
            facts, uses = packed
            writers = [use for use in uses if use.access.is_write]
            yield from self._followed(load, pairs, writers, -1, facts)
        elif writers:
            yield from self._followed(load, pairs, writers, home.level, pairs.facts)
        else:
            why = f"the iterations read different elements of {buffer.name}"
            raise Differ(why, refuted=pairs.exact)

    def _own(
        self, load: Load, pairs: Pairs, writers: Sequence[Use], home: Home, *, agree: bool
    ) -> Equal:
        """The expressions that must be equal for an iteration's private element to be equal."""
        shared = max(w.site.shared_levels(pairs.site) for w in writers)
        together = [var for at, var in pairs.site.loops if home.level < at < shared]
        alone = len(writers) == 1 and _is_plain(writers[0])
        if agree and not alone and all(pairs.agree_on(var) for var in together):
            yield from self._stepped(load, pairs, writers, home)
            return
        if together and not alone:
            raise Differ(f"{load.source.name} is read in a loop that also writes it")
        yield from self._followed(load, pairs, writers, home.level, pairs.facts)

    def _stepped(self, load: Load, pairs: Pairs, writers: Sequence[Use], home: Home) -> Equal:
        """The expressions that must be equal for all elements of a buffer to be equal."""
        assert isinstance(load.source, Buffer)
        instances = pairs.values_of(pairs.facts.around(pairs.site, home.level))
        known = self._in_step.setdefault((load.source, home), [])
        if any(instances.is_subset(others) for others in known):
            return
        known.append(instances)
        for use in writers:
            writer = Writer(pairs.facts, use, home.level)
            yield writer.store.value, writer.in_step(instances, pairs.chain)

    def _followed(
        self, load: Load, pairs: Pairs, writers: Sequence[Use], level: int, facts: Facts
    ) -> Equal:
        """The expressions that must be equal in the statements that wrote an element."""
        buffer = writers[0].access.buffer
        if buffer in pairs.chain:
            raise Differ(f"{buffer.name} is computed from itself")
        alone = len(writers) == 1 and _is_plain(writers[0])
        if facts is pairs.facts and not alone:
            writers = [use for use in writers if use.site.is_before(pairs.site)]
        cells = pairs.values_of((*pairs.facts.around(pairs.site, level), *load.indices))
        known = self._cells.setdefault(tuple(writers), [])
        if any(cells.is_subset(others) for others in known):
            return
        cells = generalised(cells) if self._generally else cells
        known.append(cells)
        chain = pairs.chain | {buffer}
        if alone:
            writer = Writer(facts, writers[0], level)
            yield writer.store.value, writer.to_either(cells, chain)
            return
        for writer in in_one_order([Writer(facts, use, level) for use in writers], level):
            yield writer.store.value, writer.in_sequence(cells, chain)


def _is_plain(use: Use) -> bool:
    return isinstance(use.site.stmt, Store) and use.site.stmt.reduce is None


def _chosen(e: Select, pairs: Pairs) -> Iterator[tuple[Expr, Pairs]]:
    """The condition, and each side with the pairs in which it is taken."""
    yield e.cond, pairs
    holds = pairs.domain.where(e.cond)
    yield e.then, pairs.only_where(holds.may)
    yield e.other, pairs.only_where(holds.must.complement())


def _holds_alike(e: Expr, pairs: Pairs) -> bool:
    """True for a condition on which both executions of each pair agree."""
    if e.dtype is not DType.BOOL:
        return False
    holds = pairs.domain.where(e)
    return holds.exact and pairs.agree_whether(holds.may)
