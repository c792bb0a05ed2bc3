"""Transposed convolutions: known however they are written, and computed without inserted zeros."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis.strategies import DataObject, integers, sampled_from
from hypothesis.strategies import data as draws

from ansorpy.ir import builders as ap
from ansorpy.ir.analysis.flops import flops
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.rules.algorithms import transposed
from ansorpy.rules.algorithms.subpixel import Subpixel, subpixel
from ansorpy.rules.algorithms.transposed import find_transposed
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import CPU as DEFAULT
from ansorpy.schedule.lowering.program import lower
from tests import workloads
from tests.budget import examples
from tests.properties.test_schedules import inputs_of, interpreted
from tests.rules.algorithms.convolutions import convolution
from tests.rules.algorithms.transposed import by_residue, depthwise, gathered, zeros_inserted
from tests.rules.asking import CPU


@pytest.mark.parametrize(
    ("tensors", "windows"),
    [
        (gathered((4, 5), (4, 4), (2, 2), 1), [(1, 2, -1, 1), (2, 2, -1, 1)]),
        (gathered((4, 5), (3, 2), (2, 1), 0), [(1, 2, -1, 0), (2, 1, -1, 0)]),
        (gathered((4, 3, 2), (3, 3, 3), (2, 2, 2), 1), [(d, 2, -1, 1) for d in (1, 2, 3)]),
        (gathered((6,), (5,), (3,), 2, constant=False), [(1, 3, -1, 2)]),
        (zeros_inserted((4, 5), (4, 4), (2, 2), 1), [(2, 2, -1, 1), (3, 2, -1, 1)]),
        (by_residue(5, 4, 2, 1), [(0, 2, -1, 1)]),
        (by_residue(5, 5, 3, 2), [(0, 3, -1, 2)]),
        (depthwise(5, 7), [(0, 2, -1, 1)]),
        (convolution((8, 8), (3, 3), 4, 4, pad=1), None),
        (convolution((8, 8), (3, 3), 4, 4, stride=2), None),
        (convolution((8, 8), (3, 3), 4, 4, dilation=2), None),
        (workloads.matmul(8, 8, 8), None),
        (workloads.max_pool2d(1, 8, 8, 4), None),
    ],
)
def test_transposed_convolutions_are_known_by_what_they_read(
    tensors: list[Tensor], windows: list[tuple[int, int, int, int]] | None
) -> None:
    found = find_transposed(ComputeDAG.of(tensors))
    laws = [[(w.dim, w.stride, w.step, w.offset) for w in conv.windows] for conv in found]
    assert laws == ([] if windows is None else [windows])


def test_reads_that_obey_no_one_law_are_none() -> None:
    x, w = placeholder((9, 3), name="X"), placeholder((2, 3), name="W")
    k = reduce_axis(2, name="k")

    def summed(y: Expr, c: Expr) -> Expr:
        read = x[y // 2 + k, c] * w[k, c]
        return ap.sum(ap.select((y % 4).equal(0), read, 0.0), axis=k)

    assert not find_transposed(ComputeDAG.of([x, w, compute((16, 3), summed, name="conv")]))


def test_what_a_long_window_reads_is_never_held_at_once() -> None:
    x, w = placeholder((8191,), name="x"), placeholder((4096,), name="w")
    k = reduce_axis(4096, name="k")
    y = compute((4096,), lambda i: ap.sum(x[i + k] * w[k], axis=k), name="y")
    tracemalloc.start()
    assert not find_transposed(ComputeDAG.of([x, w, y]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4096 * 4096


@pytest.mark.parametrize("points", [8, 30])
def test_windows_read_in_blocks_have_the_same_laws(
    points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    definitions = [
        gathered((14, 5), (4, 3), (2, 1), 1),
        zeros_inserted((9,), (2,), (2,), 1),
        by_residue(5, 5, 3, 2),
    ]

    def laws() -> list[list[tuple[int, int, int, int]]]:
        found = [find_transposed(ComputeDAG.of(tensors)) for tensors in definitions]
        return [[(w.dim, w.stride, w.step, w.offset) for w in conv.windows] for [conv] in found]

    known = laws()
    monkeypatch.setattr(transposed, "POINTS", points)
    assert laws() == known


def test_the_reads_of_one_definition_are_listed_once() -> None:
    dag = ComputeDAG.of(gathered((9,), (4,), (2,), 1))
    assert find_transposed(dag) is find_transposed(dag)


def assert_equal(tensors: list[Tensor], seed: int) -> None:
    dag = ComputeDAG.of(tensors)
    [conv] = find_transposed(dag)
    made = subpixel(dag, conv)
    assert made.error == 0.0 and made.dag.args == dag.args
    rng = np.random.default_rng(seed)
    data = {a.name: rng.standard_normal(a.shape).astype(np.float32) for a in dag.args}
    [want] = run_dag(dag, data, dtype=DType.FLOAT64)
    [got] = run_dag(made.dag, data, dtype=DType.FLOAT64)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@examples(40)
@given(
    draw=draws(),
    rank=integers(1, 3),
    pad=integers(0, 1),
    form=sampled_from([gathered, zeros_inserted]),
    seed=integers(0, 2**31),
)
def test_it_computes_the_transposed_convolution(
    draw: DataObject, rank: int, pad: int, form: object, seed: int
) -> None:
    sizes = [draw.draw(integers(3, 5)) for _ in range(rank)]
    strides = [2, *(draw.draw(integers(1, 3)) for _ in range(rank - 1))]
    taps = [draw.draw(integers(2, 5)) for _ in range(rank)]
    assert callable(form)
    tensors = form(sizes, taps, strides, pad)
    # Where every tap meets one output only there is no stride to be seen.
    assume(find_transposed(ComputeDAG.of(tensors)))
    assert_equal(tensors, seed)


@pytest.mark.parametrize("taps", [3, 4, 5, 6, 7])
@pytest.mark.parametrize("stride", [2, 3])
def test_it_computes_what_residues_do(taps: int, stride: int) -> None:
    assert_equal(by_residue(5, taps, stride, 1), taps)
    assert_equal(depthwise(4, 5), taps)


def test_a_second_window_may_have_one_tap_for_each_residue() -> None:
    """Its residues index the data by a quotient that is always 0."""
    x = placeholder((5, 4, 3), name="X")
    w = placeholder((3, 3, 3, 4), name="W", constant=True)
    t, rc = reduce_axis(2, name="t"), reduce_axis(3, name="rc")

    def summed(h: Expr, a: Expr, v: Expr, b: Expr, o: Expr) -> Expr:
        tap, at = a + t * 2, h - t
        met = ap.all_of(at >= 0, at < 5, tap < 3)
        product = x[at, v + b // 3, rc] * w[tap, b % 3, rc, o]
        return ap.sum(ap.select(met, product, 0.0), axis=(t, rc))

    assert_equal([x, w, compute((6, 2, 4, 3, 4), summed, name="conv")], 0)


def test_zeros_are_not_multiplied_and_the_given_form_is_left_out() -> None:
    dag = ComputeDAG.of(gathered((16, 16), (4, 4), (2, 2), 1, 32, 3))
    [made] = Subpixel().rewrite(dag, CPU)
    assert flops(made.dag) < flops(dag) / 3
    strict = SketchSampler(Task(dag, CPU, 2, precision="strict"), DEFAULT)
    assert [d.name for d in strict.definitions] == ["subpixel", "residues"]


@pytest.mark.parametrize("seed", range(6))
def test_its_sketches_compute_the_transposed_convolution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dag = ComputeDAG.of(gathered((5, 6), (4, 3), (2, 2), 1, 16, 17))
    drawn = SketchSampler(Task(dag, CPU, 2), DEFAULT).draw(6, rng)
    sketch = drawn[seed % len(drawn)]
    table = sketch.sample(64, rng)
    state = sketch.resolve(table[sketch.valid(table)][0])
    data = inputs_of(state, rng)
    [want] = run_dag(dag, data)
    [got] = interpreted(lower(state), data)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)
