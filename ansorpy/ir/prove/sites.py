"""The statements of a loop program that access memory, with their context."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Self

from ansorpy.ir.expr import Expr, Var, as_expr, walk
from ansorpy.ir.extents import Extent, most
from ansorpy.ir.loops import (
    LAUNCH_INDICES,
    THREAD_INDICES,
    Buffer,
    For,
    ForKind,
    If,
    Stmt,
    substatements,
)
from ansorpy.ir.sizes import fixed
from ansorpy.ir.symbols import Dim
from ansorpy.ir.text.printer import text

__all__ = ["Access", "Home", "Position", "Region", "Site", "SiteContext"]


LONGEST_LINE = 200
"""Characters of a statement that messages quote."""

Position = tuple[int, ...]
"""The number of the child taken at each node on the way from a program's body to a statement."""


@dataclass(frozen=True)
class Home:
    """The place where the instances of a buffer are created: the node at ``position``.

    Each iteration of a loop around that node has its own instance.  Parameters are created outside
    of the program, at no node.
    """

    position: Position | None

    @property
    def level(self) -> int:
        """The level of that node; loops at deeper levels share an instance."""
        return -1 if self.position is None else len(self.position)


@dataclass(frozen=True, eq=False)
class Region:
    """A nest whose iterations run at once: parallel loops, or the launch of a kernel.

    ``extents`` are those of a launch's block and thread indices; parallel loops have none.
    ``collapsed`` is False if some parallel loops are not nested directly in each other.
    """

    loop: For
    position: Position
    extents: Mapping[ForKind, Extent]
    collapsed: bool = True

    @property
    def is_launch(self) -> bool:
        return bool(self.extents)

    @property
    def threads(self) -> int:
        """The number of threads in a block."""
        return prod(fixed(self.extents.get(kind, 1)) for kind in THREAD_INDICES)

    def bound(self, kinds: Sequence[ForKind]) -> tuple[ForKind, ...]:
        """Those of *kinds* that take several values."""
        return tuple(kind for kind in kinds if most(self.extents.get(kind, 1)) > 1)


@dataclass(frozen=True, eq=False)
class Access:
    """Reads or writes ``buffer[indices]`` where all ``conditions`` hold.

    ``extents`` are loops of the access alone: over the elements of an instruction's operand.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    is_write: bool
    conditions: tuple[Expr, ...] = ()
    extents: Mapping[Var, Extent] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class SiteContext:
    """The context of a statement.

    Args:
        nodes: The statements around it, outermost first; it is in child ``position[n]`` of node n.
        extents: Its loop variables; for several loops over one hardware index, the outermost's.
        values: The values of other variables.
        conditions: Conditions that all hold whenever the statement runs.
        index: The variable of each hardware index that is bound here.
        homes: The places where the buffers in scope are created.
        region: The region that it is in, if any.
        sizes: The dimensions of the program.
    """

    nodes: tuple[Stmt, ...] = ()
    position: Position = ()
    extents: Mapping[Var, Extent] = field(default_factory=dict)
    values: Mapping[Var, Expr] = field(default_factory=dict)
    conditions: tuple[Expr, ...] = ()
    index: Mapping[ForKind, Var] = field(default_factory=dict)
    homes: Mapping[Buffer, Home] = field(default_factory=dict)
    region: Region | None = None
    sizes: tuple[Dim, ...] = ()

    def inside(self, node: Stmt, child: int = 0) -> Self:
        """The context of child number *child* of *node*."""
        return replace(self, nodes=(*self.nodes, node), position=(*self.position, child))


@dataclass(frozen=True, eq=False, kw_only=True)
class Site(SiteContext):
    """A statement that accesses memory or synchronises threads, with its context."""

    stmt: Stmt
    accesses: tuple[Access, ...] = ()

    @cached_property
    def line(self) -> str:
        """The statement as messages quote it, without the statements inside it."""
        lines = text(self.stmt).split("\n")
        line = lines[0] if substatements(self.stmt) else lines[-1]
        return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} ..."

    @cached_property
    def serial(self) -> tuple[tuple[int, Var], ...]:
        """Level and variable of each loop around it that runs its iterations one by one."""
        return self._loops(lambda kind: kind not in (ForKind.PARALLEL, *LAUNCH_INDICES))

    @cached_property
    def parallel(self) -> tuple[tuple[int, Var], ...]:
        """Level and variable of each parallel loop around it."""
        return self._loops(lambda kind: kind is ForKind.PARALLEL)

    @cached_property
    def loops(self) -> tuple[tuple[int, Var], ...]:
        """Level and variable of each loop around it, except loops over hardware indices."""
        return self._loops(lambda kind: kind not in LAUNCH_INDICES)

    @cached_property
    def carrying(self) -> tuple[tuple[int, Var], ...]:
        """Level and variable of each loop around it whose iterations run one after another."""
        return self._loops(lambda kind: not kind.is_bound and kind is not ForKind.PARALLEL)

    def _loops(self, are_meant: Callable[[ForKind], bool]) -> tuple[tuple[int, Var], ...]:
        return tuple(
            (level, node.var)
            for level, node in enumerate(self.nodes)
            if isinstance(node, For) and are_meant(node.kind)
        )

    def home(self, buffer: Buffer) -> Home:
        """Where the instance of *buffer* that is accessed here is created."""
        return self.homes[buffer]

    def hardware(self, kinds: Sequence[ForKind]) -> tuple[Expr, ...]:
        """The hardware indices here; 0 for an index over which no enclosing loop runs."""
        return tuple(self.index.get(kind, as_expr(0)) for kind in kinds)

    def free(self, e: Expr) -> frozenset[Var]:
        """The loop variables that *e* depends on."""
        found = self._free.get(e)
        if found is None:
            found = self._free[e] = frozenset(
                v
                for part in walk(e)
                if isinstance(part, Var)
                for v in (self.free(self.values[part]) if part in self.values else (part,))
            )
        return found

    @cached_property
    def _free(self) -> dict[Expr, frozenset[Var]]:
        return {}

    def shared_levels(self, other: Site) -> int:
        """The number of nodes around this statement that are around *other*, too."""
        n = 0
        for mine, others in zip(self.position, other.position, strict=False):
            n += 1
            if mine != others:
                break
        return n

    def is_before(self, other: Site) -> bool:
        """True if this runs before *other* in each common iteration in which both run."""
        for node, mine, others in zip(self.nodes, self.position, other.position, strict=False):
            if mine != others:
                return mine < others and not (isinstance(node, If) and mine >= 0)
        return False
