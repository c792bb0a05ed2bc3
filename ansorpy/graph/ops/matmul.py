"""Matrix products, batched and not, and the grouped product of a pointwise convolution."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.graph.op import MatMul, broadcast
from ansorpy.graph.ops.names import Names
from ansorpy.graph.ops.product import times
from ansorpy.graph.ops.windows import broadcast_index
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.builders import widened
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["grouped_matmul", "matmul"]


def matmul(
    op: MatMul | None, inputs: Sequence[Tensor], names: Names, *, wide: bool = False
) -> ComputeOp:
    """``out[.., i, j] = sum over k of a[.., i, k] * b[.., k, j]``, batch axes broadcast.

    The axes of ``out`` are permuted as *op* says.  If *wide*, ``out`` is of the type in which sums
    are computed: float32 for 16-bit floats.
    """
    a, b = inputs
    batch = broadcast([a.shape[:-2], b.shape[:-2]])
    k = reduce_axis(a.shape[-1], name="k")
    shape = (*batch, a.shape[-2], b.shape[-1])
    axes = (*(f"b{d}" for d in range(len(batch))), "i", "j")
    perm = op.perm if op is not None and op.perm else tuple(range(len(shape)))

    def body(*at: Expr) -> Expr:
        index = [at[perm.index(d)] for d in range(len(shape))]
        outer, (i, j) = index[:-2], index[-2:]
        left = broadcast_index(a.shape[:-2], outer, batch)
        right = broadcast_index(b.shape[:-2], outer, batch)
        x, y = a[(*left, i, k)], b[(*right, k, j)]
        return sum_over(widened(x) * widened(y) if wide else times(x, y), axis=k)

    return compute(
        tuple(shape[p] for p in perm),
        body,
        name=names.fresh("matmul"),
        names=tuple(axes[p] for p in perm),
    )


def grouped_matmul(data: Tensor, weight: Tensor, names: Names) -> ComputeOp:
    """``out[i, g, co] = sum over ci of data[i, g * c + ci] * weight[g, ci, co]``.

    Shapes: data ``[pixels, groups * c]``, weight ``[groups, c, co]``.
    """
    groups, depth, width = weight.shape
    ci = reduce_axis(depth, name="ci")
    return compute(
        (data.shape[0], groups, width),
        lambda i, g, co: sum_over(times(data[i, g * depth + ci], weight[g, ci, co]), axis=ci),
        name=names.fresh("conv"),
    )
