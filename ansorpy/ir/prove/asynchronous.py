"""Prove that no thread disturbs the operands of asynchronous copies and instructions in flight.

An asynchronous copy writes its element at some time between its statement and a wait of the same
thread for its group.  Until then, no thread may access the element; other threads must pass a
barrier after that wait.  An asynchronous instruction reads shared memory and adds to registers in
the same way, and sees only writes that precede a fence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ansorpy.ir.expr import Expr
from ansorpy.ir.loops import BLOCK_INDICES, LAUNCH_INDICES, THREAD_INDICES, Scope
from ansorpy.ir.prove.clocks import Irregular
from ansorpy.ir.prove.facts import Facts, Use
from ansorpy.ir.prove.findings import Claim, Finding
from ansorpy.ir.prove.instances import own_instance
from ansorpy.ir.prove.relations import Points, identity, in_order, related

if TYPE_CHECKING:
    import islpy as isl

__all__ = ["Asynchronous"]

Comparison = tuple[Expr, str, Expr]
"""A count at one use, a comparison sign, and a count at the other use."""


class _Meeting(NamedTuple):
    """Pairs of conflicting executions of two uses; unless ``exact``, some may never occur.

    ``problem`` is what the second use does, with ``{buffer}`` for the name of the buffer.
    """

    pairs: isl.Map
    exact: bool
    problem: str


class Asynchronous:
    """Decides for each asynchronous access whether other accesses conflict with it."""

    def __init__(self, facts: Facts):
        self._facts = facts

    def check(self, use: Use) -> Finding:
        """Whether another access conflicts with the asynchronous access *use*."""
        try:
            for other in self._facts.uses[use.access.buffer]:
                if other.site.region is not use.site.region:
                    continue
                for meeting in self._meetings(use, other):
                    if not meeting.pairs.is_empty():
                        return _finding(use, other, meeting)
            return self._until_the_end(use)
        except Irregular as reason:
            return Finding.undecided(
                Claim.APART, f'cannot tell when "{use.site.line}" completes: {reason}'
            )

    def _meetings(self, use: Use, other: Use) -> Iterator[_Meeting]:
        if use.is_copy:
            yield from self._while_copied(use, other)
        elif use.access.buffer.scope is Scope.SHARED:
            if other.access.is_write:
                yield from self._while_read(use, other)
        elif not other.is_product:
            yield from self._while_added_to(use, other)

    def _while_copied(self, copy: Use, other: Use) -> Iterator[_Meeting]:
        mine, its = self._facts.clock(copy.site), self._facts.clock(other.site)
        problem = "may access an element of {buffer} before the copy to it has arrived"
        yield self._of_others(copy, other, (mine.copies, ">=", its.published), problem)
        threads = LAUNCH_INDICES
        own = (copy.site.hardware(threads), other.site.hardware(threads))
        yield self._in_order(copy, other, own, (mine.copies, ">=", its.arrived), problem)

    def _while_read(self, product: Use, write: Use) -> Iterator[_Meeting]:
        mine, its = self._facts.clock(product.site), self._facts.clock(write.site)
        problem = "may write an element of {buffer} before the instruction that reads it is done"
        yield self._of_others(product, write, (mine.products, ">=", its.released), problem)
        unseen = (mine.fenced, "<=", its.fences)
        if write.is_copy:
            seen = mine.published if write.is_box else mine.visible_copies
            unseen = (seen, "<=", its.copies)
        comparisons = [*_same_block(product, write), (mine.phase, ">=", its.phase), unseen]
        yield self._meeting(
            product, write, ((), ()), comparisons,
            "writes an element of {buffer} without a fence and a barrier before the instruction "
            "that reads it",
        )  # fmt: skip

    def _while_added_to(self, product: Use, other: Use) -> Iterator[_Meeting]:
        mine, its = self._facts.clock(product.site), self._facts.clock(other.site)
        instance = own_instance([product, other], [product, other])
        own = (instance(product.site), instance(other.site))
        yield self._in_order(
            product, other, own, (mine.products, ">=", its.finished),
            "may access an element of {buffer} before the instruction that adds to it is done",
        )  # fmt: skip
        if other.access.is_write:
            yield self._in_order(
                other, product, own[::-1], (its.register_fences, ">=", mine.register_fences),
                "writes an element of {buffer} without a fence before the instruction that adds "
                "to it",
            )  # fmt: skip

    def _until_the_end(self, use: Use) -> Finding:
        """Whether an instruction completes before its operands are freed."""
        end = self._facts.clock_after(use.site, use.home)
        if not use.is_product or end is None:
            return Finding.proved(Claim.APART)
        running = self._facts.clock(use.site).products >= end.finished
        conditions = (*use.site.conditions, running)
        held = Points(use.site, None, conditions).where(conditions)
        if held.may.is_empty():
            return Finding.proved(Claim.APART)
        message = f'{use.access.buffer.name} is freed before "{use.site.line}" is done with it'
        return Finding.fails(Claim.APART, message, certain=held.exact)

    def _of_others(self, use: Use, other: Use, running: Comparison, problem: str) -> _Meeting:
        """Pairs where another thread executes *other* after *use* began, and *running* holds."""
        mine, its = self._facts.clock(use.site), self._facts.clock(other.site)
        comparisons = [*_same_block(use, other), (mine.phase, "<=", its.phase), running]
        threads = (use.site.hardware(THREAD_INDICES), other.site.hardware(THREAD_INDICES))
        found = self._meeting(use, other, threads, comparisons, problem)
        return found._replace(pairs=found.pairs - identity(found.pairs))

    def _in_order(
        self,
        first: Use,
        second: Use,
        own: tuple[Sequence[Expr], Sequence[Expr]],
        running: Comparison,
        problem: str,
    ) -> _Meeting:
        """Pairs where *own* is equal, *second* comes after *first*, and *running* holds."""
        shared = first.site.shared_levels(second.site)
        loops = [var for at, var in first.site.serial if at < shared]
        at = ((*own[0], *loops), (*own[1], *loops))
        found = self._meeting(first, second, at, [running], problem)
        is_first = first.site.is_before(second.site)
        order = in_order(len(own[0]), len(loops), also_equal=is_first)
        return found._replace(pairs=found.pairs & order)

    def _meeting(
        self,
        one: Use,
        other: Use,
        at: tuple[Sequence[Expr], Sequence[Expr]],
        comparisons: Sequence[Comparison],
        problem: str,
    ) -> _Meeting:
        """Pairs of coordinates *at* which both access one element and all *comparisons* hold."""
        elements = self._facts.relations.elements
        mine = elements(one.site, one.access, tuple(at[0]), tuple(c[0] for c in comparisons))
        its = elements(other.site, other.access, tuple(at[1]), tuple(c[2] for c in comparisons))
        signs = (*(c[1] for c in comparisons), *("=" for _ in one.access.indices))
        pairs = mine.map.apply_range(related(signs)).apply_range(its.map.reverse())
        return _Meeting(pairs, mine.exact and its.exact, problem)


def _same_block(one: Use, other: Use) -> list[Comparison]:
    mine, its = one.site.hardware(BLOCK_INDICES), other.site.hardware(BLOCK_INDICES)
    return [(a, "=", b) for a, b in zip(mine, its, strict=True)]


def _finding(use: Use, other: Use, meeting: _Meeting) -> Finding:
    problem = meeting.problem.format(buffer=use.access.buffer.name)
    message = f'"{other.site.line}" {problem}: "{use.site.line}"'
    return Finding.fails(Claim.APART, message, certain=meeting.exact)
