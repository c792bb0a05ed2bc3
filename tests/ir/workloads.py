"""Small definitions of every kind, used by the tests of the IR."""

from __future__ import annotations

from collections.abc import Callable

from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Cast
from ansorpy.ir.tensor import compute, placeholder, reduce_axis


def matmul(n: int = 5, m: int = 3, depth: int = 7) -> ComputeDAG:
    x, w = placeholder((n, depth), name="x"), placeholder((depth, m), name="w", constant=True)
    k = reduce_axis(depth, name="k")
    y = compute((n, m), lambda i, j: b.sum(x[i, k] * w[k, j], k), name="y")
    return ComputeDAG([compute((n, m), lambda i, j: b.maximum(y[i, j], 0.0), name="z")], [x, w])


def conv(n: int = 7, c: int = 3, f: int = 4, stride: int = 2) -> ComputeDAG:
    """A padded 3x3 convolution, channels last, with a bias."""
    x = placeholder((n, n, c), name="x")
    w = placeholder((3, 3, c, f), name="w", constant=True)
    bias = placeholder((f,), name="bias", constant=True)
    padded = compute(
        (n + 2, n + 2, c),
        lambda h, v, ch: b.select(
            b.all_of(h >= 1, h < n + 1, v >= 1, v < n + 1), x[h - 1, v - 1, ch], 0.0
        ),
        name="padded",
    )
    kh, kw, kc = (reduce_axis(e, name=s) for e, s in ((3, "kh"), (3, "kw"), (c, "kc")))
    out = (n - 1) // stride + 1
    y = compute(
        (out, out, f),
        lambda h, v, o: b.sum(
            padded[h * stride + kh, v * stride + kw, kc] * w[kh, kw, kc, o], (kh, kw, kc)
        ),
        name="conv",
    )
    z = compute((out, out, f), lambda h, v, o: y[h, v, o] + bias[o], name="z")
    return ComputeDAG([z], [x, w, bias])


def softmax(n: int = 3, m: int = 6) -> ComputeDAG:
    x = placeholder((n, m), name="x")
    k, k2 = reduce_axis(m, name="k"), reduce_axis(m, name="k2")
    top = compute((n,), lambda i: b.max(x[i, k], k), name="top")
    e = compute((n, m), lambda i, j: b.exp(x[i, j] - top[i]), name="e")
    total = compute((n,), lambda i: b.sum(e[i, k2], k2), name="total")
    return ComputeDAG([compute((n, m), lambda i, j: e[i, j] / total[i], name="y")])


def reshape(n: int = 6, m: int = 4) -> ComputeDAG:
    x = placeholder((n, m), name="x")
    flat = compute((n * m,), lambda i: x[i // m, i % m], name="flat")
    return ComputeDAG([compute((m, n), lambda i, j: flat[j * m + i] * 2.0, name="t")])


def gather(n: int = 5, m: int = 4) -> ComputeDAG:
    table, index = placeholder((n, m), name="table"), placeholder((3,), "int32", name="index")
    y = compute((3, m), lambda i, j: table[Cast(DType.INT64, index[i]), j], name="y")
    return ComputeDAG([y], [table, index])


def integers(n: int = 5) -> ComputeDAG:
    """Narrow integers, a widening sum and an arg-reduction; two outputs."""
    x = placeholder((n, 9), "int8", name="x")
    k = reduce_axis(9, name="k")
    total = compute((n,), lambda i: b.sum(x[i, k].astype("int32"), k), name="total")
    return ComputeDAG([total, b.argmax((n,), lambda i, j: x[i, j], 9, name="best")])


def scalar(n: int = 8) -> ComputeDAG:
    x = placeholder((n,), name="x")
    k = reduce_axis(n, name="k")
    return ComputeDAG([compute((), lambda: b.prod(x[k], k), name="p")])


def guarded_sum(n: int = 6, c: int = 5) -> ComputeDAG:
    """A sum over taps some of which do not exist; the guard does not depend on the channel."""
    x = placeholder((n, c), name="x")
    w = placeholder((3, c), name="w", constant=True)
    doubled = compute((n, c), lambda i, k: x[i, k] * 2.0, name="doubled")
    t, k = reduce_axis(2, name="t"), reduce_axis(c, name="k")
    y = compute(
        (n,),
        lambda i: b.sum(
            b.select((i % 2) + t * 2 < 3, doubled[i, k] * w[(i % 2) + t * 2, k], 0.0), (t, k)
        ),
        name="y",
    )
    return ComputeDAG([y], [x, w])


ALL: tuple[Callable[[], ComputeDAG], ...] = (
    matmul, conv, softmax, reshape, gather, integers, scalar, guarded_sum,
)  # fmt: skip
