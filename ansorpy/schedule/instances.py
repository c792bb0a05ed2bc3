"""Statement instances: the points of its operator that each iteration of a stage computes.

The instances of a stage with loops consist of the loops around its statement, the value of each
axis in them, the conditions under which the statement runs, and the box of its tensor that is kept
at its attach loop.  The values are those that lowering uses, over one variable per loop, so they
can be passed to isl (:mod:`ansorpy.ir.analysis.isl`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ansorpy.ir.analysis.interval import extents_of
from ansorpy.ir.analysis.isl import Domain
from ansorpy.ir.expr import Axis, Binary, BinaryOp, Expr, Var, as_expr
from ansorpy.ir.extents import Extent, Symbolic, least, most
from ansorpy.ir.loops import BLOCK_THREADS, ForKind
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.symbols import Dim
from ansorpy.ir.tensor import ComputeOp
from ansorpy.schedule.bounds.axes import axis_exprs, is_ragged, known_extents, overshoot
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.bounds.spans import start_of
from ansorpy.schedule.lowering.loop_kinds import loop_kinds
from ansorpy.schedule.lowering.tails import second_body
from ansorpy.schedule.stage import SplitRelation, Stage

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["EnclosingLoop", "Instances", "Kept", "instances"]


@dataclass(frozen=True, eq=False)
class EnclosingLoop:
    """A loop around a statement; ``stage`` is the stage to which it belongs."""

    stage: str
    name: str
    kind: ForKind
    var: Var
    extent: Extent


@dataclass(frozen=True, eq=False)
class Kept:
    """The part of one dimension that is kept: *extent* elements from *start*."""

    start: Expr
    extent: Extent


@dataclass(frozen=True, eq=False)
class Instances:
    """The executions of one stage's statement.

    Args:
        outer: The loops of other stages around it, outermost first.
        own: The stage's own loops.
        axes: The value of each axis, space axes first.
        guards: The conditions under which the statement runs.
        extents: The extent of every axis and loop of the stage, including split or fused ones.
        kept: For a stage computed at a loop, the box that is kept in each iteration of the loop.
        sizes: The dimensions of the definition.
    """

    stage: Stage
    op: ComputeOp
    outer: tuple[EnclosingLoop, ...]
    own: tuple[EnclosingLoop, ...]
    axes: Mapping[Axis, Expr]
    guards: tuple[Expr, ...]
    extents: Mapping[str, Extent]
    kept: tuple[Kept, ...] | None
    sizes: tuple[Dim, ...]

    @property
    def loops(self) -> tuple[EnclosingLoop, ...]:
        """All loops around the statement, outermost first."""
        return (*self.outer, *self.own)

    @cached_property
    def domain(self) -> Domain:
        """The iterations of :attr:`loops`; the statement runs in those that meet the guards."""
        return self.domain_of(self.loops)

    def domain_of(self, loops: Sequence[EnclosingLoop]) -> Domain:
        """The iterations of *loops*."""
        extents = {loop.var: loop.extent for loop in loops}
        return Domain(extents, self.stage.name, sizes=self.sizes)

    @property
    def ranges(self) -> dict[Var, tuple[Extent, Extent]]:
        """The lowest and highest value of each loop's variable."""
        return {loop.var: (0, loop.extent - 1) for loop in self.loops}

    def at(self, e: Expr) -> Expr:
        """Convert an expression of the operator's axes to one of the loops."""
        return substitute(e, {axis: value for axis, value in self.axes.items()})


def instances(state: State) -> dict[str, Instances]:
    """The instances of every stage with loops, by name; no decision of *state* may be open.

    Raises:
        ScheduleError: A stage is computed inside a loop, but one of its readers is outside it.
    """
    bounds = Bounds(state, {})
    made: dict[str, Instances] = {}
    for name in bounds.inlined_dag.ops:  # raises if a compute location is not legal
        bounds.extents(name)
    for name in bounds.inlined_dag.ops:
        _make(bounds, name, made)
    return made


