"""Reductions over whole axes, the places of extremes, and softmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansorpy.graph.op import ArgReduce, Reduce, ReduceOp, Shape, Softmax
from ansorpy.graph.ops.names import Names
from ansorpy.ir import builders
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["arg_reduce", "reduce", "softmax"]

_REDUCE: dict[ReduceOp, Callable[..., Expr]] = {
    ReduceOp.SUM: lambda x, axis: builders.sum(builders.widened(x), axis),
    ReduceOp.MAX: builders.max,
    ReduceOp.MIN: builders.min,
    ReduceOp.PROD: builders.prod,
}


def reduce(op: Reduce, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
    """*inputs[0]* reduced over ``op.axes``."""
    return _reduced(inputs[0], op.kind, op.axes, op.keepdims, names.fresh(op.label))


def arg_reduce(op: ArgReduce, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
    """The extreme value, then the least (or greatest) index at which it is found."""
    (x,) = inputs
    build = builders.argmax if op.kind is ReduceOp.MAX else builders.argmin
    shape = (*x.shape[: op.axis], 1, *x.shape[op.axis + 1 :])

    def element(*at: Expr) -> Expr:
        *i, k = at
        return x[(*i[: op.axis], k, *i[op.axis + 1 :])]

    return build(shape, element, x.shape[op.axis], name=names.fresh(op.label), last=op.last)


def softmax(op: Softmax, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
    """Four stages: the maximum over ``op.axes``, the exponentials, their sum, the quotient.

    The sum is NaN exactly where one of its terms is.  For 16-bit floats both are float32.
    """
    (x,) = inputs
    top = _reduced(x, ReduceOp.MAX, op.axes, True, names.fresh("max"))

    def at(i: Sequence[Expr]) -> tuple[Expr | int, ...]:
        return tuple(0 if d in op.axes else a for d, a in enumerate(i))

    axes = tuple(f"i{d}" for d in range(x.ndim))

    def raised(*i: Expr) -> Expr:
        return builders.exp(builders.widened(x[i]) - builders.widened(top[at(i)]))

    exps = compute(x.shape, raised, name=names.fresh("exp"), names=axes)
    total = _reduced(exps, ReduceOp.SUM, op.axes, True, names.fresh("sum"))

    def quotient(*i: Expr) -> Expr:
        share, whole = exps[i] / total[at(i)], total[at(i)]
        share = builders.select(whole.equal(whole), share, 0.0) if op.guarded else share
        return share.astype(x.dtype)

    return compute(x.shape, quotient, name=names.fresh("softmax"), names=axes)


def _reduced(x: Tensor, kind: ReduceOp, axes: Shape, keepdims: bool, name: str) -> ComputeOp:
    over = {d: reduce_axis(x.shape[d], name=f"k{d}") for d in axes if x.shape[d] > 1}
    kept = [d for d in range(x.ndim) if keepdims or d not in axes]
    shape = [1 if d in axes else x.shape[d] for d in kept]

    def body(*i: Expr) -> Expr:
        place = dict(zip(kept, i, strict=True))
        index = tuple(over[d] if d in over else 0 if d in axes else place[d] for d in range(x.ndim))
        return _REDUCE[kind](x[index], axis=tuple(over.values()))

    return compute(shape, body, name=name, names=tuple(f"i{d}" for d in kept))
