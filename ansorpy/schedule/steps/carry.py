"""The step that continues reductions in the loop of another one (online softmax)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from ansorpy.errors import ScheduleError
from ansorpy.ir.builders import maximum
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    AxisKind,
    Binary,
    Cast,
    Expr,
    Load,
    Reduce,
    ReduceKind,
    Var,
    walk,
)
from ansorpy.ir.intrinsics import QUADS
from ansorpy.ir.operands import without_casts
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor
from ansorpy.schedule.exponents import exponent
from ansorpy.schedule.lowering.dag_edit import map_loads, with_body
from ansorpy.schedule.stage import Carried, Iter, Rescaled, SplitRelation, Stage
from ansorpy.schedule.steps.base import Step, compute_stage
from ansorpy.schedule.steps.fragments import COLUMNS, lane_of
from ansorpy.schedule.steps.loops import find_split, split_loop
from ansorpy.schedule.steps.storage import with_replaced_ops

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["CarryStep"]


@dataclass(frozen=True)
class CarryStep(Step):
    """Continue the reductions *members* in loop *iter* of the sum *stage*, which depends on them.

        top[i] = max_j x[i, j]                  for j.0:
        e[i, j] = exp(x[i, j] - top[i])           top[i] max= x[i, j];  f = exp(before - top[i])
        total[i] = sum_j e[i, j]          -->     e[i, j] = exp(x[i, j] - top[i])
        mixed[i] = sum_j e[i, j] * v[j]           total[i] = total[i] * f + sum_j e[i, j]
                                                  mixed[i] = mixed[i] * f + sum_j e[i, j] * v[j]

    The sums of what is relative to *top*, *stage* among them, are rescaled whenever it changes.
    Members are reductions in quads (:class:`~ansorpy.schedule.steps.fragments.QuadsStep`).

    Source: Milakov & Gimelshein 2018, "Online normalizer calculation for softmax"; Dao 2023,
    "FlashAttention-2".
    """

    iter: str
    members: tuple[str, ...]
    top: str
    kind: Literal["carry"] = "carry"

    def apply(self, state: State) -> State:
        host, top = compute_stage(state, self.stage, self), compute_stage(state, self.top, self)
        outer = self._outer(state, host)
        readers = [op for op in state.current_dag.readers(top.op) if op.name not in self.members]
        if self.top not in self.members or len(readers) != 1:
            raise self._refused(state, f'"{self.top}" is not a member that one other stage reads')
        raised = readers[0]
        scale = _scale(raised, top)
        if scale is None:
            raise self._refused(state, f'"{raised.name}" is not exp(x - {self.top}), scaled or not')
        before = [state.stage(name) for name in self.members]
        rescaled = {
            sum_.name: _rescaled(sum_, raised, top, scale)
            for sum_ in (host, *before)
            if _kind(sum_) is ReduceKind.SUM
        }
        for name in self.members:
            state = self._carried(state, name, outer, host)
        for name, how in rescaled.items():
            state = state.replace_stage(replace(state.stage(name), rescaled=how))
        return _in_order(_finite(state, raised, top), self.stage)

    def _outer(self, state: State, host: Stage) -> Sequence[Iter]:
        """The reduce loops of *host* down to the one in which members are continued."""
        inside = host.index(self.iter)
        outer = [it for it in host.iters[: inside + 1] if it.kind is AxisKind.REDUCE]
        alone = len(host.compute.reduce_axes) == 1 and _kind(host) is ReduceKind.SUM
        if not outer or outer[-1].name != self.iter or not alone or host.fragment is None:
            raise self._refused(
                state, f'"{self.iter}" is not a loop of a sum of fragments along one axis'
            )
        return outer

    def _carried(self, state: State, name: str, outer: Sequence[Iter], host: Stage) -> State:
        """*state* with member *name* continued in the loops *outer* of *host*."""
        stage, (axis,) = compute_stage(state, name, self), host.compute.reduce_axes
        if stage.fragment is None or stage.relations:
            raise self._refused(state, f'"{name}" is not an untiled reduction in fragments')
        loops: tuple[tuple[str, str], ...] = ()
        parts = stage.compute.reduce_axes
        if len(parts) > 1 or _multiplies(stage):
            split = find_split(state, (host.name, axis.name), self.call())
            steps = -(-axis.extent // COLUMNS) if len(parts) > 1 else axis.extent
            if split.factors[-1] != (COLUMNS,) or parts[0].extent != steps:
                raise self._refused(
                    state, f'"{name}" does not run along the loops of "{host.name}"'
                )
            stage = _split_like(stage, parts[0].name, split)
            made = [it.name for it in stage.iters if it.name.startswith(f"{parts[0].name}.")]
            loops = tuple(zip(made, (it.name for it in outer), strict=False))
        carried = Carried(host.name, self.iter, loops)
        return state.replace_stage(replace(stage, carried=carried))

    def _refused(self, state: State, message: str) -> ScheduleError:
        hint = "carry the maximum and the sum of a softmax in the product that it weights"
        return self.error(state, message, hint=hint)


def _kind(stage: Stage) -> ReduceKind | None:
    body = stage.compute.body
    return body.kind if isinstance(body, Reduce) else None


def _multiplies(stage: Stage) -> bool:
    """Whether *stage* is a sum of products, which an instruction computes."""
    body = stage.compute.body
    return isinstance(body, Reduce) and isinstance(body.source, Binary)


def _split_like(stage: Stage, loop: str, source: SplitRelation) -> Stage:
    """*stage* with *loop* split as *source* is, in steps of a product or, else, without these."""
    if _multiplies(stage):
        return split_loop(stage, stage.iter(loop), source.factors, source.tail)
    return split_loop(stage, stage.iter(loop), source.factors[:-1], "cover")


def _rescaled(stage: Stage, raised: ComputeOp, top: Stage, scale: float) -> Rescaled:
    """How the sum *stage* of *raised* is kept relative to *top*."""
    op = stage.compute
    (read,) = [e for e in walk(raised.body) if isinstance(e, Load) and e.source is top.op]
    (place, *_) = _reads(op, raised)
    at: dict[Var, Expr] = dict(zip(raised.axes, place, strict=True))
    rows = tuple(substitute(index, at) for index in read.indices[:-1])
    fragment = tuple(filter(None, stage.fragment or ()))
    quad = any(fragment == by.fragments[0] for by in QUADS.values())
    lane = op.axes[-1] if quad else lane_of(op.axes[-1])
    return Rescaled(top.name, (*rows, lane), scale)


def _reads(op: ComputeOp, raised: ComputeOp) -> Iterator[tuple[Expr, ...]]:
    """The indices at which *op* reads *raised*, itself or through a copy."""
    for e in walk(op.body):
        if not isinstance(e, Load) or not isinstance(e.source, ComputeOp):
            continue
        if e.source is raised:
            yield e.indices
        elif not e.source.reduce_axes:
            at: dict[Var, Expr] = dict(zip(e.source.axes, e.indices, strict=True))
            for inner in _reads(e.source, raised):
                yield tuple(substitute(index, at) for index in inner)


def _scale(raised: ComputeOp, top: Stage) -> float | None:
    """The scale of ``exp((x - top) * scale)``; None for other stages."""
    found = exponent(raised)
    loads = [e for e in walk(raised.body) if isinstance(e, Load) and e.source is top.op]
    if found is None or found.top.source is not top.op or len(loads) != 1:
        return None
    return 1.0 if found.scale is None else float(found.scale.value)


def _finite(state: State, raised: ComputeOp, top: Stage) -> State:
    """*state* with *raised* relative to a finite number where no score so far is finite.

    Its terms are 0 there, not NaN; the complete sums of a row without any finite score are NaN.
    """
    dtype = min(_types_of(raised, top), key=lambda dtype: dtype.bits)

    def finite(load: Load) -> Expr:
        return maximum(load, -dtype.normal[1]) if load.source is top.op else load

    def or_nan(load: Load) -> Expr:
        if load.source not in complete:
            return load
        *rows, last = load.indices
        highest = Load(top.op, (*rows, last if load.source not in members else lane_of(last)))
        return load + (highest - highest)

    dag, members = state.current_dag, {s.op for s in state.stages if s.carried is not None}
    complete = {
        s.op for s in state.stages
        if _completes(state, s, members) and _kind(s) is ReduceKind.SUM
        and s.op.shape == top.op.shape or s.op in members and _multiplies(s)
    }  # fmt: skip
    new: dict[Tensor, ComputeOp] = {raised: with_body(raised, map_loads(raised.body, finite))}
    for op in complete:
        for reader in dag.readers(op):
            new[reader] = with_body(reader, map_loads(reader.body, or_nan))
    return with_replaced_ops(state, new)


def _types_of(raised: ComputeOp, top: Stage) -> Iterator[DType]:
    """The types that the value of *top* has on its way into *raised*."""
    yield top.op.dtype
    for e in walk(raised.body):
        read = without_casts(e)
        if isinstance(e, Cast) and isinstance(read, Load) and read.source is top.op:
            yield e.dtype


def _in_order(state: State, host: str) -> State:
    """*state* with members before *host*, and stages that read their final values after it."""
    stages = list(state.stages)
    at = next(n for n, stage in enumerate(stages) if stage.name == host)
    members = {stage.op for stage in stages if stage.carried is not None}
    early = [stage for stage in stages[at:] if stage.op in members]
    late = [stage for stage in stages[:at] if _completes(state, stage, members)]
    before = [stage for stage in stages[:at] if stage not in late]
    after = [stage for stage in stages[at + 1 :] if stage not in early]
    return replace(state, stages=(*before, *early, stages[at], *late, *after))


def _completes(state: State, stage: Stage, members: set[ComputeOp | PlaceholderOp]) -> bool:
    """Whether *stage* reduces a member once it is complete."""
    if stage.is_placeholder or stage.carried is not None or not stage.compute.reduce_axes:
        return False
    return bool(members & set(state.current_dag.reads(stage.op)))
