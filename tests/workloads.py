"""The compute definitions the tests share: small functions that return ``[inputs..., output]``.

Defaults are the shapes TVM's own sketch tests use; tests that run programs pass smaller ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansorpy.ir import builders as ap
from ansorpy.ir.attrs import Attrs
from ansorpy.ir.expr import Expr, as_expr
from ansorpy.ir.extents import Extent
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, placeholder, reduce_axis

# F(4x4, 3x3): transforms of 1-d Winograd at the points 0, 1, -1, 2, -2 and infinity.
WINOGRAD_B = (
    (4, 0, 0, 0, 0, 0),
    (0, -4, 4, -2, 2, 4),
    (-5, -4, -4, -1, -1, 0),
    (0, 1, -1, 2, -2, -5),
    (1, 1, 1, 1, 1, 0),
    (0, 0, 0, 0, 0, 1),
)
WINOGRAD_A = (
    (1, 0, 0, 0), (1, 1, 1, 1), (1, -1, 1, -1), (1, 2, 4, 8), (1, -2, 4, -8), (0, 0, 0, 1),
)  # fmt: skip


def matmul(
    n: Extent = 512, m: Extent = 512, k: Extent = 512, *, constant: bool = False,
    dtype: str = "float32",
    attrs: Attrs | None = None,
) -> list[Tensor]:  # fmt: skip
    """``C[n, m] = A[n, k] B[k, m]``; *constant* declares B a constant."""
    a = placeholder((n, k), dtype, name="A")
    b = placeholder((k, m), dtype, name="B", constant=constant)
    r = reduce_axis(k, name="k")

    def product(i: Expr, j: Expr) -> Expr:
        return ap.sum(a[i, r] * b[r, j], axis=r)

    return [a, b, compute((n, m), product, name="C", attrs=attrs)]


def matmul_relu(n: int, m: int, k: int) -> list[Tensor]:
    """``D = relu(A B)`` of a constant B."""
    a, b, c = matmul(n, m, k, constant=True)
    return [a, b, compute((n, m), lambda i, j: ap.maximum(c[i, j], 0.0), name="D")]


def dense(n: int, m: int, k: int) -> list[Tensor]:
    """``D = relu(A B + bias)`` of a constant B and bias."""
    a, b, c = matmul(n, m, k, constant=True)
    bias = placeholder((m,), name="bias", constant=True)
    return [a, b, bias, compute((n, m), lambda i, j: ap.maximum(c[i, j] + bias[j], 0.0), name="D")]


def transposed_matmul(n: int = 128, m: int = 128, k: int = 64) -> list[Tensor]:
    """``C[n, m] = A[n, k] B[m, k]``: both operands are read along the reduction."""
    a, b = placeholder((n, k), name="A"), placeholder((m, k), name="B")
    r = reduce_axis(k, name="k")
    return [a, b, compute((n, m), lambda i, j: ap.sum(a[i, r] * b[j, r], axis=r), name="C")]


def gram(n: int, k: int, *, by_columns: bool = False) -> list[Tensor]:
    """The products of all rows, or columns, of one matrix with each other."""
    a, r = placeholder((k, n) if by_columns else (n, k), name="A"), reduce_axis(k, name="k")

    def at(i: Expr) -> Expr:
        return a[r, i] if by_columns else a[i, r]

    return [a, compute((n, n), lambda i, j: ap.sum(at(i) * at(j), axis=r), name="C")]


def double_matmul(n: int = 512) -> list[Tensor]:
    """``E = (A B) C``, square."""
    a, b, d = matmul(n, n, n)
    c = placeholder((n, n), name="C2")
    r = reduce_axis(n, name="k2")
    d = _renamed(d, "D")
    return [a, b, c, compute((n, n), lambda i, j: ap.sum(d[i, r] * c[r, j], axis=r), name="E")]


def _renamed(tensor: Tensor, name: str) -> ComputeOp:
    assert isinstance(tensor, ComputeOp)
    return ComputeOp(name, tensor.shape, tensor.axes, tensor.reduce_axes, tensor.body, tensor.attrs)


def conv2d_bn_relu(
    n: int = 1, h: int = 56, w: int = 56, ci: int = 512, co: int = 512,
    kernel: int = 3, stride: int = 1, padding: int = 1,
) -> list[Tensor]:  # fmt: skip
    """Padded NCHW convolution, bias, batch-norm scale and offset, relu: six stages."""
    data = placeholder((n, ci, h, w), name="data")
    weight = placeholder((co, ci, kernel, kernel), name="weight")
    bias, scale, offset = (placeholder((co, 1, 1), name=x) for x in ("bias", "scale", "offset"))
    oh, ow = ((x + 2 * padding - kernel) // stride + 1 for x in (h, w))
    pad = _padded(data, padding)
    rc, ry, rx = (reduce_axis(x, name=y) for x, y in ((ci, "rc"), (kernel, "ry"), (kernel, "rx")))
    shape = (n, co, oh, ow)

    def conv_at(nn: Expr, ff: Expr, yy: Expr, xx: Expr) -> Expr:
        inside = pad[nn, rc, yy * stride + ry, xx * stride + rx]
        return ap.sum(inside * weight[ff, rc, ry, rx], axis=(rc, ry, rx))

    conv = compute(shape, conv_at, name="conv")
    added = compute(shape, lambda i, f, y, x: conv[i, f, y, x] + bias[f, 0, 0], name="bias_add")
    scaled = compute(shape, lambda i, f, y, x: added[i, f, y, x] * scale[f, 0, 0], name="bn_mul")
    moved = compute(shape, lambda i, f, y, x: scaled[i, f, y, x] + offset[f, 0, 0], name="bn_add")
    relu = compute(shape, lambda i, f, y, x: ap.maximum(moved[i, f, y, x], 0.0), name="relu")
    return [data, weight, bias, scale, offset, relu]


def _padded(data: Tensor, padding: int, value: float = 0.0) -> Tensor:
    """NCHW *data* with a border of *value*."""
    n, c, h, w = data.shape
    if padding == 0:
        return data

    def at(i: Expr, j: Expr, y: Expr, x: Expr) -> Expr:
        inside = ap.all_of(y >= padding, y < h + padding, x >= padding, x < w + padding)
        return ap.select(inside, data[i, j, y - padding, x - padding], value)

    return compute((n, c, h + 2 * padding, w + 2 * padding), at, name="pad")


def transposed_conv1d(
    w: int = 8, ci: int = 16, co: int = 8, kernel: int = 4, stride: int = 2, padding: int = 1
) -> list[Tensor]:
    """``Y[i * stride + a]``: the sum over the taps that reach residue ``a``."""
    x = placeholder((w, ci), name="X")
    weight = placeholder((kernel, ci, co), name="W", constant=True)
    taps = -(-kernel // stride)
    t, c = reduce_axis(taps, name="t"), reduce_axis(ci, name="c")
    wide = taps - 1
    pad = compute(
        (w + 2 * wide + 1, ci),
        lambda i, j: ap.select((i >= wide) & (i < w + wide), x[i - wide, j], 0.0), name="pad",
    )  # fmt: skip

    def at(i: Expr, a: Expr, o: Expr) -> Expr:
        tap, place = (a + padding) % stride + t * stride, i + (a + padding) // stride - t + wide
        product = pad[place, c] * weight[tap, c, o]
        guarded = ap.select(tap < kernel, product, 0.0) if kernel % stride else product
        return ap.sum(guarded, axis=(t, c))

    rows = ((w - 1) * stride - 2 * padding + kernel) // stride
    return [x, weight, compute((rows, stride, co), at, name="Y", names=("i", "a", "o"))]


def max_pool2d(
    n: int = 1, h: int = 56, w: int = 56, c: int = 512, padding: int = 1
) -> list[Tensor]:
    """NCHW maximum over 2 x 2 windows, stride 1."""
    data = placeholder((n, c, h, w), name="data")
    pad = _padded(data, padding, float("-inf"))
    ry, rx = reduce_axis(2, name="ry"), reduce_axis(2, name="rx")
    shape = (n, c, h + 2 * padding - 1, w + 2 * padding - 1)
    pool = compute(
        shape, lambda i, j, y, x: ap.max(pad[i, j, y + ry, x + rx], axis=(ry, rx)), name="pool"
    )
    return [data, pool]


def min_reduce(n: int = 10, m: int = 1024) -> list[Tensor]:
    """``B[n] = min over m of A[n, m]``."""
    a = placeholder((n, m), name="A")
    k = reduce_axis(m, name="k")
    return [a, compute((n,), lambda i: ap.min(a[i, k], axis=k), name="B")]


def softmax(*shape: int) -> list[Tensor]:
    """Over the last axis, in the four stages of the original: max, exp, sum, norm."""
    shape = shape or (1, 1024)
    a = placeholder(shape, name="A")
    k1, k2 = reduce_axis(shape[-1], name="k1"), reduce_axis(shape[-1], name="k2")
    lead, names = shape[:-1], tuple(f"i{d}" for d in range(len(shape)))
    largest = compute(lead, lambda *i: ap.max(a[(*i, k1)], axis=k1), name="max", names=names[:-1])
    exp = compute(shape, lambda *i: ap.exp(a[i] - largest[i[:-1]]), name="exp", names=names)
    total = compute(lead, lambda *i: ap.sum(exp[(*i, k2)], axis=k2), name="sum", names=names[:-1])
    norm = compute(shape, lambda *i: exp[i] / total[i[:-1]], name="norm", names=names)
    return [a, norm]


def zero_rank_reduce(n: int = 128) -> list[Tensor]:
    """The sum of a vector, a tensor without dimensions."""
    a = placeholder((n,), name="A")
    k = reduce_axis(n, name="k")
    return [a, compute((), lambda: ap.sum(a[k], axis=k), name="B", names=())]


def winograd(
    n: int = 1, h: int = 28, w: int = 28, ci: int = 128, co: int = 128, padding: int = 1
) -> list[Tensor]:
    """NHWC 3 x 3 convolution by Winograd F(4, 3) with the weights transformed beforehand."""
    m, alpha = 4, 6
    data = placeholder((n, h, w, ci), name="data")
    weight = placeholder((alpha, alpha, ci, co), name="weight")
    oh, ow = h + 2 * padding - 2, w + 2 * padding - 2
    nh, nw = -(-oh // m), -(-ow // m)
    tiles = n * nh * nw
    size = (nh * m + 2, nw * m + 2)
    pad = compute(
        (n, *size, ci),
        lambda i, y, x, c: ap.select(
            ap.all_of(y >= padding, y < h + padding, x >= padding, x < w + padding),
            data[i, y - padding, x - padding, c], 0.0,
        ),
        name="pad",
    )  # fmt: skip
    tile = compute(
        (alpha, alpha, tiles, ci),
        lambda e, v, p, c: pad[p // (nh * nw), p // nw % nh * m + e, p % nw * m + v, c],
        name="input_tile",
    )
    b, a = _matrix(WINOGRAD_B, "B"), _matrix(WINOGRAD_A, "A")
    r1, r2 = reduce_axis(alpha, name="r1"), reduce_axis(alpha, name="r2")
    packed = compute(
        (alpha, alpha, tiles, ci),
        lambda e, v, p, c: ap.sum(tile[r1, r2, p, c] * b[r1, e] * b[r2, v], axis=(r1, r2)),
        name="data_pack", attrs=Attrs(unroll_axes=("e", "v", "r1", "r2")),
    )  # fmt: skip
    rc = reduce_axis(ci, name="rc")
    gemm = compute(
        (alpha, alpha, tiles, co),
        lambda e, v, p, c: ap.sum(packed[e, v, p, rc] * weight[e, v, rc, c], axis=rc),
        name="bgemm",
    )
    r3, r4 = reduce_axis(alpha, name="r3"), reduce_axis(alpha, name="r4")
    inverse = compute(
        (m, m, tiles, co),
        lambda vh, vw, p, c: ap.sum(gemm[r3, r4, p, c] * a[r3, vh] * a[r4, vw], axis=(r3, r4)),
        name="inverse", attrs=Attrs(unroll_axes=("vh", "vw", "r3", "r4")),
    )  # fmt: skip
    output = compute(
        (n, oh, ow, co),
        lambda i, y, x, c: inverse[y % m, x % m, i * nh * nw + y // m * nw + x // m, c],
        name="output",
    )
    return [data, weight, output]


def _matrix(rows: tuple[tuple[int, ...], ...], name: str) -> ComputeOp:
    """A constant matrix as nested selections, which unrolling the indices folds away."""

    def at(i: Expr, j: Expr) -> Expr:
        value: Expr = as_expr(0.0)
        for y, row in enumerate(rows):
            for x, number in enumerate(row):
                if number:
                    value = ap.select(i.equal(y) & j.equal(x), float(number), value)
        return value

    return compute((len(rows), len(rows[0])), at, name=name)


def layer_norm(*shape: int) -> list[Tensor]:
    """Over the last axis, as ONNX exporters write it: mean, difference, variance, scale, shift."""
    x = placeholder(shape, name="X")
    lead, n, names = shape[:-1], shape[-1], tuple(f"i{d}" for d in range(len(shape)))
    gamma, beta = (placeholder((n,), name=name, constant=True) for name in ("gamma", "beta"))
    k1, k2 = reduce_axis(n, name="k1"), reduce_axis(n, name="k2")
    total = compute(lead, lambda *i: ap.sum(x[(*i, k1)], axis=k1), name="total", names=names[:-1])
    mean = compute(lead, lambda *i: total[i] * (1.0 / n), name="mean", names=names[:-1])
    apart = compute(shape, lambda *i: x[i] - mean[i[:-1]], name="apart", names=names)
    squares = compute(
        lead, lambda *i: ap.sum(apart[(*i, k2)] * apart[(*i, k2)], axis=k2),
        name="squares", names=names[:-1],
    )  # fmt: skip
    spread = compute(
        lead, lambda *i: 1.0 / ap.sqrt(squares[i] * (1.0 / n) + 1e-5),
        name="spread", names=names[:-1],
    )  # fmt: skip
    norm = compute(
        shape, lambda *i: apart[i] * spread[i[:-1]] * gamma[i[-1]] + beta[i[-1]],
        name="norm", names=names,
    )  # fmt: skip
    return [x, gamma, beta, norm]


def matrix_norm(batch: int = 16, n: int = 256, m: int = 256) -> list[Tensor]:
    """The square root of each matrix's sum of squares."""
    x = placeholder((batch, n, m), name="X")
    r, c = reduce_axis(n, name="r"), reduce_axis(m, name="c")
    squares = compute(
        (batch,), lambda b: ap.sum(x[b, r, c] * x[b, r, c], axis=(r, c)), name="squares"
    )
    return [x, compute((batch,), lambda b: ap.sqrt(squares[b]), name="norm")]


