"""The operators whose definitions, sketches and programs are kept as text, in small odd sizes."""

from __future__ import annotations

from ansorpy.ir import builders as ap
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from tests import tensor_cores, workloads
from tests.rules.algorithms.convolutions import convolution, first_layout
from tests.rules.gpu_workloads import batch_matmul, gelu, transposed

__all__ = ["OPERATORS"]


def depthwise(n: int, h: int, w: int, c: int) -> list[Tensor]:
    """A 3 x 3 window of each channel of a padded image, channels last."""
    x, f = placeholder((n, h, w, c), name="X"), placeholder((3, 3, c), name="F", constant=True)
    ry, rx = reduce_axis(3, name="ry"), reduce_axis(3, name="rx")

    def bordered(i: Expr, y: Expr, z: Expr, o: Expr) -> Expr:
        inside = ap.all_of(y >= 1, y < h + 1, z >= 1, z < w + 1)
        return ap.select(inside, x[i, y - 1, z - 1, o], 0.0)

    def window(i: Expr, y: Expr, z: Expr, o: Expr) -> Expr:
        return ap.sum(pad[i, y + ry, z + rx, o] * f[ry, rx, o], axis=(ry, rx))

    pad = compute((n, h + 2, w + 2, c), bordered, name="pad")
    return [x, f, compute((n, h, w, c), window, name="conv")]


def gather(rows: int, width: int, count: int) -> list[Tensor]:
    """Rows of a table at indices that are data; negative ones count from the end."""
    table, places = placeholder((rows, width), name="T"), placeholder((count,), "int64", name="I")
    return [
        table,
        places,
        compute((count, width), lambda i, j: table[places[i] % rows, j], name="R"),
    ]


def joined(n: int, left: int, right: int) -> list[Tensor]:
    """Two matrices side by side between columns of zeros."""
    a, b = placeholder((n, left), name="A"), placeholder((n, right), name="B")

    def at(i: Expr, j: Expr) -> Expr:
        second = ap.select(j < left + 1 + right, b[i, j - left - 1], 0.0)
        return ap.select(j < 1, 0.0, ap.select(j < left + 1, a[i, j - 1], second))

    return [a, b, compute((n, left + right + 2), at, name="J")]


def running_sum(n: int, m: int) -> list[Tensor]:
    """The sums of each row's beginnings, each computed separately."""
    x, k = placeholder((n, m), name="X"), reduce_axis(m, name="k")
    return [
        x,
        compute((n, m), lambda i, j: ap.sum(ap.select(k <= j, x[i, k], 0.0), axis=k), name="S"),
    ]


def resized(h: int, w: int, c: int) -> list[Tensor]:
    """The means of neighbouring rows, twice as many of them as before."""
    x = placeholder((h, w, c), name="X")

    def at(y: Expr, z: Expr, o: Expr) -> Expr:
        below = ap.minimum(y // 2 + y % 2, h - 1)
        return (x[y // 2, z, o] + x[below, z, o]) * 0.5

    return [x, compute((2 * h, w, c), at, name="R")]


def mean_pool(n: int, h: int, w: int, c: int) -> list[Tensor]:
    """The mean of each channel over a whole image, channels last."""
    x, ry, rx = (
        placeholder((n, h, w, c), name="X"),
        reduce_axis(h, name="ry"),
        reduce_axis(w, name="rx"),
    )
    total = compute((n, c), lambda i, o: ap.sum(x[i, ry, rx, o], axis=(ry, rx)), name="total")
    return [x, compute((n, c), lambda i, o: total[i, o] * (1.0 / (h * w)), name="mean")]


OPERATORS: dict[str, list[Tensor]] = {
    "matmul": workloads.matmul(37, 53, 29),
    "batch_matmul": batch_matmul(3, 10, 17, 21),
    "dense": workloads.dense(19, 48, 33),
    "row_times_matrix": workloads.matmul(1, 40, 260, constant=True),
    "two_matmuls": workloads.double_matmul(24),
    "int8_matmul": tensor_cores.matmul("int8", 33, 24, 36),
    "float16_matmul": tensor_cores.matmul("float16", 64, 48, 80),
    "large_float16_matmul": tensor_cores.LARGE["even"],
    "conv1d": convolution((13,), (3,), 5, 6, pad=1),
    "conv2d_channels_first": workloads.conv2d_bn_relu(1, 9, 7, 5, 6),
    "conv2d_strided": convolution((11, 9), (3, 3), 4, 5, pad=1, stride=2),
    "conv2d_dilated": convolution((9, 9), (3, 3), 3, 4, pad=2, dilation=2, batch=2),
    "conv2d_grouped": first_layout(6, 7, 3, 4, 2),
    "conv2d_winograd": convolution((13, 11), (3, 3), 48, 32, pad=1),
    "conv3d": convolution((5, 4, 3), (3, 3, 3), 2, 3, pad=1),
    "depthwise": depthwise(1, 6, 7, 19),
    "depthwise_pointwise": workloads.depthwise_pointwise(1, 6, 7, 5, 8),
    "transposed_conv": workloads.transposed_conv1d(5, 3, 7, 3),
    "max_pool": workloads.max_pool2d(1, 5, 4, 3),
    "mean_pool": mean_pool(2, 7, 5, 13),
    "softmax": workloads.softmax(3, 45),
    "layer_norm": workloads.layer_norm(13, 37),
    "matrix_norm": workloads.matrix_norm(3, 5, 7),
    "long_sum": workloads.min_reduce(2, 1 << 12),
    "attention": workloads.attention(2, 6, 9, 16),
    "gelu": gelu(7, 33),
    "transpose": transposed(13, 17),
    "gather": gather(11, 7, 5),
    "joined": joined(5, 6, 3),
    "running_sum": running_sum(3, 17),
    "resized": resized(5, 3, 4),
}
