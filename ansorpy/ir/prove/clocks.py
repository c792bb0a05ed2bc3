"""Count barriers, commits, waits and fences at each point of a kernel, in terms of its loops.

Barriers, commits, waits and fences are outside of conditions, so all threads have passed the same
number of them at the same point, and that number is affine in the serial loops around the point.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields, replace

from ansorpy.ir.builders import maximum, select
from ansorpy.ir.expr import Expr, Var, as_expr
from ansorpy.ir.extents import least, most
from ansorpy.ir.loops import (
    LAUNCH_INDICES,
    Async,
    Barrier,
    Commit,
    Fence,
    For,
    If,
    Scope,
    Stmt,
    Wait,
    substatements,
    walk_stmts,
)
from ansorpy.ir.prove.sites import Position, Region
from ansorpy.ir.prove.walk import SYNCHRONISING
from ansorpy.ir.rewrite.rewriter import substitute

__all__ = ["Clock", "Clocks", "Irregular"]

ZERO = as_expr(0)


@dataclass(frozen=True)
class Clock:
    """Counts at one point of a kernel, the same for all threads.

    Groups of copies and of products are numbered from 0 in the order of their commits.

    Args:
        phase: Barriers passed.
        copies, products: Groups committed.
        arrived, finished: Groups of copies and of products that were waited for.
        published, released: The values of these two at the last barrier.
        fences, register_fences: Fences of shared memory and of registers passed.
        fenced: Fences of shared memory passed before the last barrier.
        fenced_copies: Groups of copies that had arrived at the last fence of shared memory.
        visible_copies: The value of ``fenced_copies`` at the last barrier.
    """

    phase: Expr = ZERO
    copies: Expr = ZERO
    products: Expr = ZERO
    fences: Expr = ZERO
    register_fences: Expr = ZERO
    arrived: Expr = ZERO
    finished: Expr = ZERO
    fenced_copies: Expr = ZERO
    published: Expr = ZERO
    released: Expr = ZERO
    fenced: Expr = ZERO
    visible_copies: Expr = ZERO

    def after(self, s: Stmt) -> Clock:
        """The clock after a statement that synchronises."""
        match s:
            case Barrier():
                return replace(
                    self, phase=self.phase + 1, published=self.arrived, released=self.finished,
                    fenced=self.fences, visible_copies=self.fenced_copies,
                )  # fmt: skip
            case Commit(Async.COPIES):
                return replace(self, copies=self.copies + 1)
            case Commit():
                return replace(self, products=self.products + 1)
            case Wait(Async.COPIES, pending):
                return replace(self, arrived=maximum(self.arrived, self.copies - pending))
            case Wait(_, pending):
                return replace(self, finished=maximum(self.finished, self.products - pending))
            case Fence(Scope.SHARED):
                return replace(self, fences=self.fences + 1, fenced_copies=self.arrived)
            case Fence():
                return replace(self, register_fences=self.register_fences + 1)
        return self


_SEEN = (
    "arrived", "finished", "fenced_copies", "published", "released", "fenced", "visible_copies",
)  # fmt: skip
"""The counts that statements set from other counts."""


class Irregular(Exception):
    """Threads may not all pass the same barriers, commits, waits and fences.

    The message gives the reason.
    """


class Clocks:
    """The clocks of one launch.

    Raises:
        Irregular: A statement that synchronises is under a condition, or only some threads run it.
    """

    def __init__(self, region: Region):
        self._launch = _Launch(region)
        self._launch.run(region.loop, region.position, Clock())

    def at(self, position: Position) -> Clock:
        """The clock at the start of the statement at *position*, which is in the launch."""
        while position not in self._launch.before:
            position = position[:-1]
        return self._launch.before[position]

    def after(self, position: Position) -> Clock:
        """The clock at the end of the statement at *position*, which is in the launch."""
        return self._launch.after.get(position) or self.at(position)


class _Launch:
    """Records the clocks at, and inside, each statement that contains synchronisation."""

    def __init__(self, region: Region):
        self.region = region
        self.before: dict[Position, Clock] = {}
        self.after: dict[Position, Clock] = {}

    def run(self, s: Stmt, at: Position, clock: Clock) -> Clock:
        """Record the clocks around *s*, and return the clock after it."""
        self.before[at] = clock
        self.after[at] = clock = self._passed(s, at, clock)
        return clock

    def _passed(self, s: Stmt, at: Position, clock: Clock) -> Clock:
        if isinstance(s, Barrier) and s.scope is not Scope.SHARED:
            raise Irregular("a barrier makes blocks wait for each other")
        if isinstance(s, SYNCHRONISING):
            return clock.after(s)
        if not _synchronises(s):
            return clock
        if isinstance(s, If):
            raise Irregular("a barrier, commit, wait or fence is under a condition")
        if isinstance(s, For):
            return self._for(s, (*at, 0), clock)
        for n, part in enumerate(substatements(s)):
            clock = self.run(part, (*at, n), clock)
        return clock

    def _for(self, s: For, inside: Position, clock: Clock) -> Clock:
        if s.kind in LAUNCH_INDICES:
            if most(self.region.extents[s.kind] - s.extent) > 0:
                raise Irregular(
                    f"only some threads along {s.kind.value} reach a barrier, commit, wait or fence"
                )
            return self.run(s.body, inside, clock)
        start, end = self._iteration(s, inside, clock)
        self.run(s.body, inside, start)
        last, some = {s.var: as_expr(s.extent - 1)}, as_expr(s.extent) > 0
        after = {f.name: substitute(getattr(end, f.name), last) for f in fields(Clock)}
        if least(s.extent) < 1:
            after.update((n, select(some, after[n], getattr(clock, n))) for n in _SEEN)
        return Clock(**after)

    def _iteration(self, s: For, inside: Position, entry: Clock) -> tuple[Clock, Clock]:
        """The clocks at the start and at the end of iteration ``s.var`` of a loop.

        Counts never decrease, so the value of each was set by the latest iteration or before the
        loop.
        """
        passed = _counts(s.body)
        start = replace(
            entry, **{name: getattr(entry, name) + s.var * n for name, n in passed.items()}
        )
        unknown = {name: Var(name) for name in _SEEN}
        end = _Launch(self.region).run(s.body, inside, replace(start, **unknown))
        known: dict[Var, Expr] = {}
        for name in _SEEN:
            first = getattr(entry, name)
            made = substitute(getattr(end, name), {**known, unknown[name]: first})
            at_start = first
            if getattr(end, name) is not unknown[name]:
                before = substitute(made, {s.var: s.var - 1})
                at_start = select(s.var >= 1, before, first)
            known[unknown[name]] = at_start
            start, end = replace(start, **{name: at_start}), replace(end, **{name: made})
        return start, end


def _counts(s: Stmt) -> Counter[str]:
    """The amount that a statement adds to each count."""
    match s:
        case Barrier():
            return Counter(phase=1)
        case Commit(Async.COPIES):
            return Counter(copies=1)
        case Commit():
            return Counter(products=1)
        case Fence(Scope.SHARED):
            return Counter(fences=1)
        case Fence():
            return Counter(register_fences=1)
    found: Counter[str] = Counter()
    for part in substatements(s):
        found.update(_counts(part))
    if isinstance(s, For) and s.kind not in LAUNCH_INDICES:
        return Counter({name: n * s.extent for name, n in found.items()})
    return found


def _synchronises(s: Stmt) -> bool:
    return any(isinstance(part, SYNCHRONISING) for part in walk_stmts(s))