def chosen_winograd(n: int, h: int, w: int, ci: int, co: int) -> list[Tensor]:
    """Padded NHWC 3x3 convolution, bias and relu by F(2x2, 3x3), rows chosen by selects."""
    th, tw = -(-h // 2), -(-w // 2)
    x = placeholder((n, h, w, ci), name="X")
    f = placeholder((3, 3, ci, co), name="F", constant=True)
    bias = placeholder((co,), name="bias", constant=True)

    def padded(i: Expr, y: Expr, z: Expr, c: Expr) -> Expr:
        inside = (y >= 1) & (y < h + 1) & (z >= 1) & (z < w + 1)
        return ap.select(inside, x[i, y - 1, z - 1, c], 0.0)

    pad = compute((n, 2 * th + 2, 2 * tw + 2, ci), padded, name="pad")
    t = compute(
        (n, th, tw, 4, 4, ci),
        lambda i, y, z, u, v, c: _rows(u, _INPUT, lambda k: pad[i, y * 2 + k, z * 2 + v, c]),
        name="T",
    )
    v_ = compute(
        (4, 4, n, th, tw, ci),
        lambda u, v, i, y, z, c: _rows(v, _INPUT, lambda k: t[i, y, z, u, k, c]),
        name="V",
    )
    g = compute(
        (4, 3, ci, co),
        lambda u, s, c, o: _rows(u, _KERNEL, lambda k: f[k, s, c, o]),
        name="G",
    )
    u_ = compute(
        (4, 4, ci, co),
        lambda u, v, c, o: _rows(v, _KERNEL, lambda k: g[u, k, c, o]),
        name="U",
    )
    r = reduce_axis(ci, name="r")
    m = compute(
        (4, 4, n, th, tw, co),
        lambda u, v, i, y, z, o: ap.sum(v_[u, v, i, y, z, r] * u_[u, v, r, o], axis=r),
        name="M",
    )
    first = compute(
        (n, th, tw, 2, 4, co),
        lambda i, y, z, a, v, o: _rows(a, _OUTPUT, lambda k: m[k, v, i, y, z, o]),
        name="Y1",
    )
    second = compute(
        (n, th, tw, 2, 2, co),
        lambda i, y, z, a, b, o: _rows(b, _OUTPUT, lambda k: first[i, y, z, a, k, o]),
        name="Y2",
    )
    conv = compute(
        (n, h, w, co), lambda i, y, z, o: second[i, y // 2, z // 2, y % 2, z % 2, o], name="conv"
    )
    out = compute(
        (n, h, w, co), lambda i, y, z, o: ap.maximum(conv[i, y, z, o] + bias[o], 0.0), name="out"
    )
    return [x, f, bias, out]


_INPUT = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))
_KERNEL = ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1))
_OUTPUT = ((1, 1, 1, 0), (0, 1, -1, -1))


