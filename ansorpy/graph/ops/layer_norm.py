"""Normalisation over whole axes: layer, instance and root-mean-square norms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from ansorpy.graph.op import LayerNorm
from ansorpy.graph.ops.names import Names
from ansorpy.ir import builders as b
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["layer_norm"]


def layer_norm(op: LayerNorm, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
    """Sum, mean, sum of squared deviations, reciprocal root, and product, a stage each.

    The statistics drop the axes that they reduce: ``[rows]`` for ``x[rows, size]``.  For 16-bit
    floats all stages but the last are float32.
    """
    (x,) = inputs
    kept = [d for d in range(x.ndim) if d not in op.axes]
    count = float(prod(x.shape[d] for d in op.axes))
    shape = [x.shape[d] for d in kept]
    axes = [f"i{d}" for d in range(x.ndim)]

    def row(i: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(i[d] for d in kept)

    def statistic(term: Callable[[tuple[Expr, ...]], Expr], name: str) -> ComputeOp:
        over = {d: reduce_axis(x.shape[d], name=f"k{d}") for d in op.axes}

        def body(*i: Expr) -> Expr:
            place = dict(zip(kept, i, strict=True)) | over
            index = tuple(place[d] for d in range(x.ndim))
            return b.sum(term(index), axis=tuple(over.values()))

        return compute(shape, body, name=names.fresh(name), names=[axes[d] for d in kept])

    def per_row(fn: Callable[..., Expr], name: str) -> ComputeOp:
        return compute(shape, fn, name=names.fresh(name), names=[axes[d] for d in kept])

    def centred(i: Sequence[Expr]) -> Expr:
        element = b.widened(x[tuple(i)])
        return element if mean is None else element - mean[row(i)]

    mean = None
    if op.centred:
        total = statistic(lambda i: b.widened(x[i]), "total")
        mean = per_row(lambda *i: total[i] / count, "mean")
    squares = statistic(lambda i: centred(i) * centred(i), "squares")
    root = per_row(lambda *i: b.rsqrt(squares[i] / count + op.epsilon), "root")

    def normed(*i: Expr) -> Expr:
        return (centred(i) * root[row(i)]).astype(x.dtype)

    return compute(x.shape, normed, name=names.fresh("norm"), names=axes)
