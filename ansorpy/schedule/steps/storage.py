"""Steps that add stages or change where values are stored: caches, rfactor, packed constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import TYPE_CHECKING, Literal

from ansorpy.errors import ScheduleError
from ansorpy.ir.expr import Axis, AxisKind, Expr, Load, Reduce, Select, as_expr, walk
from ansorpy.ir.loops import ForKind, Scope
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.tensor import ComputeOp, Tensor
from ansorpy.schedule.bounds.axes import axis_exprs, guard, iter_extents, overshoot
from ansorpy.schedule.lowering.dag_edit import fresh_axes, map_loads, replace_ops, with_body
from ansorpy.schedule.stage import FuseRelation, SplitRelation, Stage, initial_stage
from ansorpy.schedule.steps.base import Step, compute_stage, named, some

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = [
    "CacheReadStep",
    "CacheWriteStep",
    "PackStep",
    "RfactorStep",
    "free_names",
    "insert_stages",
    "with_replaced_ops",
]


@dataclass(frozen=True)
class CacheWriteStep(Step):
    """Compute *stage* in a new stage ``<name>.<scope>`` before it, then copy the result.

    C[i, j] = f(i, j)     -->     C.local[i, j] = f(i, j);  C[i, j] = C.local[i, j]
    """

    returns_names = True

    scope: str
    kind: Literal["cache_write"] = "cache_write"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        if stage.is_arranged or state.attached(stage):
            raise self.error(
                state, "only a stage whose loops have not been changed can have a write cache",
                hint="call cache_write first, then schedule the two stages it leaves",
            )  # fmt: skip
        op = stage.compute
        name = free_names(state)(f"{self.stage}.{self.scope}")
        cached = ComputeOp(name, op.shape, op.axes, op.reduce_axes, op.body, op.attrs)
        axes = fresh_axes(op.axes)
        copy = ComputeOp(op.name, op.shape, axes, (), Load(cached, axes))
        scope = named("memory scope", self.scope, self, Scope)
        state = insert_stages(state, op, copy, [cached])
        return state.replace_stage(replace(state.stage(name), scope=scope, is_write_cache=True))


@dataclass(frozen=True)
class CacheReadStep(Step):
    """Copy *stage* into a new stage ``<name>.<scope>`` that *readers* read instead.

    *order* permutes the copy: its dimension ``d`` is dimension ``order[d]`` of the source; an empty
    *order* keeps that of the source.  *loads* has the numbers of the loads of a single reader, in
    order of appearance in its definition, that read the copy; all of them do if it is empty.
    """

    returns_names = True

    scope: str
    readers: tuple[str, ...]
    order: tuple[int, ...] = ()
    loads: tuple[int, ...] = ()
    kind: Literal["cache_read"] = "cache_read"

    def apply(self, state: State) -> State:
        stage = state.stage(self.stage)
        op = stage.op
        order = self.order or tuple(range(op.ndim))
        if sorted(order) != list(range(op.ndim)):
            raise ScheduleError(
                f"order={self.order} must contain each of the {op.ndim} dimensions once",
                step=self.call(), stage=stage.name, program=state.text(),
            )  # fmt: skip
        some("reader", self.readers, self, state)
        for reader in self.readers:
            if op not in state.current_dag.reads(state.stage(reader).op):
                raise ScheduleError(
                    f'"{reader}" does not read "{self.stage}"',
                    step=self.call(), stage=stage.name, program=state.text(),
                )  # fmt: skip
        chosen = self._chosen(state, op)
        name = free_names(state)(f"{self.stage}.{self.scope}")
        axes = tuple(Axis(f"i{d}", op.shape[d], AxisKind.SPACE) for d in order)
        source = tuple(axes[order.index(d)] for d in range(op.ndim))
        shape = tuple(axis.extent for axis in axes)
        copy = ComputeOp(name, shape, axes, (), Load(op, source))

        def redirect(load: Load) -> Expr:
            if load.source is not op or (chosen and load not in chosen):
                return load
            return Load(copy, tuple(load.indices[d] for d in order))

        new: dict[Tensor, ComputeOp] = {}
        for reader in self.readers:
            old_reader = state.stage(reader).compute
            new[old_reader] = with_body(old_reader, map_loads(old_reader.body, redirect))
        scope = named("memory scope", self.scope, self, Scope)
        state = with_replaced_ops(state, new, {op: (op, copy)})
        return state.replace_stage(replace(state.stage(name), scope=scope))

    def _chosen(self, state: State, op: Tensor) -> frozenset[Load]:
        """The loads of *op* that read the copy; an empty set stands for all."""
        if not self.loads:
            return frozenset()
        body = state.stage(self.readers[0]).compute.body
        found = [e for e in walk(body) if isinstance(e, Load) and e.source is op]
        if len(self.readers) > 1 or not set(self.loads) <= set(range(len(found))):
            raise ScheduleError(
                f'loads={self.loads} are not loads of "{self.stage}" by one reader',
                step=self.call(), stage=self.stage, program=state.text(),
                hint=f'"{self.readers[0]}" has {len(found)}, counted from 0',
            )  # fmt: skip
        return frozenset(found[number] for number in self.loads)


@dataclass(frozen=True)
class RfactorStep(Step):
    """Turn reduce loop *iter* into a space axis of a new stage ``<name>.rf`` and reduce that later.

        C[i] = sum_k f(i, k)   -->   C.rf[v, i] = sum_k' f(i, (v, k'));  C[i] = sum_v C.rf[v, i]

    The new axis is axis number *factor_axis* of the new stage.  This changes the order of
    additions.
    """

    returns_names = True

    iter: str
    factor_axis: int
    kind: Literal["rfactor"] = "rfactor"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        it = stage.iter(self.iter)
        op, body = stage.compute, stage.compute.body
        reduce = stage.reduce_iters
        is_open = any(i.extent is None for i in reduce)
        if not isinstance(body, Reduce) or it not in reduce or is_open:
            reason = (
                "the extent of a reduce loop is open" if it in reduce else "it is not a reduce loop"
            )
            raise self.error(
                state, f'loop "{it.name}" cannot be factored out: {reason}', loops=[it.name]
            )
        if not 0 <= self.factor_axis <= len(op.axes):
            raise self.error(
                state,
                f"the new stage has {len(op.axes) + 1} space axes, none of number "
                f"{self.factor_axis}",
                loops=[it.name],
            )
        self._refuse_arranged(state, stage)
        axes = fresh_axes(op.axes)
        factored = Axis(it.name, it.extent, AxisKind.SPACE)
        rest = tuple(Axis(i.name, i.extent, AxisKind.REDUCE) for i in reduce if i is not it)
        leaves = {a.name: a for a in (*axes, factored, *rest)}
        reduction = _reduce_relations(stage)
        extents = iter_extents(reduction)
        values = axis_exprs(reduction, leaves, extents)
        source = substitute(body.source, {a: values[a.name] for a in (*op.axes, *op.reduce_axes)})
        for split in reduction.relations:
            if isinstance(split, SplitRelation) and overshoot(split, extents):
                identity = as_expr(body.kind.identity(source.dtype), source.dtype)
                source = Select(guard(split, values, extents), source, identity)
        new_axes = (*axes[: self.factor_axis], factored, *axes[self.factor_axis :])
        name = free_names(state)(f"{self.stage}.rf")
        partial = ComputeOp(
            name, tuple(a.extent for a in new_axes), new_axes, rest,
            Reduce(body.kind, source, rest) if rest else source, op.attrs,
        )  # fmt: skip
        final_axes = fresh_axes(op.axes)
        v = Axis(f"{it.name}.v", it.extent, AxisKind.REDUCE)
        indices = (*final_axes[: self.factor_axis], v, *final_axes[self.factor_axis :])
        final = ComputeOp(
            op.name, op.shape, final_axes, (v,), Reduce(body.kind, Load(partial, indices), (v,))
        )
        return insert_stages(state, op, final, [partial])

    def _refuse_arranged(self, state: State, stage: Stage) -> None:
        """Refuse a stage that is scheduled further: both stages get initial loops again."""
        reduction, given = _reduce_relations(stage).relations, initial_stage(stage.op)
        space = len(stage.compute.axes)
        reduced = replace(stage, iters=given.iters, relations=())
        serial = all(it.annotation is ForKind.SERIAL for it in stage.iters)
        plain = serial and stage.iters[:space] == given.iters[:space]
        alone = stage.relations == reduction and not state.attached(stage)
        if reduced.is_arranged or not (plain and alone):
            raise self.error(
                state, "before a loop is factored out, only reduce loops may be split or fused",
                hint="call rfactor first, then schedule the two stages it leaves",
            )  # fmt: skip


@dataclass(frozen=True)
class PackStep(Step):
    """Pack *tensor*, a constant, at bind time in the order in which *stage*'s loops read it."""

    tensor: str
    kind: Literal["pack"] = "pack"

    def apply(self, state: State) -> State:
        stage, packed = compute_stage(state, self.stage, self), state.stage(self.tensor)
        read = {read.tensor.name for read in state.inlined_dag.reads.get(stage.name, ())}
        if packed.name not in state.constant_stages or packed.name not in read:
            raise self.error(
                state, f'"{self.tensor}" is not a constant that "{self.stage}" reads',
                hint="declare the placeholder with constant=True; it is then bound once",
            )  # fmt: skip
        if stage.name in state.constant_stages:
            raise self.error(
                state,
                f'"{self.stage}" runs at bind time itself, where packing costs more than it saves',
            )
        return state.replace_stage(replace(stage, packed=(*stage.packed, self.tensor)))