def _rows(index: Expr, matrix: Sequence[Sequence[float]], get: Callable[[int], Expr]) -> Expr:
    """Row *index* of *matrix* times the vector *get*, zeros left out."""
    read = [get(k) for k in range(len(matrix[0]))]
    sums = [_sum([x * float(c) for c, x in zip(row, read, strict=True) if c]) for row in matrix]
    chosen = sums[-1]
    for n in reversed(range(len(sums) - 1)):
        chosen = ap.select(index.equal(n), sums[n], chosen)
    return chosen


def _sum(terms: Sequence[Expr]) -> Expr:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def depthwise_pointwise(n: int, h: int, w: int, ci: int, co: int) -> list[Tensor]:
    """A 3x3 depthwise convolution (padding 1) and relu, then a 1x1 convolution; NHWC."""
    x = placeholder((n, h, w, ci), name="X")
    f = placeholder((3, 3, ci), name="F", constant=True)
    g = placeholder((ci, co), name="G", constant=True)

    def padded(i: Expr, y: Expr, z: Expr, c: Expr) -> Expr:
        inside = (y >= 1) & (y < h + 1) & (z >= 1) & (z < w + 1)
        return ap.select(inside, x[i, y - 1, z - 1, c], 0.0)

    pad = compute((n, h + 2, w + 2, ci), padded, name="pad")
    ry, rx, rc = (reduce_axis(e, name=a) for e, a in ((3, "ry"), (3, "rx"), (ci, "rc")))
    deep = compute(
        (n, h, w, ci),
        lambda i, y, z, c: ap.sum(pad[i, y + ry, z + rx, c] * f[ry, rx, c], axis=(ry, rx)),
        name="deep",
    )
    relu = compute((n, h, w, ci), lambda *i: ap.maximum(deep[i], 0.0), name="relu")
    out = compute(
        (n, h, w, co), lambda i, y, z, o: ap.sum(relu[i, y, z, rc] * g[rc, o], axis=rc), name="out"
    )
    return [x, f, g, out]


