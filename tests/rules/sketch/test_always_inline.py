"""AlwaysInline: inline cheap stages, or all stages except reductions."""

from __future__ import annotations

import numpy as np
import pytest

import ansorpy as ap
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Function
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.algorithms.winograd import Winograd
from ansorpy.rules.derive import generate_sketches
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import CPU as DEFAULT
from ansorpy.rules.presets import CUDA as DEFAULT_CUDA
from ansorpy.rules.sketch.always_inline import AlwaysInline
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests import workloads
from tests.properties.test_schedules import inputs_of, interpreted
from tests.rules.algorithms.convolutions import convolution
from tests.rules.asking import ALONE, CPU, CUDA, SKIP, ask, derive

CONV = workloads.conv2d_bn_relu(1, 6, 6, 4, 4)
SOFTMAX = workloads.softmax(4, 8)


def test_a_broadcast_addition_is_inlined() -> None:
    [(state, following)] = derive(AlwaysInline(), CONV, "bias_add")
    assert state.stage("bias_add").inlined
    assert following == state.stages[state.index("bias_add") - 1].name


@pytest.mark.parametrize(
    ("stage", "reason"),
    [
        ("pad", "a branch, an expensive call, or reads out of axis order"),
        ("conv", "a reduction would be repeated at every read"),
        ("relu", "an output must be stored"),
        ("data", "an input: there is nothing to inline"),
    ],
)
def test_what_is_not_inlined(stage: str, reason: str) -> None:
    verdict = ask(AlwaysInline(), CONV, stage)
    assert (verdict.answer, verdict.reason) == (SKIP, reason)


def test_what_a_product_would_repeat_is_not_inlined() -> None:
    tensors = workloads.activated_matmul(8, 8, 8)
    verdict = ask(AlwaysInline(evaluated_once=True), tensors, "relu")
    assert (verdict.answer, verdict.reason) == (
        SKIP, "a product would repeat its arithmetic at every read",
    )  # fmt: skip
    assert ask(AlwaysInline(evaluated_once=True), tensors, "shifted").answer is ALONE
    assert ask(AlwaysInline(), tensors, "relu").answer is ALONE


def test_exp_is_too_expensive_to_repeat_unless_told_otherwise() -> None:
    assert ask(AlwaysInline(), SOFTMAX, "exp").answer is SKIP
    assert ask(AlwaysInline(expensive=frozenset()), SOFTMAX, "exp").answer is ALONE
    tanh = AlwaysInline(expensive=frozenset({Function.TANH}))
    assert ask(tanh, SOFTMAX, "exp").answer is ALONE


def test_a_matrix_of_constants_is_inlined_though_it_branches() -> None:
    assert ask(AlwaysInline(), workloads.winograd(1, 4, 4, 2, 2), "B").answer is ALONE


def test_padding_and_exp_are_inlined_where_it_is_not_strict() -> None:
    rule = AlwaysInline(strict=False)
    assert ask(rule, CONV, "pad").answer is ALONE
    assert ask(rule, SOFTMAX, "exp").answer is ALONE
    assert ask(rule, SOFTMAX, "sum").answer is SKIP


def heads(n: int, h: int, dim: int, *, turned: bool = False) -> list[Tensor]:
    """``out[h, i, j]``, a product over k of ``x`` and ``y``, each copied heads first before.

    With *turned* the first operand is given as ``[dim, heads, n]``.
    """
    x = ap.placeholder((dim, h, n) if turned else (n, h, dim), name="x")
    y, k = ap.placeholder((n, h, dim), name="y"), ap.reduce_axis(dim, name="k")
    xt = ap.compute(
        (h, n, dim), lambda a, i, d: x[d, a, i] if turned else x[i, a, d], name="xt"
    )  # fmt: skip
    yt = ap.compute((h, dim, n), lambda a, d, j: y[j, a, d], name="yt")
    out = ap.compute(
        (h, n, n), lambda a, i, j: ap.sum(xt[a, i, k] * yt[a, k, j], axis=k), name="out"
    )
    return [x, y, out]


def sketched(tensors: list[Tensor]) -> set[tuple[bool, bool]]:
    """Whether xt and yt are inlined, in each sketch of the default preset."""
    sampler = SketchSampler(Task(ComputeDAG.of(tensors), CPU, 2), DEFAULT)
    return {(s.stage("xt").inlined, s.stage("yt").inlined) for s in sampler.sketches}


