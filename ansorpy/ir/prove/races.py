"""Prove that concurrent iterations access different elements, or only read them.

Iterations of parallel loops, and threads of a kernel, conflict if one writes an element that
another accesses with no barrier in between.  The number of barriers passed is a coordinate of an
access, like the indices: threads of a block conflict where all coordinates agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansorpy.ir.expr import Expr, Var
from ansorpy.ir.loops import BLOCK_INDICES, THREAD_INDICES, Buffer, Scope
from ansorpy.ir.prove.agreement import Agreement
from ansorpy.ir.prove.clocks import Irregular
from ansorpy.ir.prove.facts import Facts, Use
from ansorpy.ir.prove.findings import Claim, Finding
from ansorpy.ir.prove.pairing import Differ
from ansorpy.ir.prove.relations import example, identity
from ansorpy.ir.prove.sites import Region

if TYPE_CHECKING:
    import islpy as isl

__all__ = ["Conflict", "Coordinates", "Races"]

Coordinates = Callable[[Use], Sequence[Expr]]
"""The coordinates of a use; all uses of a buffer have the same number of them."""


@dataclass(frozen=True)
class Conflict:
    """Two uses by which different threads access the same element.

    ``maps`` relate threads to the elements of each use.  If they are not ``exact``, the threads may
    never do so.
    """

    first: Use
    second: Use
    maps: tuple[isl.Map, isl.Map]
    exact: bool

    @property
    def pairs(self) -> isl.Map:
        """The pairs of threads."""
        return _pairs(*self.maps)

    def finding(self, what: str, of: str = "", why: str = "") -> Finding:
        """The failed claim; *what* and *of* (loops) name the threads, *why* gives the reason."""
        text = self._text(what, of) + (f": {why}" if why else "")
        return Finding.fails(Claim.APART, text, certain=self.exact)

    def _text(self, what: str, of: str) -> str:
        one, other = (_point(side) for side in _pair(self.pairs))
        name, lines = (
            self.first.access.buffer.name,
            [u.site.line for u in (self.first, self.second)],
        )
        verb = "write" if self.first.access.is_write and self.second.access.is_write else "access"
        where = f'"{lines[0]}"' if self.first is self.second else f'"{lines[0]}" and "{lines[1]}"'
        who = f"{what} {one} and {other}{of and f' of {of}'}"
        return f"{who} {verb} the same element of {name} at the same time, in {where}"


def _pairs(one: isl.Map, other: isl.Map) -> isl.Map:
    """Pairs of different inputs that *one* and *other* relate to the same."""
    return one.apply_range(other.reverse()) - identity(one)


def _pair(pairs: isl.Map) -> tuple[tuple[int, ...], tuple[int, ...]]:
    found = example(pairs.wrap().flatten())
    return found[: len(found) // 2], found[len(found) // 2 :]


def _point(at: Sequence[int]) -> str:
    return f"{at[0]}" if len(at) == 1 else f"({', '.join(map(str, at))})"


@dataclass(frozen=True)
class _Alike:
    """Uses with the same relation from threads to elements."""

    map: isl.Map
    exact: bool
    uses: list[Use]


class Races:
    """Decides for each region and each buffer that it writes whether its iterations conflict."""

    def __init__(self, facts: Facts, agreement: Agreement):
        self._facts = facts
        self._agreement = agreement

    def check(self, region: Region, buffer: Buffer, uses: Sequence[Use]) -> Finding:
        """Check the *uses* of *buffer* in *region*, some of which write."""
        if not region.is_launch:
            return self._parallel(region, uses)
        try:
            return self._launch(region, buffer, uses)
        except Irregular as problem:
            message = f"cannot tell whether threads race on {buffer.name}: {problem}"
            return Finding.undecided(Claim.APART, message)

    def is_apart(self, region: Region, uses: Sequence[Use]) -> bool:
        """True if no two iterations, in one execution of the parallel loops, access an element that
        either of them writes, even if the values are equal."""

        def outside(use: Use) -> list[Var]:
            return [v for level, v in use.site.serial if level < len(region.position)]

        together = self._conflicts(uses, lambda use: [v for _, v in use.site.parallel], outside)
        return region.collapsed and not any(together)

    def _parallel(self, region: Region, uses: Sequence[Use]) -> Finding:
        if not region.collapsed:
            return Finding.undecided(Claim.APART, "parallel loops are not nested in one another")
        for conflict in self._conflicts(uses, lambda use: [v for _, v in use.site.parallel]):
            names = ", ".join(v.name for _, v in conflict.first.site.parallel)
            problem = self._agree(conflict, names)
            if problem is not None:
                return problem
        return Finding.proved(Claim.APART)

    def _agree(self, conflict: Conflict, loops: str) -> Finding | None:
        """None if both iterations of *loops* execute one statement and write the same value."""
        if conflict.first is not conflict.second:
            return conflict.finding("iterations", loops)
        try:
            self._agreement.require(conflict.first)
        except Differ as problem:
            if problem.refuted:
                return conflict.finding("iterations", loops, str(problem))
            name, line = conflict.first.access.buffer.name, conflict.first.site.line
            undecided = Finding.by_data if problem.by_data else Finding.undecided
            return undecided(
                Claim.APART,
                f"iterations of {loops} may write different values to the same element of {name}, "
                f'in "{line}": {problem}',
            )
        return None

    def _launch(self, region: Region, buffer: Buffer, uses: Sequence[Use]) -> Finding:
        blocks, threads = region.bound(BLOCK_INDICES), region.bound(THREAD_INDICES)
        if buffer.scope is not Scope.SHARED:
            kinds = (*blocks, *threads)
            if not any(self._conflicts(uses, lambda use: use.site.hardware(kinds))):
                return Finding.proved(Claim.APART)
            for conflict in self._conflicts(uses, lambda use: use.site.hardware(blocks)):
                return conflict.finding("blocks")
        clock = self._facts.clock
        plain = [use for use in uses if not (use.is_copy or use.is_product)]
        for conflict in self._conflicts(
            plain,
            lambda use: use.site.hardware(threads),
            lambda use: (*use.site.hardware(blocks), clock(use.site).phase),
        ):
            return conflict.finding("threads")
        return Finding.proved(Claim.APART)

    def _conflicts(
        self, uses: Sequence[Use], threads: Coordinates, also: Coordinates = lambda use: ()
    ) -> Iterator[Conflict]:
        """Pairs of uses that touch one element at equal coordinates *also* in different *threads*.

        Uses with the same relation are compared once.
        """
        alike = self._by_relation(uses, threads, also)
        for n, one in enumerate(alike):
            for other in alike[n:]:
                first, second = one.uses[0], other.uses[-1]
                if not (first.access.is_write or second.access.is_write):
                    continue
                if one is other:
                    is_apart = one.map.is_injective()
                else:
                    is_apart = _pairs(one.map, other.map).is_empty()
                if not is_apart:
                    yield Conflict(first, second, (one.map, other.map), one.exact and other.exact)

    def _by_relation(
        self, uses: Sequence[Use], threads: Coordinates, also: Coordinates
    ) -> list[_Alike]:
        found: list[_Alike] = []
        for use in uses:
            relation = self._facts.relations.elements(
                use.site, use.access, tuple(threads(use)), tuple(also(use))
            )
            for alike in found:
                same_kind = alike.uses[0].access.is_write is use.access.is_write
                if same_kind and alike.map.plain_is_equal(relation.map):
                    alike.uses.append(use)
                    break
            else:
                found.append(_Alike(relation.map, relation.exact, [use]))
        return found