def _make(bounds: Bounds, name: str, made: dict[str, Instances]) -> Instances:
    """Make the instances of stage *name*, after those of the stage in which it is computed."""
    if name in made:
        return made[name]
    stage = bounds.state.stage(name)
    op, extents = bounds.op(name), known_extents(bounds.extents(name))
    outer: tuple[EnclosingLoop, ...] = ()
    kept: tuple[Kept, ...] | None = None
    if stage.attach is not None:
        host = _make(bounds, stage.attach.stage, made)
        inside = next(n for n, loop in enumerate(host.own) if loop.name == stage.attach.iter)
        outer = (*host.outer, *host.own[: inside + 1])
        kept = tuple(_kept(bounds, stage, host, outer))
    kinds = {loop: how.kind for loop, how in loop_kinds(bounds, name).items()}
    found = _around_sums(stage, tuple(
        EnclosingLoop(name, it.name, kinds[it.name], Var(it.name), extents[it.name])
        for it in stage.iters
    ))  # fmt: skip
    leaves: dict[str, Expr] = {loop.name: loop.var for loop in found}
    if stage.carried is not None:
        host = _make(bounds, stage.carried.host, made)
        outer = (*host.outer, *host.own[: host.stage.index(stage.carried.iter) + 1])
        paired = dict(stage.carried.loops)
        var = {loop.name: loop.var for loop in host.own}
        leaves.update((own, var[other]) for own, other in paired.items())
        found = tuple(loop for loop in found if loop.name not in paired)
    local, guards = _local(stage, leaves, extents, kinds)
    axes: dict[Axis, Expr] = {a: local[a.name] for a in op.reduce_axes}
    for d, axis in enumerate(op.axes):
        axes[axis] = local[axis.name] if kept is None else kept[d].start + local[axis.name]
        if bounds.masked(name):
            guards.append(axes[axis] < as_expr(axis.extent))
    sizes = bounds.state.definition.dims
    made[name] = Instances(stage, op, outer, found, axes, tuple(guards), extents, kept, sizes)
    return made[name]


def _around_sums(stage: Stage, loops: tuple[EnclosingLoop, ...]) -> tuple[EnclosingLoop, ...]:
    """*loops* as lowering nests them: threads that share a sum enclose the reduction."""
    summed = {it.name for it in stage.reduce_iters}
    reduce = [loop for loop in loops if loop.name in summed]
    shared = next((loop for loop in reduce if loop.kind in BLOCK_THREADS), None)
    if shared is None:
        return loops
    first = loops.index(reduce[0])
    others = [loop for loop in loops if loop is not shared]
    return (*others[:first], shared, *others[first:])


def _local(
    stage: Stage,
    leaves: Mapping[str, Expr],
    extents: Mapping[str, Extent],
    kinds: Mapping[str, ForKind],
) -> tuple[dict[str, Expr], list[Expr]]:
    """Each axis and loop relative to the box that the stage computes, and the conditions of it."""
    starts: dict[str, Expr] = {}
    smaller = second_body(stage, extents, kinds)
    if smaller is not None:
        tile = leaves[smaller.relation.children[0]]
        starts[smaller.relation.parent] = smaller.start(tile)
    values = axis_exprs(stage, leaves, extents, starts)
    guards: list[Expr] = []
    for relation in stage.relations:
        if not isinstance(relation, SplitRelation) or is_ragged(relation, extents):
            continue
        if overshoot(relation, extents):
            guards.append(values[relation.parent] < as_expr(extents[relation.parent]))
    if smaller is not None:
        inside = values[smaller.relation.parent] - starts[smaller.relation.parent]
        guards.append((tile < smaller.first) | (inside < smaller.size))
    return values, guards


def _kept(
    bounds: Bounds, stage: Stage, host: Instances, outer: Sequence[EnclosingLoop]
) -> Iterator[Kept]:
    """The box of *stage* that is kept in each iteration of its attach loop in *host*.

    In shared memory, the box starts where the first thread's part starts.
    """
    assert stage.attach is not None
    level = host.stage.index(stage.attach.iter)
    later = {it.name for it in host.stage.iters[level + 1 :]}
    inner: dict[Var, Expr] = {loop.var: as_expr(0) for loop in host.own if loop.name in later}
    together = stage.shared_by
    inner |= {loop.var: as_expr(0) for loop in outer if loop.kind in together}
    values = {axis.name: substitute(value, inner) for axis, value in host.axes.items()}
    ranges = {loop.var: (0, loop.extent - 1) for loop in outer}
    for span, end in zip(bounds.region(stage.name), bounds.ends(stage.name), strict=True):
        assert isinstance(span.extent, int | Symbolic)
        start = start_of(span, values)
        low, high = extents_of(start, ranges)
        if not bounds.masked(stage.name) and most(high + span.extent - end) > 0:
            start = Binary(BinaryOp.MIN, start, as_expr(end - span.extent))
        yield Kept(
            start if least(low) >= 0 else Binary(BinaryOp.MAX, start, as_expr(0)), span.extent
        )