def insert_stages(
    state: State, old: ComputeOp, new: ComputeOp, extra: Sequence[ComputeOp]
) -> State:
    """Replace *old* by *new* of its name, which reads the operators *extra*, staged before it.

    All have the loops of their axes; the new one stays where the old one was.
    """
    stage = state.stage(old.name)
    state = with_replaced_ops(state, {old: new}, {old: (*extra, old)})
    kept = replace(
        initial_stage(state.stage(old.name).op),
        attach=stage.attach, scope=stage.scope, is_write_cache=stage.is_write_cache,
    )  # fmt: skip
    return state.replace_stage(kept)


def with_replaced_ops(
    state: State,
    new: Mapping[Tensor, ComputeOp],
    places: Mapping[Tensor, Sequence[Tensor]] | None = None,
) -> State:
    """*state* with operators replaced by *new*.

    *places* has, for some stages, the operators whose stages take their places, among them perhaps
    the stage's own.  The others' stages have the loops of their axes.
    """
    dag, became = replace_ops(state.current_dag, new)
    stages: list[Stage] = []
    for stage in state.stages:
        for op in (places or {}).get(stage.op, (stage.op,)):
            made = became.get(op, op)
            stages.append(stage.with_op(made) if op is stage.op else initial_stage(made))
    return replace(state, current_dag=dag, stages=tuple(stages))


def _reduce_relations(stage: Stage) -> Stage:
    """*stage* with only the splits and fuses of its reduce loops."""
    names = {axis.name for axis in stage.compute.reduce_axes}
    kept = []
    for relation in stage.relations:
        match relation:
            case FuseRelation(parents, child):
                made: tuple[str, ...] = (child,)
            case SplitRelation(parent, made, _):
                parents = (parent,)
        if names.issuperset(parents):
            kept.append(relation)
            names.update(made)
    return replace(stage, relations=tuple(kept))


def free_names(state: State) -> Callable[[str], str]:
    """Return a function that makes unused stage names, each of them once."""
    taken = {stage.name for stage in state.stages}

    def name(wanted: str) -> str:
        others = (f"{wanted}.{n}" for n in count(1))
        found = next(n for n in chain([wanted], others) if n not in taken)
        taken.add(found)
        return found

    return name
