"""Sums weighted by a softmax, written in several ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansorpy.graph.ops.matmul import MatMul
from ansorpy.graph.ops.names import Names
from ansorpy.graph.ops.softmax import Softmax
from ansorpy.ir import builders as ap
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.extents import Extent
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis

__all__ = ["attends", "softmax_then_product"]


def attends(
    rows: Extent, keys: Extent, width: int, *, scale: float = 1.0, dtype: str = "float32",
    score: Callable[[Expr, Expr, Expr], Expr] = lambda i, j, s: s, keys_first: bool = False,
) -> list[Tensor]:  # fmt: skip
    """``softmax(x) v`` by hand, where *x* is ``score(i, j, s)`` of the given scores *s*.

    With *keys_first*, all intermediate values have their keys first.
    """
    s = placeholder((rows, keys), dtype, name="s")
    v = placeholder((keys, width), dtype, name="v")
    a, b, c = (reduce_axis(keys, name=name) for name in "abc")

    def place(i: Expr, j: Expr) -> tuple[Expr, Expr]:
        return (j, i) if keys_first else (i, j)

    square = (keys, rows) if keys_first else (rows, keys)
    x = compute(square, lambda p, q: score(*place(p, q), s[place(p, q)]), name="x")
    top = compute((rows,), lambda i: ap.max(x[place(i, a)], axis=a), name="top")

    def raised(p: Expr, q: Expr) -> Expr:
        above = ap.widened(x[p, q]) - ap.widened(top[place(p, q)[0]])
        return ap.exp(above if scale == 1.0 else scale * above).astype(x.dtype)

    e = compute(square, raised, name="e")
    total = compute((rows,), lambda i: ap.sum(ap.widened(e[place(i, b)]), axis=b), name="total")
    mixed = compute(
        (rows, width),
        lambda i, o: ap.sum(ap.widened(v[c, o]) * ap.widened(e[place(i, c)]), axis=c),
        name="mixed",
    )
    out = compute((rows, width), lambda i, o: (mixed[i, o] / total[i]).astype(x.dtype), name="out")
    return [s, v, out]


def softmax_then_product(
    shape: Sequence[Extent], width: int, *, dtype: str = "float32", guarded: bool = False
) -> list[Tensor]:
    """``softmax(x) v`` as networks have it where nothing fused them."""
    x = placeholder(shape, DType(dtype), name="x")
    v = placeholder((*shape[:-2], shape[-1], width), DType(dtype), name="v")
    names = Names()
    weights = Softmax((len(shape) - 1,), guarded).define([x], names)
    return [x, v, MatMul().define([weights, v], names)]