def test_rows_that_a_product_broadcasts_are_read_where_they_are() -> None:
    assert sketched(heads(32, 4, 16)) == {(True, False)}, "vectors run along yt"


def test_a_copy_that_turns_rows_stays() -> None:
    assert sketched(heads(32, 4, 16, turned=True)) == {(False, False)}


@pytest.mark.parametrize("sizes", [(32, 3, 16), (19, 5, 7), (1, 2, 40), (77, 1, 18)])
def test_programs_without_the_copy_compute_the_definition(sizes: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(sum(sizes))
    dag = ComputeDAG.of(heads(*sizes))
    for sketch in SketchSampler(Task(dag, CPU, 2), DEFAULT).draw(3, rng):
        table = sketch.sample(16, rng)
        for row in table[sketch.valid(table)][:2]:
            state = sketch.resolve(row)
            inputs = inputs_of(state, rng)
            [want], [got] = run_dag(dag, inputs), interpreted(lower(state), inputs)
            np.testing.assert_allclose(got, want, atol=1e-4)


def product_of_copies(given: tuple[int, ...]) -> list[Tensor]:
    """``Y[i, j]``, a product over k of ``W`` and a copy of a copy of ``X``, rows or one element."""
    x, w = ap.placeholder(given, name="X"), ap.placeholder((16, 8), name="W")
    a = ap.compute((8, 16), lambda i, k: x[0, i, k] if given else x[()], name="A")
    b = ap.compute((8, 16), lambda i, k: a[i, k], name="B")
    k = ap.reduce_axis(16, name="k")
    return [x, w, ap.compute((8, 8), lambda i, j: ap.sum(b[i, k] * w[k, j], axis=k), name="Y")]


@pytest.mark.parametrize("given", [(1, 8, 16), ()])
def test_a_copy_of_a_copy_is_read_where_it_comes_from(
    given: tuple[int, ...], rng: np.random.Generator
) -> None:
    dag = ComputeDAG.of(product_of_copies(given))
    sketch = SketchSampler(Task(dag, CPU, 2), DEFAULT).draw_one(rng)
    assert sketch.state.stage("A").inlined and sketch.state.stage("B").inlined
    table = sketch.sample(16, rng)
    state = sketch.resolve(table[sketch.valid(table)][0])
    inputs = inputs_of(state, rng)
    [want], [got] = run_dag(dag, inputs), interpreted(lower(state), inputs)
    np.testing.assert_allclose(got, want, atol=1e-4)


def test_a_transform_that_many_blocks_read_is_a_kernel_of_its_own() -> None:
    state = State.initial(workloads.chosen_winograd(1, 8, 8, 16, 16))
    state, cached = state.cache_read("V", "shared", ["M"])
    rule = AlwaysInline(strict=False, most_loads=3)
    reason = "each block that reads an element would recompute it"
    assert ask(rule, state, "V", CUDA).reason == reason
    assert ask(AlwaysInline(strict=False), state, "V", CUDA).answer is ALONE
    assert ask(rule, state, "pad", CUDA).answer is ALONE


@pytest.mark.parametrize("windows", [2, 3])
def test_transforms_of_three_windows_are_not_one_formula(windows: int) -> None:
    """A thread evaluates up to 6 * 6 formulas, but not 6 * 6 * 6."""
    dag = ComputeDAG.of(convolution((8,) * windows, (3,) * windows, 32, 32, pad=1))
    (found, *_) = Winograd(tiles=(4,)).rewrite(dag, CUDA)
    state, *_ = generate_sketches(found.dag, CUDA, DEFAULT_CUDA)
    assert state.stage("conv.V0").inlined is (windows == 2)
    assert not state.stage("conv.V").inlined
    if windows == 3:
        assert state.stage("conv.V1").inlined and not state.stage("conv.Y0").inlined


def test_a_value_is_as_costly_as_what_is_inlined_into_it() -> None:
    x, a = ap.placeholder((6,), name="X"), ap.placeholder((6, 9), name="A")
    e = ap.compute((6,), lambda i: ap.exp(x[i]), name="E")
    t = ap.compute((6,), lambda i: e[i] * 2.0, name="T")
    u = ap.compute((6, 9), lambda i, j: t[i] + a[i, j], name="U")
    rule, state = AlwaysInline(evaluated_once=True), State.initial([x, a, u])
    assert "costly" not in ask(rule, state, "T").reason
    reason = "it is costly, and many elements read it"
    assert ask(rule, state.compute_inline("E"), "T").reason == reason
