"""Facts about one program that its proofs share: sites, relations and synchronisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from ansorpy.ir.expr import Var
from ansorpy.ir.intrinsics import intrinsic
from ansorpy.ir.loops import AsyncCopy, Buffer, For, ForKind, Instruction, Program, expressions
from ansorpy.ir.prove.clocks import Clock, Clocks, Irregular
from ansorpy.ir.prove.relations import Relations
from ansorpy.ir.prove.sites import Access, Home, Region, Site
from ansorpy.ir.prove.walk import sites_of

__all__ = ["Facts", "Use"]


class Use(NamedTuple):
    """An access and the statement that makes it."""

    site: Site
    access: Access

    @property
    def home(self) -> Home:
        """The place where the instance of the buffer is created."""
        return self.site.home(self.access.buffer)

    @property
    def is_copy(self) -> bool:
        """True if it is written by an asynchronous copy."""
        return isinstance(self.site.stmt, AsyncCopy) and self.access.is_write

    @property
    def is_box(self) -> bool:
        """True if it is part of a copy of a box, which needs no fence."""
        loops = (s for s in self.site.nodes if isinstance(s, For))
        return self.is_copy and any(loop.kind is ForKind.BULK for loop in loops)

    @property
    def is_product(self) -> bool:
        """True if an asynchronous instruction makes it."""
        s = self.site.stmt
        return isinstance(s, Instruction) and intrinsic(s.name).asynchronous


class Facts:
    """The analysed program: its accesses by buffer and region, and its clocks."""

    def __init__(self, program: Program):
        self.program = program
        self.sites = sites_of(program)
        self.relations = Relations()
        self._clocks: dict[Region, Clocks | Irregular] = {}
        self._used: dict[Region | None, frozenset[Var]] = {}

    @cached_property
    def uses(self) -> Mapping[Buffer, Sequence[Use]]:
        """All accesses of each buffer, in program order."""
        found: dict[Buffer, list[Use]] = {}
        for site in self.sites:
            for access in site.accesses:
                found.setdefault(access.buffer, []).append(Use(site, access))
        return found

    @cached_property
    def regions(self) -> Mapping[Region, Mapping[Buffer, Sequence[Use]]]:
        """All accesses in each region, by buffer."""
        found: dict[Region, dict[Buffer, list[Use]]] = {}
        for buffer, uses in self.uses.items():
            for use in uses:
                if use.site.region is not None:
                    found.setdefault(use.site.region, {}).setdefault(buffer, []).append(use)
        return found

    def around(self, site: Site, level: int) -> list[Var]:
        """The loops around *site* down to *level* that determine what happens there.

        Parallel loops are left out if nothing in their region depends on them.
        """
        used = self._used_in(site.region)
        parallel = {var for _, var in site.parallel}
        return [
            var for at, var in site.loops if at <= level and (var in used or var not in parallel)
        ]

    def _used_in(self, region: Region | None) -> frozenset[Var]:
        """The loop variables on which anything in *region* depends."""
        if region not in self._used:
            sites = [site for site in self.sites if site.region is region]
            self._used[region] = frozenset(
                v
                for site in sites
                for e in (*site.conditions, *expressions(site.stmt))
                for v in site.free(e)
            )
        return self._used[region]

    def clock(self, site: Site) -> Clock:
        """The clock at *site*, which is in a launch.

        Raises:
            Irregular: Threads may not all pass the same barriers, commits, waits and fences.
        """
        return self._clocks_around(site).at(site.position)

    def clock_after(self, site: Site, home: Home) -> Clock | None:
        """The clock where a buffer created at *home* is freed; None if it outlives the launch.

        Raises:
            Irregular: Threads may not all pass the same barriers, commits, waits and fences.
        """
        region = site.region
        if region is None or home.position is None or home.level < len(region.position):
            return None
        return self._clocks_around(site).after(home.position)

    def _clocks_around(self, site: Site) -> Clocks:
        assert site.region is not None
        found = self._clocks.get(site.region)
        if found is None:
            try:
                found = Clocks(site.region)
            except Irregular as problem:
                found = problem
            self._clocks[site.region] = found
        if isinstance(found, Irregular):
            raise found
        return found
