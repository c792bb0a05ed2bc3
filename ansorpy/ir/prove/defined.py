"""Prove that elements are written before they are read, and that outputs are written in full.

The elements read are compared with the elements written at common coordinates: the loops around
both accesses, where the writer comes first or ran in an earlier iteration.  In a kernel, the number
of barriers passed is such a coordinate, because after a barrier a thread sees what other threads
wrote before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ansorpy.ir.expr import Expr, Var
from ansorpy.ir.loops import BLOCK_INDICES, Buffer, Scope
from ansorpy.ir.prove.clocks import Irregular
from ansorpy.ir.prove.facts import Facts, Use
from ansorpy.ir.prove.findings import Claim, Finding
from ansorpy.ir.prove.instances import Where, own_instance, variables_of
from ansorpy.ir.prove.relations import Points, box, example, filled, padded, related
from ansorpy.ir.prove.sites import Site

if TYPE_CHECKING:
    import islpy as isl

__all__ = ["Defined"]


class _Source(NamedTuple):
    """The elements ``written`` that a reader sees, by coordinates ``inputs`` of the reader.

    If it is not ``exact``, more may be written.
    """

    inputs: Sequence[Expr]
    written: isl.Map
    exact: bool


class Defined:
    """Decides whether the elements that are read were written."""

    def __init__(self, facts: Facts):
        self._facts = facts
        self._filled: dict[tuple[object, ...], bool] = {}

    def output(self, buffer: Buffer) -> Finding:
        """Whether all elements of an output are written."""
        left, exact = box(buffer.shape, self._facts.program.dims), True
        for use in self._facts.uses.get(buffer, ()):
            if not use.access.is_write:
                continue
            written = self._facts.relations.elements(use.site, use.access, ())
            exact = exact and written.exact
            if written.exact:
                left = left - written.map.range()
        if left.is_empty():
            return Finding.proved(Claim.COMPLETE)
        at = f"{buffer.name}[{', '.join(map(str, example(left)))}]"
        return Finding.fails(Claim.COMPLETE, f"output element {at} is never written", certain=exact)

    def read(self, use: Use) -> Finding:
        """Whether the elements that *use* reads were written before."""
        if self._is_filled(use):
            return Finding.proved(Claim.DEFINED)
        sources: list[_Source] = []
        try:
            for source in self._sources(use):
                read = self._facts.relations.elements(use.site, use.access, source.inputs)
                if read.map.is_subset(source.written):
                    return Finding.proved(Claim.DEFINED)
                sources.append(source)
        except Irregular as problem:
            name, line = use.access.buffer.name, use.site.line
            return Finding.undecided(
                Claim.DEFINED,
                f'cannot tell whether {name} is written before "{line}" reads it: {problem}',
            )
        return self._together(use, sources)

    def _together(self, use: Use, sources: Sequence[_Source]) -> Finding:
        """The finding if no single source has all elements that *use* reads."""
        site, access = use
        conditions = (*site.conditions, *access.conditions)
        inputs = [e for source in sources for e in source.inputs]
        points = Points(site, access, (*inputs, *access.indices, *conditions))
        read = points.relation(points.coordinates, access.indices, conditions, access.buffer.shape)
        left = read.map
        for source in sources:
            at = points.relation(points.coordinates, source.inputs, ())
            left = left - at.map.apply_range(source.written)
        if left.is_empty():
            return Finding.proved(Claim.DEFINED)
        point, count = example(left.wrap().flatten()), len(points.coordinates)
        name = f"{access.buffer.name}[{', '.join(map(str, point[count:]))}]"
        message = f'{name} is read before it is written, in "{site.line}"'
        certain = read.exact and all(source.exact for source in sources)
        return Finding.fails(Claim.DEFINED, message + points.text(point[:count]), certain=certain)

    def _is_filled(self, use: Use) -> bool:
        """True if statements before *use* write the whole buffer, so that all reads are defined.

        The answer is computed once for all reads after these statements.
        """
        plain = [w for w in self._writers(use) if not w.is_copy and w.site.is_before(use.site)]
        for inside in (False, True):
            before = [w for w in plain if _in_one_launch(w, use) is inside]
            if not before:
                continue
            own = own_instance([use, *before], before) if inside else _nowhere
            source = next(self._union(use, before, own, self._common(use, before, before)))
            key = (*before, None, *source.inputs)
            if key not in self._filled:
                points = Points(use.site, None, source.inputs)
                reached = points.relation(source.inputs, (), ()).map.domain()
                everything = filled(reached, use.access.buffer.shape, use.site.sizes)
                self._filled[key] = everything.is_subset(source.written)
            if self._filled[key]:
                return True
        return False

    # Writers, and the elements that they write

    def _writers(self, use: Use) -> list[Use]:
        """The accesses that write the buffer instance that *use* reads, except asynchronous
        instructions."""
        return [
            w for w in self._facts.uses[use.access.buffer]
            if w.access.is_write and w.home == use.home and not w.is_product
        ]  # fmt: skip

    def _common(
        self, use: Use, writers: Sequence[Use], depending: Sequence[Use]
    ) -> list[tuple[int, Var]]:
        """The loops around *use* and one of *writers* on which any of *depending* depends."""
        needed = variables_of(depending)
        most = max((w.site.shared_levels(use.site) for w in writers), default=0)
        return [(at, var) for at, var in use.site.loops if at < most and var in needed]

    def _sources(self, use: Use) -> Iterator[_Source]:
        """The sources that *use* may read from, cheapest first."""
        writers = self._writers(use)
        plain = [w for w in writers if not w.is_copy]
        yield from self._in_order(use, [w for w in plain if not _in_one_launch(w, use)], _nowhere)
        if use.site.region is None or not use.site.region.is_launch:
            return
        near = [w for w in writers if _in_one_launch(w, use)]
        mine = [w for w in near if not w.is_copy]
        yield from self._in_order(use, mine, own_instance([use, *mine], [use, *mine]))
        if use.access.buffer.scope not in (Scope.LOCAL, Scope.WARP):
            yield from self._synchronised(use, near)

    def _in_order(self, use: Use, writers: Sequence[Use], own: Where) -> Iterator[_Source]:
        """Earlier writes where *own* is equal: in this iteration, then in other iterations.

        All threads see the writes of earlier iterations of a loop around the reader's region.
        """
        before = [w for w in writers if w.site.is_before(use.site)]
        yield from self._union(use, before, own, self._common(use, before, [use, *before]))
        loops = self._common(use, writers, [use, *writers])
        for level, var in use.site.carrying:
            again = [w for w in writers if w.site.shared_levels(use.site) > level]
            around = [*(loop for loop in loops if loop[0] < level), (level, var)]
            mine = own if _is_inside(level, use.site) else _nowhere
            if level > use.home.level:
                yield from self._union(use, again, mine, around, last=">")

    def _union(
        self,
        use: Use,
        writers: Sequence[Use],
        own: Where,
        loops: Sequence[tuple[int, Var]],
        last: str = "=",
    ) -> Iterator[_Source]:
        """Writes of *writers* in equal iterations of *loops*; *last* compares the last loop."""

        def where(writer: Use) -> Sequence[Expr]:
            shared = writer.site.shared_levels(use.site)
            return (*own(writer.site), *(var for at, var in loops if at < shared))

        inputs = (*own(use.site), *(var for _, var in loops))
        yield from self._written(inputs, writers, where, last)

    def _synchronised(self, use: Use, writers: Sequence[Use]) -> Iterator[_Source]:
        """The writes before the last barrier, and those of copies that had arrived by then.

        The thread itself sees its copies as soon as it has waited for them.
        """
        clock, home = self._facts.clock, use.home.level
        own = own_instance([use, *writers], [use, *writers])

        def around(site: Site) -> Sequence[Expr]:
            return (*site.hardware(BLOCK_INDICES), *(var for at, var in site.loops if at <= home))

        plain = [w for w in writers if not w.is_copy]
        copies = [w for w in writers if w.is_copy]
        now = clock(use.site)
        yield from self._written(
            (*around(use.site), now.phase), plain,
            lambda w: (*around(w.site), clock(w.site).phase), ">",
        )  # fmt: skip
        yield from self._written(
            (*around(use.site), now.published), copies,
            lambda w: (*around(w.site), clock(w.site).copies), ">",
        )  # fmt: skip
        yield from self._written(
            (*own(use.site), *around(use.site), now.arrived), copies,
            lambda w: (*own(w.site), *around(w.site), clock(w.site).copies), ">",
        )  # fmt: skip

    def _written(
        self,
        inputs: Sequence[Expr],
        writers: Sequence[Use],
        where: Callable[[Use], Sequence[Expr]],
        last: str,
    ) -> Iterator[_Source]:
        """The elements that *writers* wrote, by the coordinates *inputs* of the reader.

        The coordinates *where* of a writer equal *inputs*, except the last, which *last* compares.
        A writer with fewer coordinates counts for all values of the others.
        """
        total, exact = None, True
        for writer in writers:
            at = where(writer)
            found = self._facts.relations.elements(writer.site, writer.access, tuple(at))
            exact = exact and found.exact
            known = found.map if found.exact else found.map - found.map
            known = padded(known, len(inputs) - len(at))
            total = known if total is None else total | known
        if total is not None:
            signs = ("=",) * (len(inputs) - 1) + (last,) if inputs else ()
            if last != "=":
                total = related(signs).apply_range(total)
            yield _Source(tuple(inputs), total, exact)


def _nowhere(site: Site) -> Sequence[Expr]:
    """No coordinates: for writes that every thread sees."""
    return ()


def _in_one_launch(one: Use, other: Use) -> bool:
    region = one.site.region
    return region is not None and region.is_launch and region is other.site.region


def _is_inside(level: int, site: Site) -> bool:
    """True if the loop at *level* is inside the region of *site*."""
    return site.region is not None and level > len(site.region.position)
