"""Window reductions, channels last."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.graph.op import Pool, PoolKind
from ansorpy.graph.op import windows as count_windows
from ansorpy.graph.ops.names import Names, spatial_axes
from ansorpy.graph.ops.windows import guarded, kernel_axes, position
from ansorpy.ir import builders as b
from ansorpy.ir.expr import Expr, ReduceKind
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["pool"]


def pool(op: Pool, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
    """``out[n, *o, c]`` = the reduction of ``data[n, *(o*stride + tap*dilation - pad), c]``.

    A tap outside the data gives the reduction's identity; only borders that can be crossed are
    guarded.
    """
    (data,) = inputs
    rank = len(op.kernel)
    spatial = spatial_axes(rank)
    size = data.shape[1:-1]
    out = count_windows(size, op.kernel, op.strides, op.pads_begin, op.pads_end, op.dilations)
    reach = [
        (o - 1) * stride + (k - 1) * dilation - pad
        for o, stride, k, dilation, pad in zip(
            out, op.strides, op.kernel, op.dilations, op.pads_begin, strict=True
        )
    ]
    guards = [(d + 1, op.pads_begin[d] > 0, reach[d] >= size[d]) for d in range(rank)]
    taps = kernel_axes(op.kernel, spatial)
    kind = ReduceKind.MAX if op.kind is PoolKind.MAX else ReduceKind.SUM

    def body(*i: Expr) -> Expr:
        where = [
            position(o, stride, 0 if k is None else k, dilation)
            for o, stride, k, dilation in zip(i[1:-1], op.strides, taps, op.dilations, strict=True)
        ]
        shifted = [x - pad if pad else x for x, pad in zip(where, op.pads_begin, strict=True)]
        value = guarded(data, (i[0], *shifted, i[-1]), guards, kind.identity(data.dtype))
        axes = [k for k in taps if k is not None]
        return b.max(value, axes) if op.kind is PoolKind.MAX else b.sum(b.widened(value), axes)

    return compute(
        (data.shape[0], *out, data.shape[-1]),
        body,
        name=names.fresh(op.label),
        names=("n", *spatial, "c"),
    )
