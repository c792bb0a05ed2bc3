"""A stage's indices in terms of its loops, and the guards that keep them in bounds."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

from ansorpy.errors import ScheduleError
from ansorpy.ir.analysis.affine import divisor_of, linear
from ansorpy.ir.analysis.interval import can_prove
from ansorpy.ir.builders import all_of
from ansorpy.ir.expr import (
    Axis,
    Compare,
    CompareOp,
    Expr,
    Load,
    Select,
    SizeVar,
    Var,
    as_expr,
    is_zero,
    walk,
)
from ansorpy.ir.extents import most
from ansorpy.ir.loops import ForKind, If, Seq, Stmt, Store
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.sizes import fixed
from ansorpy.ir.tensor import ComputeOp
from ansorpy.schedule.bounds.axes import axis_exprs, guard, known_extents, number
from ansorpy.schedule.bounds.overrun import is_read_before_start
from ansorpy.schedule.guards import guarded_splits, is_zero_beyond, peeled
from ansorpy.schedule.lowering.context import Index, LoweringContext, minus
from ansorpy.schedule.lowering.gpu.boxes import copied_box
from ansorpy.schedule.lowering.loop_kinds import loop_kinds
from ansorpy.schedule.stage import SplitRelation, Stage

__all__ = ["StageIndices"]


class StageIndices:
    """The loops of one stage that have variables so far, and its axes in terms of them."""

    def __init__(self, outer: LoweringContext, name: str):
        self.outer = outer
        self.state = outer.state
        self.name = name
        self.stage: Stage = outer.state.stage(name)
        self.op: ComputeOp = outer.bounds.op(name)
        self.extents = known_extents(outer.bounds.extents(name))
        self.hosts = outer.state.host_iters(name)
        self.kinds = {it: kind.kind for it, kind in loop_kinds(outer.bounds, name).items()}
        self.buffer = outer.buffers[name]
        self.leaves: dict[str, Expr] = {}
        self.starts: dict[str, Expr] = {}
        self.peeled = self._peeled()

    def _axis_values(self, level: int | None = None) -> dict[str, Expr]:
        """Every axis in terms of the loops; with *level*, the start of the box inside that loop."""
        leaves = dict(self.leaves)
        if level is not None:
            leaves.update({it.name: as_expr(0) for it in self.stage.iters[level + 1 :]})
        values = axis_exprs(self.stage, leaves, self.extents, self.starts)
        origins = self.outer.origin(self.name)
        return {
            a.name: linear(values[a.name] + origin).to_expr()
            for a, origin in zip(self.op.axes, origins, strict=True)
        } | {a.name: linear(values[a.name]).to_expr() for a in self.op.reduce_axes}

    def _number(self, loop: str) -> int:
        """The extent of *loop*, which the schedule needs as a number."""
        extent = self.extents[loop]
        if isinstance(extent, int):
            return extent
        raise ScheduleError(
            f'the extent of "{loop}" must be a number here, but it is {extent}',
            stage=self.name, program=self.state.text(self.name, {loop}),
            hint="split the loop and use an inner part",
        )  # fmt: skip

    def _write_index(self) -> Index:
        values, origins = self._axis_values(), self.outer.origin(self.name)
        inside = (minus(values[a.name], o) for a, o in zip(self.op.axes, origins, strict=True))
        return tuple(self.outer.simple(index) for index in inside)

    def _peeled(self) -> SplitRelation | None:
        """The split into lanes whose last part is peeled instead of guarded."""
        splits = (r for r in self.stage.relations if isinstance(r, SplitRelation))
        return next((r for r in splits if peeled(r, self.stage, self.extents, self.hosts)), None)

    def _unless_beyond(self, level: int, stmt: Stmt) -> Stmt:
        """*stmt* inside loop *level*, skipped where all of it would be beyond the stage's axes.

        Without this, stages computed there would compute boxes that nothing stores.  Threads of a
        GPU block must all reach its barriers.
        """
        if any(kind.is_bound for kind in self.kinds.values()):
            return stmt
        inner = {it.name: as_expr(0) for it in self.stage.iters[level + 1 :]}
        kept = [g for g in self._guards({**self.leaves, **inner}) if self._may_fail(g)]
        return If(all_of(*kept), stmt, None) if kept else stmt

    def _guards(self, leaves: Mapping[str, Expr]) -> list[Compare]:
        """The conditions of the splits that need guards, given the values of the loops."""
        values = axis_exprs(self.stage, leaves, self.extents, self.starts)
        needed = guarded_splits(self.outer.bounds, self.stage, self.extents, self.hosts)
        return [guard(r, values, self.extents) for r, beyond in needed.items() if beyond]

    def _may_fail(self, guard: Compare) -> bool:
        """Whether *guard*, ``a < b``, depends on loops and is not always true."""
        reach = self.outer.range_of(guard.a - guard.b)[1]
        return any(_is_loop(e) for e in walk(guard)) and most(reach) >= 0

    def _guarded(self, stmt: Stmt) -> Stmt:
        kept: list[Expr] = []
        for condition in map(self._of_first_lane, self._guards(self.leaves)):
            if any(_is_loop(e) for e in walk(condition)):
                kept.append(condition)
            elif can_prove(condition, {}) is False:
                return Seq(())  # a rest of one lane, beyond a loop that was fused with others
        return If(all_of(*kept), stmt, None) if kept else stmt

    def _box(self) -> Stmt:
        """The stage's tile, which copies a tensor, as one copy of a box."""
        load = self.op.body
        assert isinstance(load, Load) and load.source.name not in self.stage.packed, self.name
        loops = [
            (self.outer.fresh(axis.name), fixed(extent))
            for axis, extent in zip(self.op.axes, self.buffer.shape, strict=True)
        ]
        with ExitStack() as inside:
            for axis, (var, extent) in zip(self.op.axes, loops, strict=True):
                key = (self.name, axis.name)
                inside.enter_context(self.outer.loop(key, var, extent, ForKind.BULK))
            values: dict[Var, Expr] = {}
            origins = self.outer.origin(self.name)
            for axis, origin, (var, _) in zip(self.op.axes, origins, loops, strict=True):
                values[axis] = linear(origin + var).to_expr()
            at = tuple(substitute(index, values) for index in load.indices)
            value = self.outer.load(self.name, Load(load.source, at))
            store = Store(self.buffer, tuple(var for var, _ in loops), value, None)
            masked = self._masked(store, {axis.name: value for axis, value in values.items()})
        assert isinstance(masked, Store)
        return copied_box(loops, masked, number(self.stage.bulk), self.outer.fresh)

    # Boxes that reach beyond their tensor

    def _masked(self, store: Store, values: Mapping[str, Expr] | None = None) -> Stmt:
        """*store* without reads beyond a tensor: it stores 0 instead, or adds nothing.

        *values* are the axes, by default in terms of this stage's loops.
        """
        masks = self._masks(self._axis_values() if values is None else values)
        if not masks or self._reads_boxes_only() and not self._is_operand():
            return store
        inside = all_of(*masks)
        if store.reduce is not None:
            return If(inside, store, None)
        zero, value = as_expr(0, store.value.dtype), store.value
        if isinstance(value, Select) and is_zero(value.other):
            # Merge both conditions: a statement that moves elements or stores zeros is a copy.
            inside, value = all_of(inside, value.cond), value.then
        return Store(store.buffer, store.indices, Select(inside, value, zero), None)

    def _masks(self, values: Mapping[str, Expr]) -> list[Expr]:
        """Conditions for this stage's box to be inside its tensor, without those always met."""
        if not self.outer.bounds.masked(self.name):
            return []
        found: list[Expr] = []
        for axis in self.op.axes:
            value = self.outer.simple(values[axis.name])
            if self._is_operand() and self._may_be_anything(axis):
                continue
            if most(self.outer.range_of(value)[1] - axis.extent) >= 0:
                mask = Compare(CompareOp.LT, value, as_expr(axis.extent))
                found.append(self._of_first_lane(mask))
        return found

    def _of_first_lane(self, guard: Expr) -> Expr:
        """*guard* for the first lane of a vector if all lanes agree in it, else unchanged."""
        if not isinstance(guard, Compare):
            return guard
        form = linear(guard.a)
        for name, kind in self.kinds.items():
            lane, lanes = self.leaves.get(name), self.extents[name]
            if kind is not ForKind.VECTORIZED or lane is None or form.terms.get(lane) != 1:
                continue
            first = linear(guard.a - lane).to_expr()
            if isinstance(lanes, int) and not any(divisor_of(e) % lanes for e in (first, guard.b)):
                return Compare(guard.op, first, guard.b)
        return guard

    def _is_operand(self) -> bool:
        """Whether the stage is an operand of a warp instruction; its padding must add nothing."""
        return self.stage.fragment is not None and not self.op.reduce_axes

    def _may_be_anything(self, axis: Axis) -> bool:
        """Whether the values of an instruction's operand beyond *axis* change no result.

        Either all values read there are 0, or they go into sums that nothing stores.
        """
        if not self._reads_boxes_only():
            return False
        loads = [e for e in walk(self.op.body) if isinstance(e, Load)]
        inlined = self.outer.bounds.inlined_dag
        summed = {
            a.name for reader in inlined.readers.get(self.name, ())
            for a in inlined.ops[reader].reduce_axes
        }  # fmt: skip
        zeros = bool(loads) and all(is_zero_beyond(self.outer.bounds, e, axis) for e in loads)
        return zeros or axis.name not in summed

    def _reads_boxes_only(self) -> bool:
        """Whether all reads are in bounds, however far the box of this stage reaches."""
        bounds = self.outer.bounds
        tensors = {read.tensor.name for read in bounds.inlined_dag.reads[self.name]}
        return all(bounds.masked(t) and not is_read_before_start(bounds, t) for t in tensors)


def _is_loop(e: Expr) -> bool:
    return isinstance(e, Var) and not isinstance(e, SizeVar)
