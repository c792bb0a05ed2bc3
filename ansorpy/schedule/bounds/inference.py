"""Bound inference: the extent of every loop, and the box of a tensor that a loop level needs.

All extents are :class:`~ansorpy.schedule.tables.size.Size`, so one pass serves a program or a whole
population.  The start of a box is structural: an affine form, with non-negative coefficients, of
the axes of the stage that owns the loop, or of their quotients by numbers (``h // 4``: the tile
that contains a pixel).  If there is no such form, the box is the whole dimension.

Invariant: the box stored for a tensor at its attach loop holds every element of the tensor that
readers load in one iteration of that loop (in shared or warp memory: in those of all threads that
share it).  Three regions keep it:

- :meth:`Bounds.needs`: the box that readers need, neither clipped nor moved; it may reach outside
  the tensor at both ends.
- :meth:`Bounds.region`: the box that is stored.  Its extent is clipped to :meth:`Bounds.ends`, and
  lowering moves its start so that the box lies inside.  A :meth:`Bounds.masked` box is not
  clipped; it is moved only if it starts before 0, and elements beyond the end are masked.
- :meth:`Bounds.box`: the box that is computed, from which the needs of producers follow.  It covers
  the box both where it is needed and where it is moved to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ansorpy.errors import ScheduleError
from ansorpy.ir.extents import Extent, extreme
from ansorpy.ir.loops import ALONE, WARP_LANES, ForKinds, Scope
from ansorpy.ir.symbols import SizeOp
from ansorpy.ir.tensor import ComputeOp
from ansorpy.schedule.bounds.axes import has_fixed_part, leaves_rest, runs_in_full
from ansorpy.schedule.bounds.overrun import read_beyond_end
from ansorpy.schedule.bounds.spans import (
    ZERO,
    Origin,
    Part,
    Span,
    clipped,
    end_of,
    hull,
    moved_inside,
    touched,
)
from ansorpy.schedule.decisions import Product, value_of
from ansorpy.schedule.lowering.inlining import InlinedDAG
from ansorpy.schedule.stage import FuseRelation, SplitRelation, Stage
from ansorpy.schedule.tables.size import (
    Size,
    above,
    ceil_div,
    product,
    size_gcd,
    size_min,
    split_extents,
)

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["Bounds"]


class Bounds:
    """Extents and boxes of one state under *values* (column name -> Size).

    *second* maps (stage, loop) of each split whose second body is being built to the extents
    inside its smaller tiles.

    Raises:
        ScheduleError: A stage is computed inside a loop, but one of its readers is outside it.
    """

    def __init__(
        self,
        state: State,
        values: Mapping[str, Size],
        second: Mapping[tuple[str, str], Sequence[int]] | None = None,
    ):
        self.state = state
        self.values = values
        self.second = second or {}
        self.inlined_dag: InlinedDAG = state.inlined_dag
        self._extents: dict[str, dict[str, Size]] = {}
        self._needs: dict[tuple[str, str, int, ForKinds], tuple[Span, ...]] = {}
        self._reaches: dict[str, tuple[Extent, ...]] = {}
        self._masked: dict[str, bool] = {}

    def number(self, factors: Product) -> Size:
        """The value of a product of numbers and columns."""
        return value_of(factors, self.values)

    def op(self, name: str) -> ComputeOp:
        return self.inlined_dag.ops[name]

    # Loops

    def roots(self, name: str) -> dict[str, Size]:
        """Extent of each axis of a stage: the whole axis, or its part of :meth:`region`."""
        stage = self.state.stage(name)
        op = stage.compute
        extents: dict[str, Size] = {a.name: a.extent for a in (*op.axes, *op.reduce_axes)}
        if stage.attach is not None:
            region = self.region(name)
            extents.update((a.name, s.extent) for a, s in zip(op.axes, region, strict=True))
        return extents

    def extents(self, name: str) -> dict[str, Size]:
        """Extent of every axis and loop of a stage, by name."""
        if name not in self._extents:
            stage, extents = self.state.stage(name), self.roots(name)
            for relation in stage.relations:
                if isinstance(relation, SplitRelation):
                    factors = [self.number(p) for p in relation.factors]
                    whole = relation.tail == "whole"
                    parts = split_extents(extents[relation.parent], factors, whole=whole)
                    extents.update(zip(relation.children, parts, strict=True))
                    smaller = self.second.get((name, relation.parent), ())
                    extents.update(zip(relation.children[1:], smaller, strict=bool(smaller)))
                else:
                    extents[relation.child] = product(extents[p] for p in relation.parents)
            self._extents[name] = extents
        return self._extents[name]

    def inside(self, name: str, level: int, among: ForKinds = ALONE) -> dict[str, Span]:
        """The box over which the stage's loops inside loop number *level* run, for each axis.

        With *among*, this is the union of these boxes over all iterations of the enclosing loops of
        these kinds, which starts where the box of the first thread does.  Boxes are clipped to the
        axis, unless a split covers more; they are not moved.
        """
        stage = self.state.stage(name)
        moving = {it.name for it in stage.iters[level + 1 :]}
        moving |= {it.name for it in stage.iters if it.annotation in among}
        op, steps = stage.compute, self._steps(name, level)
        extents, whole = self._reached(name, moving)
        for axis, far in self._sway(name, among).items() if among else ():
            whole |= {axis} if far is None else set()
            extents[axis] = extents[axis] + (0 if far is None else far)
        return {
            a.name: Span(
                None if a.name in whole else Origin(((Part(a.name), 1),), 0),
                extents[a.name],
                1 if stage.attach is not None or among else steps[a.name],
            )
            for a in (*op.axes, *op.reduce_axes)
        }

    def _sway(self, name: str, among: ForKinds) -> dict[str, Size | None]:
        """How far the :meth:`region` of *name* moves over the enclosing loops of kinds *among*.

        The distances are by axis; None if unknown because the start is not affine.  Lanes that
        share a box in warp registers do not move it.
        """
        stage = self.state.stage(name)
        if stage.attach is None:
            return {}
        among = among - WARP_LANES if stage.scope is Scope.WARP else among
        owner = self.state.stage(stage.attach.stage)
        level = owner.index(stage.attach.iter)
        threads = {it.name for it in owner.iters[: level + 1] if it.annotation in among}
        reached, whole = self._reached(owner.name, threads)
        outer = self._sway(owner.name, among)
        sway: dict[str, Size | None] = {}
        for axis, span in zip(stage.compute.axes, self.region(name), strict=True):
            far: Size | None = 0
            for (moved, divisor), c in span.origin.terms if span.origin else ():
                own = outer.get(moved, 0)
                if far is None or own is None or moved in whole:
                    far = None
                else:
                    far = far + ceil_div(reached[moved] - 1 + own, divisor) * c
            sway[axis.name] = far
        return sway

    def _reached(self, name: str, moving: set[str]) -> tuple[dict[str, Size], set[str]]:
        """How much of each axis the loops *moving* cover, and the axes whose start is unknown.

        Extents are clipped to the axis, unless a split covers more; boxes are not moved.
        """
        stage, extents = self.state.stage(name), self.extents(name)
        spans: dict[str, Size] = {
            it.name: extents[it.name] if it.name in moving else 1 for it in stage.iters
        }
        fixed = {it.name for it in stage.iters if it.name not in moving}
        whole: set[str] = set()
        launched = any(it.annotation.is_bound for it in stage.iters) or self._is_in_launch(stage)
        for relation in reversed(stage.relations):
            if isinstance(relation, SplitRelation):
                covers = runs_in_full(relation, extents, launched=launched)
                spans[relation.parent] = self._joined(relation, spans, extents, covers=covers)
                if fixed.issuperset(relation.children):
                    fixed.add(relation.parent)
                if not whole.isdisjoint(relation.children):
                    whole.add(relation.parent)
            else:
                self._unfused(stage, relation, spans, extents, fixed, whole)
        return spans, whole

    def _steps(self, name: str, level: int) -> dict[str, Size]:
        """A divisor of the start of each axis's box in all iterations of the loops to *level*."""
        stage, extents = self.state.stage(name), self.extents(name)
        steps: dict[str, Size] = {it.name: int(n <= level) for n, it in enumerate(stage.iters)}
        for relation in reversed(stage.relations):
            if isinstance(relation, FuseRelation):
                steps.update((p, size_min(steps[relation.child], 1)) for p in relation.parents)
                continue
            step: Size = 0
            for child, stride in self.strides(relation).items():
                step = size_gcd(step, steps[child] * stride)
            step = size_gcd(step, self._tail_step(relation, step, extents[relation.parent]))
            steps[relation.parent] = step
        return steps

    def strides(self, split: SplitRelation) -> dict[str, Size]:
        """How far the split loop moves with each iteration of its parts, innermost first."""
        stride: Size = 1
        strides: dict[str, Size] = {split.children[-1]: stride}
        for child, factor in zip(split.children[-2::-1], reversed(split.factors), strict=True):
            stride = stride * self.number(factor)
            strides[child] = stride
        return strides

    def _tail_step(self, relation: SplitRelation, step: Size, extent: Size) -> Size:
        """A divisor of the starts of tiles that are not multiples of their size; 0 without any."""
        if relation.tail == "shift":
            return size_min(step, 1) * extent
        if relation.tail == "even":
            tile = product(self.number(p) for p in relation.factors)
            return size_min(step, 1) * above(extent - extent // tile * tile, 0)
        return 0

    def _joined(
        self, relation: SplitRelation, spans: Mapping[str, Size], extents: Mapping[str, Size],
        *, covers: bool,
    ) -> Size:  # fmt: skip
        reach: Size = 1
        for child, stride in self.strides(relation).items():
            reach = reach + (spans[child] - 1) * stride
        return reach if covers else clipped(reach, extents[relation.parent])

    def _unfused(
        self,
        stage: Stage,
        relation: FuseRelation,
        spans: dict[str, Size],
        extents: Mapping[str, Size],
        fixed: set[str],
        whole: set[str],
    ) -> None:
        """Boxes of fused loops; exact if the fused loop lies wholly outside or inside the level."""
        child = relation.child
        for parent in relation.parents:
            if child in fixed:
                spans[parent] = 1
                fixed.add(parent)
            else:
                spans[parent] = extents[parent]
                if child in whole or has_fixed_part(stage, child, fixed):
                    whole.add(parent)

    # Boxes

    def within(self, name: str, owner: str, level: int) -> bool:
        """Whether *name* runs inside loop number *level* of *owner* (or is *owner*)."""
        if name == owner:
            return True
        attach = self.state.stage(name).attach
        if self._continued(name, owner, level):
            return True
        if attach is None:
            return False
        if attach.stage == owner:
            return self.state.stage(owner).index(attach.iter) >= level
        return self.within(attach.stage, owner, level)

    def _continued(self, name: str, owner: str, level: int) -> bool:
        """Whether *name* is carried by loop number *level* of *owner*, or one inside that loop."""
        attach, carried = self.state.stage(name).attach, self.state.stage(name).carried
        if carried is None:
            return attach is not None and self._continued(attach.stage, owner, level)
        inside = self.state.stage(carried.host).index(carried.iter) >= level
        return carried.host == owner and inside

    def box(self, name: str, owner: str, level: int, among: ForKinds = ALONE) -> dict[str, Span]:
        """Box of each axis of *name* computed per iteration of *owner*'s loops down to *level*.

        For *owner* itself this is :meth:`inside`.  For other stages it covers the box both where it
        is needed and where it is moved to, and is not clipped.  *among* is as in :meth:`inside`.
        """
        if name == owner:
            return self.inside(name, level, among)
        op, masked, overshot = self.op(name), self.masked(name), self._overshot(owner)
        needs = self.needs(name, owner, level, among)
        spans: dict[str, Span] = {}
        for axis, span, reach in zip(op.axes, needs, self._reach(name), strict=True):
            moves = {part.axis for part, _ in span.origin.terms} if span.origin else set()
            late = span.late or above(reach - axis.extent, 0) == 1 or bool(moves & overshot)
            spans[axis.name] = moved_inside(span, late and not masked)
        return spans | self._reduced(name)

    def _reduced(self, name: str) -> dict[str, Span]:
        """The reduce axes of *name*, including what whole tiles cover beyond them."""
        stage, axes = self.state.stage(name), self.op(name).reduce_axes
        summed = {axis.name for axis in axes}
        whole = {r.parent for r in stage.relations
                 if isinstance(r, SplitRelation) and r.tail == "whole"}  # fmt: skip
        if summed & whole and self.masked(name):
            inside = self.inside(name, -1)
            return {axis.name: replace(inside[axis.name], origin=ZERO) for axis in axes}
        return {axis.name: Span(ZERO, axis.extent, 0) for axis in axes}

    def region(self, name: str) -> tuple[Span, ...]:
        """The box of attached stage *name* that is stored for one iteration of its attach loop.

        Its extent is clipped to :meth:`ends` unless the box is :meth:`masked`; lowering moves a
        start that lies outside.  In shared memory, it covers what all threads of the block read; in
        warp registers, what all lanes read.
        """
        attach = self.state.stage(name).attach
        assert attach is not None, name
        level = self.state.stage(attach.stage).index(attach.iter)
        needs = self.needs(name, attach.stage, level)
        if self.masked(name):
            return needs
        return tuple(
            replace(span, extent=clipped(span.extent, end))
            for span, end in zip(needs, self.ends(name), strict=True)
        )

    def masked(self, name: str) -> bool:
        """Whether the box is in a GPU kernel, so that it may end outside its tensor without moving.

        Threads hold such boxes in registers, whose indices must be the same in every thread.
        """
        if name not in self._masked:
            self._masked[name] = self._is_in_launch(self.state.stage(name))
        return self._masked[name]

    def _is_in_launch(self, stage: Stage) -> bool:
        if stage.attach is None:
            return False
        owner = self.state.stage(stage.attach.stage)
        outer = owner.iters[: owner.index(stage.attach.iter) + 1]
        return any(it.annotation.is_bound for it in outer) or self._is_in_launch(owner)

    def _overshot(self, name: str) -> set[str]:
        """The axes of *name* beyond which its loops are known to run; guards skip the rest."""
        stage, extents = self.state.stage(name), self.extents(name)
        found: set[str] = set()
        for relation in reversed(stage.relations):
            if isinstance(relation, FuseRelation):
                found |= set(relation.parents) if relation.child in found else set()
                continue
            tile, extent = self.number(sum(relation.factors, ())), extents[relation.parent]
            fits = relation.tail in ("shift", "even", "peel")
            rest = leaves_rest(extent, tile) and (not fits or above(tile - extent, 0) == 1)
            found |= {relation.parent} if rest or found & set(relation.children) else set()
        return found

    def ends(self, name: str) -> tuple[Extent, ...]:
        """The end of all reads of tensor *name*, by dimension; clipped to the shape.

        Boxes are moved so that they end there at the latest.
        """
        shape = self.state.stage(name).op.shape
        return tuple(
            extreme(SizeOp.MIN, end, n) for end, n in zip(self._reach(name), shape, strict=True)
        )

    def _reach(self, name: str) -> tuple[Extent, ...]:
        """The end of all reads of tensor *name*, not clipped: includes reads that a guard skips."""
        if name not in self._reaches:
            reach: list[Extent] = [0] * len(self.state.stage(name).op.shape)
            for reader in self.inlined_dag.readers.get(name, ()):
                for ends in self._ends_read(reader, name):
                    pairs = zip(reach, ends, strict=True)
                    reach = [extreme(SizeOp.MAX, a, b) for a, b in pairs]
            self._reaches[name] = tuple(reach)
        return self._reaches[name]

    def _ends_read(self, reader: str, name: str) -> list[list[Extent]]:
        """For each load of tensor *name* by *reader*, the ends of what it reads; not clipped.

        A box of the reader that is moved computes nothing beyond its :meth:`ends`.
        """
        op, clipped = self.op(reader), self.state.stage(reader).attach and not self.masked(reader)
        ends = self.ends(reader) if clipped else [axis.extent for axis in op.axes]
        whole = {a.name: Span(ZERO, end, 0) for a, end in zip(op.axes, ends, strict=True)}
        whole.update((a.name, Span(ZERO, a.extent, 0)) for a in op.reduce_axes)
        return [
            [end_of(touched(index, op, whole)) for index in indices]
            for indices in self.inlined_dag.index_tuples(reader, name)
        ]

    def needs(self, name: str, owner: str, level: int, among: ForKinds = ALONE) -> tuple[Span, ...]:
        """The box of tensor *name* that readers need; neither clipped nor moved.

        This is the union over the threads that share the tensor's memory and those of kinds
        *among*.  Boxes of producers are derived from it: if they were derived from a box that is
        clipped but not yet moved, they would miss elements that the moved box reads.
        """
        key = (name, owner, level, among | self.state.stage(name).shared_by)
        if key not in self._needs:
            self._needs[key] = tuple(self._reads_of(*key))
        return self._needs[key]

    def _reads_of(self, name: str, owner: str, level: int, among: ForKinds) -> Iterable[Span]:
        for dim, found in enumerate(self._touched(name, owner, level, among)):
            span = hull([span for span, _ in found], [lag for _, lag in found])
            yield self._anywhere(name, dim, among) if span is None else span

    def _touched(
        self, name: str, owner: str, level: int, among: ForKinds
    ) -> list[list[tuple[Span, Extent]]]:
        """By dimension of tensor *name*, the span of each load and its lag (:func:`hull`)."""
        found: list[list[tuple[Span, Extent]]] = [[] for _ in self.state.stage(name).op.shape]
        masked = self.masked(name)
        for reader in self.inlined_dag.readers.get(name, ()):
            self._require_within(reader, name, owner, level)
            if self._continued(reader, owner, level):
                continue  # in each iteration, it reads what other stages there need as well
            op, box = self.op(reader), self.box(reader, owner, level, among)
            loads = self.inlined_dag.index_tuples(reader, name)
            for indices, ends in zip(loads, self._ends_read(reader, name), strict=True):
                for d, index in enumerate(indices):
                    lag = 0 if masked else self._reach(name)[d] - ends[d]
                    found[d].append((touched(index, op, box), lag))
        return found

    def _anywhere(self, name: str, dim: int, among: ForKinds) -> Span:
        """A whole dimension of tensor *name*, for loads whose starts are unknown or too different.

        A :meth:`masked` box also includes what threads beyond the ends of their axes read after it.
        """
        extent: Size = self.state.stage(name).op.shape[dim]
        if self.masked(name):
            extent = extent + read_beyond_end(self, name, dim, among)
        return Span(ZERO, extent, 0)

    def _require_within(self, reader: str, name: str, owner: str, level: int) -> None:
        if not self.within(reader, owner, level):
            raise ScheduleError(
                f'"{name}" is computed inside a loop of "{owner}", '
                f'but "{reader}", which reads it, is not',
                stage=name, program=self.state.text(),
                hint=f'compute "{name}" at a loop around all its readers, or at the root',
            )  # fmt: skip
