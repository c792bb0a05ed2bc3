"""Steps that compute in fragments what comes before and after products of warps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from ansorpy.errors import ScheduleError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Axis,
    AxisKind,
    Cast,
    Expr,
    Load,
    Reduce,
    ReduceKind,
    Select,
    Var,
    as_expr,
)
from ansorpy.ir.extents import Extent, multiple_of
from ansorpy.ir.fragments import WARP, Fragment
from ansorpy.ir.intrinsics import QUADS, intrinsic
from ansorpy.ir.loops import Scope
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.tensor import ComputeOp, Tensor
from ansorpy.schedule.lowering.dag_edit import fresh_axes, map_loads, unused_name, with_body
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.steps.base import Step, compute_stage
from ansorpy.schedule.steps.storage import free_names, with_replaced_ops

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["COLUMNS", "HoldStep", "OnesStep", "QuadsStep", "held_in", "lane_of"]

COLUMNS = 16
"""Columns of a row after which the pattern of lanes repeats in both a sum and a left operand."""

_LANES, _NEAR = 4, 2
"""Lanes that share a row, and neighbouring columns that each of them holds (``mma.sync``)."""


def lane_of(column: Expr) -> Expr:
    """Which of the four lanes that share a row holds *column*."""
    return column // _NEAR % _LANES


@dataclass(frozen=True)
class HoldStep(Step):
    """Keep *stage* in the registers of warps, in fragments like the sums of *intrinsic*.

    The stage's last dimensions are those of a fragment; each lane computes what it holds.
    """

    intrinsic: str
    kind: Literal["hold"] = "hold"

    def apply(self, state: State) -> State:
        stage, by = compute_stage(state, self.stage, self), intrinsic(self.intrinsic)
        fragment = by.fragments[0] if by.fragments else ()
        if not fragment or stage.op.ndim < len(fragment):
            raise self.error(
                state, f"{by.name} has no fragments of sums that the stage's dimensions could have",
                hint="name a matrix product of warps",
            )  # fmt: skip
        if state.current_dag.is_output(stage.op) or stage.compute.reduce_axes:
            raise self.error(
                state, "an output, or a stage that reduces, cannot be held in fragments",
                hint="hold an elementwise stage that other stages read",
            )  # fmt: skip
        return state.replace_stage(held_in(stage, fragment))


@dataclass(frozen=True)
class QuadsStep(Step):
    """Reduce each row in the four lanes that share it: each its own columns, then all together.

        R[i] = max_k f(i, k)   -->   R.lane[i, x] = max_(t, g, l) f(i, 16 t + 8 g + 2 x + l)
                                     R.quad[i, x] = max_y R.lane[i, y]

    Every lane ``x`` gets the result.  Readers read that of the lane that holds their last axis.
    Fragments are those of a *team* of so many lanes.
    """

    team: int = WARP
    kind: Literal["quads"] = "quads"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        op, body = stage.compute, stage.compute.body
        if (
            not isinstance(body, Reduce) or (body.kind, self.team) not in QUADS
            or len(body.axes) != 1 or not op.axes or stage.is_arranged
            or op.dtype.of_sums is not DType.FLOAT32
        ):  # fmt: skip
            raise self._refused(
                state, "it is not an untiled sum or maximum of floats along one axis"
            )
        if state.current_dag.is_output(op):
            raise self._refused(state, "an output lives in the caller's memory")
        name = free_names(state)
        lane = _of_lanes(op, body, name(f"{op.name}.lane"))
        quad = _of_quads(op, lane, body, name(f"{op.name}.quad"))

        def result(load: Load, reader: ComputeOp) -> Expr:
            return Load(quad, (*load.indices, lane_of(reader.axes[-1]))).astype(op.dtype)

        state = _replaced(state, op, (lane, quad), result)
        for made in (lane, quad):
            held = held_in(state.stage(made.name), QUADS[body.kind, self.team].fragments[0])
            state = state.replace_stage(held)
        return state

    def _refused(self, state: State, message: str) -> ScheduleError:
        return self.error(state, message, hint="quads reduce the rows of sums in fragments")


@dataclass(frozen=True)
class OnesStep(Step):
    """Sum 16-bit values as a product with a matrix of ones, which tensor cores can compute.

        R[i] = sum_k x[i, k]   -->   R.one[k, c] = 1
                                     R.columns[i, c] = sum_k x[i, k] * R.one[k, c]

    All columns are alike; readers read the one below their last axis in a fragment.
    """

    kind: Literal["ones"] = "ones"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        op, body = stage.compute, stage.compute.body
        match body:
            case Reduce(ReduceKind.SUM, Cast(DType.FLOAT32, factor), (key,)):
                pass
            case _:
                raise self._refused(state, "it is not a sum of 16-bit floats along one axis")
        if factor.dtype.bits != 16 or stage.is_arranged or state.current_dag.is_output(op):
            raise self._refused(state, "it is an output, tiled, or no sum of 16-bit floats")
        name = free_names(state)
        column = Axis(unused_name("c", (*op.axes, key)), _COLUMNS_OF_SUM, AxisKind.SPACE)
        one = _ones(name(f"{op.name}.one"), (key, column), factor.dtype)
        rows, summed = fresh_axes(op.axes), Axis(key.name, key.extent, AxisKind.REDUCE)
        at: dict[Var, Expr] = {**dict(zip(op.axes, rows, strict=True)), key: summed}
        factor, ones = substitute(factor, at), Load(one, (summed, column))
        term = factor.astype(DType.FLOAT32) * ones.astype(DType.FLOAT32)
        shape: tuple[Extent, ...] = (*op.shape, _COLUMNS_OF_SUM)
        columns = ComputeOp(
            name(f"{op.name}.columns"), shape, (*rows, column), (summed,),
            Reduce(ReduceKind.SUM, term, (summed,)), op.attrs,
        )  # fmt: skip

        def result(load: Load, reader: ComputeOp) -> Expr:
            return Load(columns, (*load.indices, reader.axes[-1] % _COLUMNS_OF_SUM))

        return _replaced(state, op, (one, columns), result)

    def _refused(self, state: State, message: str) -> ScheduleError:
        return self.error(state, message, hint="sum others in quads")


_COLUMNS_OF_SUM = 8
"""Columns of a fragment of sums (``mma.sync.m16n8``)."""


def _ones(name: str, over: Iterable[Axis], dtype: DType) -> ComputeOp:
    axes = fresh_axes(over)
    shape = tuple(axis.extent for axis in axes)
    return ComputeOp(name, shape, axes, (), as_expr(1.0, dtype))


def _replaced(
    state: State, op: ComputeOp, made: Sequence[ComputeOp],
    result: Callable[[Load, ComputeOp], Expr],
) -> State:  # fmt: skip
    """*state* with the stages *made* in place of *op*; a reader's loads of it become *result*."""
    new: dict[Tensor, ComputeOp] = {}
    for reader in state.current_dag.readers(op):

        def redirect(load: Load, reader: ComputeOp = reader) -> Expr:
            return result(load, reader) if load.source is op else load

        new[reader] = with_body(reader, map_loads(reader.body, redirect))
    return with_replaced_ops(state, new, {op: made})


