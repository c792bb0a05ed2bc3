"""Winograd definitions: which convolutions have them, and that they compute the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers, lists, sampled_from

from ansorpy.errors import UsageError
from ansorpy.ir import builders as ap
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.extents import dim
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.rules.algorithms.base import DIRECT
from ansorpy.rules.algorithms.convolution import find_convolutions
from ansorpy.rules.algorithms.winograd import Winograd, winograd
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import CPU as DEFAULT
from ansorpy.schedule.lowering.program import lower
from tests import workloads
from tests.budget import examples
from tests.properties.test_schedules import inputs_of, interpreted
from tests.rules.algorithms.convolutions import convolution, first_layout
from tests.rules.asking import CPU

EVERY = Winograd(offers=100)


def alternatives(tensors: list[Tensor]) -> list[str]:
    return [d.name for d in Winograd().rewrite(ComputeDAG.of(tensors), CPU)]


@pytest.mark.parametrize(
    ("tensors", "found"),
    [
        (convolution((56, 56), (3, 3), 64, 64, pad=1), True),
        (convolution((56, 56), (5, 5), 64, 64, pad=2), True),
        (convolution((56, 56), (3, 1), 64, 64), True),
        (convolution((128,), (3,), 64, 64), True),
        (convolution((8, 8, 8), (3, 3, 3), 64, 64), True),
        (first_layout(30, 30, 64, 64), True),
        (first_layout(30, 30, 64, 64, groups=4), True),
        (convolution((56, 56), (1, 1), 64, 64), False),
        (convolution((56, 56), (3, 3), 64, 64, stride=2), False),
        (convolution((56, 56), (3, 3), 64, 64, dilation=2), True),
        (convolution((56, 56), (3, 3), 64, 64, constant=False), False),
        (convolution((224, 224), (3, 3), 1, 2), False),  # transforms cost more than they save
        (workloads.matmul(64, 64, 64, constant=True), False),
        (workloads.max_pool2d(1, 8, 8, 4), False),
    ],
)
def test_which_definitions_have_one(tensors: list[Tensor], found: bool) -> None:
    assert bool(alternatives(tensors)) is found


def test_a_convolution_is_known_by_its_reads() -> None:
    [conv] = find_convolutions(ComputeDAG.of(first_layout(9, 7, 5, 6, groups=2)))
    assert [(w.dim, w.stride, w.dilation) for w in conv.windows] == [(3, 1, 1), (4, 1, 1)]
    assert [a.name for a in conv.kept] == ["n", "g"]
    assert [a.name for a in conv.channels] == ["rc"]
    assert [a.name for a in conv.out_channels] == ["o"]


@examples(30)
@given(
    sizes=lists(integers(3, 9), min_size=1, max_size=3),
    taps=sampled_from([2, 3]),
    channels=sampled_from([(1, 1), (5, 3), (4, 7)]),
    pad=integers(0, 1),
    dilation=integers(1, 3),
    pick=integers(0, 1000),
    seed=integers(0, 2**31),
)
def test_every_tile_computes_the_convolution(
    sizes: list[int], taps: int, channels: tuple[int, int], pad: int, dilation: int, pick: int,
    seed: int,
) -> None:  # fmt: skip
    ci, co = channels
    sizes = [size + (dilation - 1) * (taps - 1) for size in sizes]
    kernel, batch = [taps] * len(sizes), 1 + seed % 2
    tensors = convolution(sizes, kernel, ci, co, batch=batch, pad=pad, dilation=dilation)
    dag = ComputeDAG.of(tensors)
    [conv] = find_convolutions(dag)
    options = sorted(EVERY.tiles_of(conv))
    made = winograd(dag, conv, options[pick % len(options)])
    rng = np.random.default_rng(seed)
    data = {a.name: rng.standard_normal(a.shape).astype(np.float32) for a in dag.args}
    [want] = run_dag(dag, data, dtype=DType.FLOAT64)
    [wide] = run_dag(made.dag, data, dtype=DType.FLOAT64)
    np.testing.assert_allclose(wide, want, rtol=1e-9, atol=1e-9)
    [got] = run_dag(made.dag, data)
    scale = float(np.abs(want).max()) or 1.0
    assert np.abs(got - want).max() / scale <= made.error + 2.0**-23 * 64


@pytest.mark.parametrize("seed", range(4))
def test_sketches_of_all_definitions_compute_the_convolution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dag = ComputeDAG.of(convolution((7, 9), (3, 3), 32, 48, pad=1, dilation=1 + seed // 3))
    sampler = SketchSampler(Task(dag, CPU, 2), DEFAULT)
    assert len(sampler.definitions) > 1
    drawn = [s for s in sampler.draw(12, rng) if s.definition != DIRECT]
    sketch = drawn[seed % len(drawn)]
    table = sketch.sample(64, rng)
    state = sketch.resolve(table[sketch.valid(table)][0])
    data = inputs_of(state, rng)
    [want] = run_dag(dag, data)
    [got] = interpreted(lower(state), data)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


def test_strict_precision_leaves_the_given_definition_only() -> None:
    dag = ComputeDAG.of(convolution((56, 56), (3, 3), 64, 64, pad=1))
    strict = SketchSampler(Task(dag, CPU, 1, precision="strict"), DEFAULT)
    assert [d.name for d in strict.definitions] == [DIRECT]
    assert len(SketchSampler(Task(dag, CPU, 1), DEFAULT).definitions) > 1
    with pytest.raises(UsageError, match="precision"):
        Task(dag, CPU, 1, precision="loose")  # type: ignore[arg-type]


def test_a_convolution_is_found_however_its_windows_are_written() -> None:
    x, w = placeholder((8, 8, 4), name="x"), placeholder((3, 3, 4, 4), name="w", constant=True)
    r, s, c = (reduce_axis(n, name=name) for n, name in ((3, "r"), (3, "s"), (4, "c")))

    def at(h: Expr, v: Expr, f: Expr) -> Expr:
        return ap.sum(x[h // 2 * 2 + h % 2 + r, v + s, c] * w[r, s, c, f], axis=(r, s, c))

    [conv] = find_convolutions(ComputeDAG([compute((6, 6, 4), at, name="y")], [x, w]))
    assert [(window.stride, window.dilation) for window in conv.windows] == [(1, 1), (1, 1)]


def test_a_sum_of_products_of_scalars_is_no_convolution() -> None:
    x, w, k = placeholder((), name="x"), placeholder((), name="w"), reduce_axis(4, name="k")

    def of(other: Tensor) -> ComputeDAG:
        return ComputeDAG([compute((3,), lambda i: ap.sum(x[()] * other[()], axis=k), name="y")])

    assert not find_convolutions(of(w)) and not find_convolutions(of(x))


@pytest.mark.parametrize("pad", [0, 1])
def test_the_definitions_hold_for_all_sizes(pad: int) -> None:
    h, w = dim("h", 8, 64, step=4), dim("w", 3, 64)
    dag = ComputeDAG.of(convolution((2 * (h // 4), w), (3, 3), 4, 8, pad=pad))
    made, rng = list(Winograd().rewrite_for_all(dag, CPU)), np.random.default_rng(pad)
    assert len({d.name for d in made}) == len(made) > 1
    for sizes in ({dag.dims[0]: 12, dag.dims[1]: 5}, {dag.dims[0]: 8, dag.dims[1]: 13}):
        fixed = dag_at(dag, sizes)
        given = {a.name: rng.standard_normal(a.shape).astype(np.float32) for a in fixed.args}
        (want,) = run_dag(fixed, given)
        for definition in made[:2]:
            (got,) = run_dag(dag_at(definition.dag, sizes), given)
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)