def activated_matmul(n: int, k: int, m: int) -> list[Tensor]:
    """``relu(X * scale + shift) W``: a scale and an activation in front of a product."""
    x = placeholder((n, k), name="X")
    w = placeholder((k, m), name="W", constant=True)
    scale, shift = (placeholder((k,), name=name, constant=True) for name in ("scale", "shift"))
    scaled = compute((n, k), lambda i, c: x[i, c] * scale[c], name="scaled")
    shifted = compute((n, k), lambda i, c: scaled[i, c] + shift[c], name="shifted")
    relu = compute((n, k), lambda i, c: ap.maximum(shifted[i, c], 0.0), name="relu")
    rc = reduce_axis(k, name="rc")
    out = compute((n, m), lambda i, o: ap.sum(relu[i, rc] * w[rc, o], axis=rc), name="out")
    return [x, w, scale, shift, out]


def attention(heads: int, rows: int, keys: int, dim: int) -> list[Tensor]:
    """``softmax(Q K^T / sqrt(dim)) V`` a head, inputs ``[heads, ., dim]``."""
    q = placeholder((heads, rows, dim), name="Q")
    k = placeholder((heads, keys, dim), name="K")
    v = placeholder((heads, keys, dim), name="V")
    axes = ((dim, "d"), (keys, "a"), (keys, "b"), (keys, "c"))
    rd, r1, r2, r3 = (reduce_axis(extent, name=a) for extent, a in axes)
    scores = compute(
        (heads, rows, keys), lambda h, i, j: ap.sum(q[h, i, rd] * k[h, j, rd], axis=rd), name="S"
    )
    scaled = compute((heads, rows, keys), lambda *i: scores[i] * float(dim**-0.5), name="scaled")
    top = compute((heads, rows), lambda h, i: ap.max(scaled[h, i, r1], axis=r1), name="top")
    e = compute((heads, rows, keys), lambda h, i, j: ap.exp(scaled[h, i, j] - top[h, i]), name="E")
    total = compute((heads, rows), lambda h, i: ap.sum(e[h, i, r2], axis=r2), name="total")
    mixed = compute(
        (heads, rows, dim), lambda h, i, j: ap.sum(e[h, i, r3] * v[h, r3, j], axis=r3), name="P"
    )
    out = compute((heads, rows, dim), lambda h, i, j: mixed[h, i, j] / total[h, i], name="out")
    return [q, k, v, out]