def held_in(stage: Stage, fragment: Fragment) -> Stage:
    """*stage* in *fragment*, which its last dimensions have."""
    whole = (*((),) * (stage.op.ndim - len(fragment)), *fragment)
    return replace(stage, scope=Scope.WARP, fragment=whole)


def _of_lanes(op: ComputeOp, body: Reduce, name: str) -> ComputeOp:
    """The part of each lane: the columns of the row that it holds."""
    (key,) = body.axes
    rows = fresh_axes(op.axes)
    lane = Axis(unused_name("x", op.axes), _LANES, AxisKind.SPACE)
    parts = (
        Axis(f"{key.name}.t", -(-key.extent // COLUMNS), AxisKind.REDUCE),
        Axis(f"{key.name}.g", COLUMNS // (_LANES * _NEAR), AxisKind.REDUCE),
        Axis(f"{key.name}.l", _NEAR, AxisKind.REDUCE),
    )
    column = parts[0] * COLUMNS + parts[1] * (_LANES * _NEAR) + lane * _NEAR + parts[2]
    at: dict[Var, Expr] = {**dict(zip(op.axes, rows, strict=True)), key: column}
    source = substitute(body.source, at).astype(DType.FLOAT32)
    if multiple_of(key.extent) % COLUMNS:
        identity = as_expr(body.kind.identity(source.dtype), source.dtype)
        source = Select(column < as_expr(key.extent), source, identity)
    shape: tuple[Extent, ...] = (*op.shape, _LANES)
    reduced = Reduce(body.kind, source, parts)
    return ComputeOp(name, shape, (*rows, lane), parts, reduced, op.attrs)


def _of_quads(op: ComputeOp, lane: ComputeOp, body: Reduce, name: str) -> ComputeOp:
    """The combination of a row's lanes, in each of them."""
    rows = fresh_axes(op.axes)
    every = Axis(unused_name("y", op.axes), _LANES, AxisKind.REDUCE)
    x = Axis(unused_name("x", op.axes), _LANES, AxisKind.SPACE)
    combined = Reduce(body.kind, Load(lane, (*rows, every)), (every,))
    return ComputeOp(name, lane.shape, (*rows, x), (every,), combined)
