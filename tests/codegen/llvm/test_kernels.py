"""Whole kernels against numpy: tiled matmuls and convolutions in every form they are lowered."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.programs import Array, Compiled, conv, empty, matmul, random


def unpacked(b: Array) -> Array:
    """[m/columns, k/inner, inner, columns] as [k, m], in float64."""
    blocks, outer, inner, columns = b.shape
    flat = b.reshape(blocks, outer * inner, columns).transpose(1, 0, 2)
    return flat.reshape(outer * inner, blocks * columns).astype(float)


@pytest.mark.parametrize("local", [True, False], ids=["local tile", "into the output"])
@pytest.mark.parametrize(
    ("rows", "columns", "k", "inner"),
    [(14, 32, 32, 16), (6, 64, 5, 1), (1, 1, 7, 1), (3, 7, 9, 3), (5, 20, 8, 2), (2, 48, 1, 1)],
)
def test_matmul_with_bias_and_relu(
    rows: int, columns: int, k: int, inner: int, local: bool
) -> None:
    n, m = 3 * rows, 2 * columns
    kernel = Compiled(matmul(n, m, k, rows, columns, inner, local=local))
    a, b = random((n, k)), random((2, k // inner, inner, columns), seed=1)
    bias = random((m,), seed=2)
    want = np.maximum(a.astype(float) @ unpacked(b) + bias, 0)
    for threads in (1, 3):
        c = empty((n, m))
        kernel(a, b, bias, c, threads=threads)
        np.testing.assert_allclose(c, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("unrolled_taps", [False, True])
@pytest.mark.parametrize(
    ("size", "channels", "filters", "taps", "stride", "rows", "columns"),
    [
        (14, 5, 32, 3, 1, 14, 32),
        (7, 3, 10, 5, 2, 7, 5),
        (4, 1, 3, 1, 1, 2, 3),
        (6, 8, 24, 3, 2, 3, 24),
    ],
)
def test_convolution(
    size: int, channels: int, filters: int, taps: int, stride: int, rows: int, columns: int,
    unrolled_taps: bool, padded: bool,
) -> None:  # fmt: skip
    source = conv(
        size, channels, filters, taps, stride, rows, columns,
        unrolled_taps=unrolled_taps, padded=padded,
    )  # fmt: skip
    x, w = (random(p.buffer.shape, seed=i) for i, p in enumerate(source.params[:2]))
    y = empty((size, size, filters))
    Compiled(source)(x, w, y, threads=2)
    image = np.pad(x, [(taps // 2,) * 2] * 2 + [(0, 0)]) if padded else x
    weights = w.transpose(1, 2, 3, 0, 4).reshape(taps, taps, channels, filters).astype(float)
    span = (size - 1) * stride + 1
    want = sum(
        image[i : i + span : stride, j : j + span : stride] @ weights[i, j]
        for i in range(taps)
        for j in range(taps)
    )
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)
