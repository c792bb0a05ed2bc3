"""The step that computes a sum of products with instructions of warps or warpgroups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from ansorpy.errors import ScheduleError
from ansorpy.ir.analysis.affine import axes_in
from ansorpy.ir.expr import Axis, Expr
from ansorpy.ir.intrinsics import Intrinsic, intrinsic, is_along, operand_tensors
from ansorpy.ir.loops import Scope
from ansorpy.ir.tensor import Tensor
from ansorpy.schedule.lowering.gpu.mma import MmaOperands, factors, in_fragments
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.steps.base import Step, compute_stage
from ansorpy.schedule.steps.fragments import held_in
from ansorpy.schedule.steps.storage import free_names, insert_stages

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["MmaStep"]

MOST_SWIZZLED = 128
"""The most bytes in a segment of a swizzled row (PTX ISA, "Swizzling modes")."""


@dataclass(frozen=True)
class MmaStep(Step):
    """Sum products of fragments in the registers of warps: operands and sum are new stages.

    C[i, j] = sum_k A[i, k] * B[k, j]   -->   C.warp[i, j] = sum_k A.warp[i, k] * B.warp[k, j]

    *rows*, *columns* and *depth* are the axes that the instruction covers.  Operands that it reads
    from shared memory become tiles there, ``A.shared``.
    """

    intrinsic: str
    rows: str
    columns: str
    depth: str
    kind: Literal["mma"] = "mma"

    def apply(self, state: State) -> State:
        stage, by = compute_stage(state, self.stage, self), intrinsic(self.intrinsic)
        form = self._form(stage)
        if form is None or stage.is_arranged or state.attached(stage):
            raise self._refused(state, "it is not an untiled sum of products over these axes")
        if not by.fragments or by.types[1:] != (form.left.dtype, form.right.dtype):
            raise self._refused(state, f"{by.name} does not multiply such values in a warp")
        tensors = operand_tensors(by.pattern)
        new, extra = in_fragments(stage.compute, form, by, free_names(state))
        state = insert_stages(state, stage.compute, new, extra)
        found = zip(tensors, by.fragments, strict=True)
        for op, (tensor, fragment) in zip((extra[2], *extra[:2]), found, strict=True):
            made = state.stage(op.name)
            if fragment:
                held = held_in(made, fragment)
            else:
                held = replace(made, scope=Scope.SHARED, swizzle=_swizzle(by, tensor))
            state = state.replace_stage(held)
        return state

    def _form(self, stage: Stage) -> MmaOperands | None:
        found = factors(stage.op)
        axes = {axis.name: axis for axis in (*stage.compute.axes, *stage.compute.reduce_axes)}
        if found is None or not {self.rows, self.columns, self.depth} <= axes.keys():
            return None
        rows, columns, depth = (axes[name] for name in (self.rows, self.columns, self.depth))
        if depth not in stage.compute.reduce_axes:
            return None
        for left, right in (found, found[::-1]):
            ends = _is_of(rows, left, right) and _is_of(columns, right, left)
            if ends and depth in axes_in(left) & axes_in(right):
                return MmaOperands(left, right, rows, columns, depth)
        return None

    def _refused(self, state: State, message: str) -> ScheduleError:
        hint = "rows are an axis of one factor alone, columns of the other, depth of both"
        return self.error(state, message, hint=hint)


def _is_of(axis: Axis, one: Expr, other: Expr) -> bool:
    return axis in axes_in(one) - axes_in(other)


def _swizzle(by: Intrinsic, tensor: Tensor) -> int:
    """The most bytes in a segment of a swizzled row of an operand in shared memory.

    If rows run along the reduction, a segment may have several of its steps; otherwise, it has at
    most one row of the instruction's matrix.
    """
    along = is_along(by, tensor)
    return MOST_SWIZZLED if along else min(MOST_SWIZZLED, tensor.shape[-1] * tensor.dtype.bytes)
