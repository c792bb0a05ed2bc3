"""The operator suite in small, odd, prime and single sizes, for programs that are interpreted."""

from __future__ import annotations

from ansorpy.ir import builders as ap
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from tests import workloads
from tests.rules.algorithms.convolutions import convolution, first_layout
from tests.rules.attentions import heads_attend

__all__ = ["WORKLOADS", "scaled_matmul"]


def batch_matmul(batch: int, n: int, m: int, k: int) -> list[Tensor]:
    """``C[b, n, m] = A[b, n, k] B[b, m, k]``."""
    a, b = placeholder((batch, n, k), name="A"), placeholder((batch, m, k), name="B")
    r = reduce_axis(k, name="k")
    made = compute((batch, n, m), lambda s, i, j: ap.sum(a[s, i, r] * b[s, j, r], axis=r), name="C")
    return [a, b, made]


def average_pool(n: int, h: int, w: int, c: int, size: int, stride: int) -> list[Tensor]:
    """The mean of windows of *size*, channels last, no padding."""
    x = placeholder((n, h, w, c), name="X")
    ry, rx = reduce_axis(size, name="ry"), reduce_axis(size, name="rx")
    shape = (n, (h - size) // stride + 1, (w - size) // stride + 1, c)
    total = compute(
        shape,
        lambda i, y, z, o: ap.sum(x[i, y * stride + ry, z * stride + rx, o], axis=(ry, rx)),
        name="total",
    )
    mean = compute(shape, lambda *i: total[i] * (1.0 / size**2), name="mean")
    return [x, mean]


def gelu(*shape: int) -> list[Tensor]:
    """Elementwise, of a few stages."""
    x = placeholder(shape, name="X")
    inner = compute(shape, lambda *i: ap.erf(x[i] * 0.7071067811865476), name="inner")
    return [x, compute(shape, lambda *i: x[i] * (inner[i] + 1.0) * 0.5, name="out")]


def transposed(n: int, m: int) -> list[Tensor]:
    """A transpose and a broadcast sum."""
    x, y = placeholder((n, m), name="X"), placeholder((n,), name="Y")

    def at(i: Expr, j: Expr) -> Expr:
        return x[j, i] + y[j]

    return [x, y, compute((m, n), at, name="out")]


def flipped_matmul(n: int, m: int, k: int) -> list[Tensor]:
    """``A[n, k] B[k, m]`` with the rows of A from last to first: their index falls."""
    a, b = placeholder((n, k), name="A"), placeholder((k, m), name="B")
    r = reduce_axis(k, name="k")
    rows = compute((n, m), lambda i, j: ap.sum(a[n - 1 - i, r] * b[r, j], axis=r), name="C")
    return [a, b, rows]


def delayed_sums(n: int, m: int, k: int) -> list[Tensor]:
    """``C[i, j] = sum of A[i + k - 1 - r] B[r, j]``: the index falls as the sum goes on."""
    a, b = placeholder((n + k - 1,), name="A"), placeholder((k, m), name="B")
    r = reduce_axis(k, name="k")
    sums = compute((n, m), lambda i, j: ap.sum(a[i + (k - 1) - r] * b[r, j], axis=r), name="C")
    return [a, b, sums]


def vector_matmul(n: int, m: int, k: int, *, transposed: bool) -> list[Tensor]:
    """``relu(A[n, k] B[k, m] + bias)``, or of ``B[m, k]``."""
    a, bias = placeholder((n, k), name="A"), placeholder((m,), name="bias")
    b, r = placeholder((m, k) if transposed else (k, m), name="B"), reduce_axis(k, name="k")

    def product(i: Expr, j: Expr) -> Expr:
        return ap.sum(a[i, r] * (b[j, r] if transposed else b[r, j]), axis=r)

    made = compute((n, m), product, name="C")
    out = compute((n, m), lambda i, j: ap.maximum(made[i, j] + bias[j], 0.0), name="out")
    return [a, b, bias, out]


def channel_means(n: int, h: int, w: int, c: int) -> list[Tensor]:
    """The mean of each channel over a whole image, channels last."""
    x = placeholder((n, h, w, c), name="X")
    ry, rx = reduce_axis(h, name="ry"), reduce_axis(w, name="rx")
    total = compute((n, c), lambda i, o: ap.sum(x[i, ry, rx, o], axis=(ry, rx)), name="total")
    return [x, compute((n, c), lambda i, o: total[i, o] * (1.0 / (h * w)), name="mean")]


def viewed_matmul(n: int, m: int, k: int) -> list[Tensor]:
    """``C[n, m] = A[n, k] V[k, m]`` of a transposed view of ``B[m, k]``."""
    a, b = placeholder((n, k), name="A"), placeholder((m, k), name="B")
    view, r = compute((k, m), lambda i, j: b[j, i], name="V"), reduce_axis(k, name="k")
    made = compute((n, m), lambda i, j: ap.sum(a[i, r] * view[r, j], axis=r), name="C")
    return [a, b, made]


def symmetric_matmul(n: int, m: int) -> list[Tensor]:
    """``C = (A + A^T) B``."""
    a, b, r = placeholder((n, n), name="A"), placeholder((n, m), name="B"), reduce_axis(n, name="k")

    def at(i: Expr, j: Expr) -> Expr:
        return ap.sum((a[i, r] + a[r, i]) * b[r, j], axis=r)

    return [a, b, compute((n, m), at, name="C")]


def two_grams(batch: int, n: int, k: int) -> list[Tensor]:
    """The products of all rows of a matrix, and of all rows of those."""

    def products(t: Tensor, name: str) -> Tensor:
        r = reduce_axis(t.shape[-1], name="k")
        return compute(
            (batch, n, n), lambda s, i, j: ap.sum(t[s, i, r] * t[s, j, r], axis=r), name=name
        )

    a = placeholder((batch, n, k), name="A")
    return [a, products(products(a, "C"), "D")]


def two_scaled_matmuls(n: int) -> list[Tensor]:
    """``D = s A B C``, where ``s`` is one element and scales the first product."""
    *given, c = scaled_matmul(n)
    w, r = placeholder((n, n), name="W"), reduce_axis(n, name="k")
    made = compute((n, n), lambda i, j: ap.sum(c[i, r] * w[r, j], axis=r), name="D")
    return [*given, w, made]


def scaled_matmul(n: int, shape: tuple[int, ...] = ()) -> list[Tensor]:
    """``C = s A B``, where ``s`` is one element of the given *shape*."""
    a, b, s = (placeholder(e, name=x) for e, x in (((n, n), "A"), ((n, n), "B"), (shape, "s")))
    r, at = reduce_axis(n, name="k"), tuple(0 for _ in shape)
    made = compute((n, n), lambda i, j: ap.sum(a[i, r] * b[r, j] * s[at], axis=r), name="C")
    return [a, b, s, made]


WORKLOADS: dict[str, list[Tensor]] = {
    "matmul": workloads.matmul(12, 20, 6, constant=True),
    "even_matmul": workloads.matmul(64, 32, 16),
    "prime_matmul": workloads.matmul(37, 53, 11),
    "row_matmul": workloads.matmul(1, 40, 12),
    "column_matmul": workloads.matmul(29, 1, 5),
    "outer_product": workloads.matmul(9, 14, 1),
    "transposed_matmul": workloads.transposed_matmul(18, 20, 12),
    "batch_matmul": batch_matmul(3, 10, 7, 5),
    "flipped_matmul": flipped_matmul(37, 29, 17),
    "delayed_sums": delayed_sums(37, 29, 13),
    "viewed_matmul": viewed_matmul(17, 24, 12),
    "vector_matmul": vector_matmul(1, 37, 300, transposed=False),
    "vector_rows": vector_matmul(2, 19, 260, transposed=True),
    "channel_means": channel_means(2, 5, 7, 13),
    "scaled_matmul": scaled_matmul(18),
    "two_scaled_matmuls": two_scaled_matmuls(12),
    "gram": workloads.gram(37, 12),
    "gram_of_columns": workloads.gram(32, 40, by_columns=True),
    "symmetric": symmetric_matmul(37, 19),
    "two_grams": two_grams(3, 3, 7),
    "two_matmuls": workloads.double_matmul(8),
    "activated_matmul": workloads.activated_matmul(9, 13, 10),
    "conv1d": convolution((13,), (3,), 5, 6, pad=1),
    "conv2d": convolution((9, 7), (3, 3), 5, 6, pad=1),
    "winograd": convolution((4, 5), (3, 3), 8, 16, pad=1),
    "pointwise": convolution((7, 7), (1, 1), 8, 12),
    "strided": convolution((11, 9), (3, 3), 4, 5, pad=1, stride=2),
    "dilated": convolution((9, 9), (3, 3), 3, 4, pad=2, dilation=2, batch=2),
    "conv3d": convolution((5, 4, 3), (3, 3, 3), 2, 3, pad=1),
    "grouped": first_layout(6, 7, 3, 4, 2),
    "channels_first": workloads.conv2d_bn_relu(1, 7, 7, 5, 6),
    "depthwise": workloads.depthwise_pointwise(1, 6, 7, 5, 8),
    "transposed_conv": workloads.transposed_conv1d(5, 3, 7, 3),
    "max_pool": workloads.max_pool2d(1, 5, 4, 3),
    "wide_max_pool": workloads.max_pool2d(1, 3, 7, 5),
    "average_pool": average_pool(1, 9, 9, 5, 3, 2),
    "gelu": gelu(7, 33),
    "transpose": transposed(13, 17),
    "deep_matmul": workloads.matmul(9, 14, 260),
    "deep_conv": convolution((3, 2), (3, 3), 32, 5, pad=1),
    "longest_sum": workloads.min_reduce(2, 1 << 14),
    "short_sum": workloads.min_reduce(37, 9),
    "long_sum": workloads.min_reduce(5, 100),
    "scalar_sum": workloads.zero_rank_reduce(12),
    "attention": workloads.attention(2, 6, 9, 16),
    "decoder_attention": heads_attend(1, 1, 11, 3, 5, guarded=True),
    "masked_attention": heads_attend(2, 5, 7, 3, 6, masks=((1, 3, 5, 7), (2, 1, 1, 7))),
    "softmax": workloads.softmax(3, 45),
    "layer_norm": workloads.layer_norm(13, 37),
    "matrix_norm": workloads.matrix_norm(3, 5, 7),
}
