"""Convolutions that skip taps beyond the border: the same sums, fewer of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers, lists, sampled_from

from ansorpy.ir import builders as ap
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.ir.text.printer import text
from ansorpy.rules.algorithms.clipped import Clipped
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import CPU as DEFAULT
from ansorpy.schedule.lowering.program import lower
from ansorpy.target import Target
from tests.budget import examples
from tests.rules.algorithms.convolutions import convolution
from tests.run_native import run_native

CPU = Target.parse("x86-64-v4")


def rewritten(
    sizes: list[int], taps: int, *, pad: int, stride: int = 1, dilation: int = 1
) -> list[ComputeDAG]:
    kernel = [taps] * len(sizes)
    tensors = convolution(sizes, kernel, 3, 5, pad=pad, stride=stride, dilation=dilation)
    dag = ComputeDAG.of(tensors)
    return [dag, *(d.dag for d in Clipped().rewrite(dag, CPU))]


@examples(40)
@given(
    sizes=lists(integers(3, 9), min_size=2, max_size=3),
    taps=sampled_from([2, 3, 5]),
    pad=integers(1, 2),
    stride=integers(1, 3),
    dilation=integers(1, 2),
    seed=integers(0, 2**31),
)
def test_the_sums_are_those_of_the_definition(
    sizes: list[int], taps: int, pad: int, stride: int, dilation: int, seed: int
) -> None:
    sizes = [max(size, dilation * (taps - 1) + 1) for size in sizes]
    dag, *made = rewritten(sizes, taps, pad=pad, stride=stride, dilation=dilation)
    rng = np.random.default_rng(seed)
    data = {a.name: rng.standard_normal(a.shape).astype(np.float32) for a in dag.args}
    [want] = run_dag(dag, data, dtype=DType.FLOAT64)
    for other in made:
        [got] = run_dag(other, data, dtype=DType.FLOAT64)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_the_last_window_stays_padded() -> None:
    [_, made] = rewritten([5, 6], 3, pad=1)
    rows, conv = (line for line in text(made).splitlines() if line.startswith("conv"))
    assert rows.startswith("conv.rows[n, y0, y1, c] = select(y1 >= 1 and y1 < 7, X[n, y0, y1 - 1")
    assert "select(h0 + k0 >= 1 and h0 + k0 < 6, conv.rows[n, h0 + k0 - 1, h1 + k1, rc]" in conv
    assert rows.endswith("float32[1, 5, 8, 3]")


@pytest.mark.parametrize(
    ("sizes", "pad"), [([5, 5], 0), ([60, 5], 1), ([7], 1)], ids=["unpadded", "large", "1-d"]
)
def test_nothing_is_offered_where_little_would_be_saved(sizes: list[int], pad: int) -> None:
    assert len(rewritten(sizes, 3, pad=pad)) == 1


@pytest.mark.parametrize("seed", range(4))
def test_its_sketches_compute_the_convolution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dag = ComputeDAG.of(convolution((5, 7), (3, 3), 16, 48, pad=1))
    sampler = SketchSampler(Task(dag, CPU, 2), DEFAULT)
    drawn = [s for s in sampler.draw(24, rng) if s.definition == "clipped"]
    sketch = drawn[seed % len(drawn)]
    table = sketch.sample(64, rng)
    state = sketch.resolve(table[sketch.valid(table)][0])
    data = {a.name: rng.standard_normal(a.shape).astype(np.float32) for a in state.definition.args}
    [got], [want] = run_native(lower(state), data), run_dag(dag, data)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def self_correlation(n: int, taps: int, pad: int) -> ComputeDAG:
    """An image correlated with its own corner, both read from the padded image."""
    x = placeholder((n, n), name="X")

    def padded(i: Expr, j: Expr) -> Expr:
        inside = ap.all_of(i >= pad, i < n + pad, j >= pad, j < n + pad)
        return ap.select(inside, x[i - pad, j - pad], 0.0)

    p = compute((n + 2 * pad,) * 2, padded, name="pad")
    ky, kx = reduce_axis(taps, name="ky"), reduce_axis(taps, name="kx")
    out = compute(
        (n + 2 * pad - taps + 1,) * 2,
        lambda i, j: ap.sum(p[i + ky, j + kx] * p[ky, kx], axis=(ky, kx)),
        name="conv",
    )
    return ComputeDAG.of([x, out])


@pytest.mark.parametrize(("n", "taps", "pad"), [(8, 3, 1), (5, 4, 2)])
def test_a_tensor_may_be_its_own_weight(
    n: int, taps: int, pad: int, rng: np.random.Generator
) -> None:
    dag = self_correlation(n, taps, pad)
    made = [d.dag for a in DEFAULT.algorithms for d in a.rewrite(dag, CPU)]
    assert made
    data = {"X": rng.standard_normal((n, n))}
    [want] = run_dag(dag, data, dtype=DType.FLOAT64)
    for other in made:
        [got] = run_dag(other, data, dtype=DType.FLOAT64)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_a_window_that_reads_no_data_stays_padded() -> None:
    x, w = placeholder((4, 4, 3), name="X"), placeholder((2, 2, 3, 5), name="W")
    p = compute(
        (4, 4, 3), lambda i, j, c: ap.select(ap.all_of(i >= 4, j >= 1), x[i, j, c], 0.0), name="pad"
    )
    ky, kx, rc = (reduce_axis(e, name=a) for e, a in ((2, "ky"), (2, "kx"), (3, "rc")))
    conv = compute(
        (3, 3, 5),
        lambda i, j, o: ap.sum(p[i + ky, j + kx, rc] * w[ky, kx, rc, o], axis=(ky, kx, rc)),
        name="conv",
    )
    assert not list(Clipped().rewrite(ComputeDAG.of([x, w, conv]), CPU))
