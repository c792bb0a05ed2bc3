"""Attention whose products are divided, not the weights of the values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ansorpy.ir import builders
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Axis, Expr, Load, Reduce, Var
from ansorpy.ir.operands import without_casts
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis
from ansorpy.rules.algorithms.base import Algorithm, Definition
from ansorpy.rules.algorithms.softmax import (
    WeightedSum,
    find_weighted_sums,
    narrowest,
    times_weight,
)
from ansorpy.rules.gpu.mma_choice import has_mma_sync
from ansorpy.schedule.lowering.dag_edit import map_loads, replace_ops, with_body
from ansorpy.target import Target

__all__ = ["LateDivision", "late_division"]


@dataclass(frozen=True)
class LateDivision(Algorithm):
    """The division by the sums of a softmax after the product with the values.

        w[i, j] = e[i, j] / total[i]                  mixed[i, o] = sum_j e[i, j] * v[j, o]
        mixed[i, o] = sum_j w[i, j] * v[j, o]   -->   result[i, o] = mixed[i, o] / total[i]

    Only then can the sums grow while keys are added.  It is offered where warps multiply on tensor
    cores, for weights of 16 bits; exponentials are rounded to their type before they are summed.

    Source: Dao et al. 2022, "FlashAttention".
    """

    def rewrite(self, dag: ComputeDAG, target: Target) -> Iterable[Definition]:
        for weighted in find_weighted_sums(dag) if has_mma_sync(target) else ():
            is_late = without_casts(weighted.weight) is weighted.read
            if not is_late and narrowest(weighted.weight).bits == 16:
                yield late_division(dag, weighted)

    def rewrite_for_all(self, dag: ComputeDAG, target: Target) -> Iterable[Definition]:
        """The same holds for all sizes."""
        return self.rewrite(dag, target)


def late_division(dag: ComputeDAG, of: WeightedSum) -> Definition:
    """*dag* with the exponentials of *of* multiplied by the values, and the product divided."""
    narrow, wide = narrowest(of.weight), of.mixed.dtype.of_sums
    raised = with_body(of.raised, without_casts(of.raised.body).astype(narrow))
    total = _total(of, raised)
    (key,) = of.mixed.reduce_axes
    names = [axis.name for axis in of.mixed.axes]

    def on_axes(e: Expr, axes: Sequence[Expr], j: Axis) -> Expr:
        return substitute(e, {**dict(zip(of.mixed.axes, axes, strict=True)), key: j})

    def joined_at(*axes: Expr) -> Expr:
        j = reduce_axis(key.extent, name=key.name)
        weight = on_axes(Load(raised, of.read.indices), axes, j)
        return builders.sum(weight.astype(wide) * on_axes(of.value, axes, j).astype(wide), axis=j)

    joined = compute(of.mixed.shape, joined_at, name=f"{of.mixed.name}.joined", names=names)

    def divided_at(*axes: Expr) -> Expr:
        at: dict[Var, Expr] = dict(zip(of.mixed.axes, axes, strict=True))
        return times_weight(of, joined[axes], at).astype(of.mixed.dtype)

    attrs = replace(of.mixed.attrs, error=of.mixed.attrs.error + narrow.epsilon)
    mixed = compute(of.mixed.shape, divided_at, name=of.mixed.name, names=names, attrs=attrs)
    new: dict[Tensor, ComputeOp] = {of.raised: raised, of.total: total, of.mixed: mixed}
    return Definition("late_division", replace_ops(dag, new)[0], narrow.epsilon)


def _total(of: WeightedSum, raised: ComputeOp) -> ComputeOp:
    """The sum of *raised*, in the type of the sum before."""
    body = of.total.body
    assert isinstance(body, Reduce)

    def widened(load: Load) -> Expr:
        return (
            Load(raised, load.indices).astype(of.total.dtype) if load.source is of.raised else load
        )

    source = map_loads(without_casts(body.source), widened)
    return with_body(of.total, Reduce(body.kind, source, body.axes))
