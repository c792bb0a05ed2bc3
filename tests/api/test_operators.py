"""A schedule made by hand runs, and computes what its definition says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ansorpy as ap
from ansorpy.errors import ScheduleError, UsageError
from ansorpy.ir.expr import Expr
from tests.workloads import matmul_relu


def scheduled(n: int, m: int, k: int) -> ap.State:
    state, (_, i1) = ap.State.initial(matmul_relu(n, m, k)).split("C", "i", (4,))
    state, (j0, j1) = state.split("C", "j", (16,))
    state = state.reorder("C", ["i.0", j0, "k", i1, j1])
    state = state.unroll("C", i1).vectorize("C", [j1]).pack("C", "B")
    return state.parallel("D", ["i"]).vectorize("D", ["j"])


@pytest.mark.parametrize("shape", [(8, 32, 16), (7, 19, 5), (1, 1, 1)])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_matmul_scheduled_by_hand_runs(shape: tuple[int, int, int], threads: int) -> None:
    n, m, k = shape
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, k)).astype(np.float32)
    b = rng.standard_normal((k, m)).astype(np.float32)
    kernel = ap.build(scheduled(n, m, k), threads=threads).bind(B=b)
    np.testing.assert_allclose(kernel(a), np.maximum(a @ b, 0), rtol=1e-5, atol=1e-5)


def test_tensors_are_built_as_they_are_written(rng: np.random.Generator) -> None:
    tensors = matmul_relu(3, 5, 7)
    a, b = (rng.standard_normal(t.shape, dtype=np.float32) for t in tensors[:2])
    kernel = ap.build(tensors).bind(B=b)
    np.testing.assert_allclose(kernel(a), np.maximum(a @ b, 0), rtol=1e-5, atol=1e-5)
    with pytest.raises(UsageError, match="nothing to compute"):
        ap.build(tensors[:2])
    with pytest.raises(UsageError, match="is not a tensor"):
        ap.build([1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["state", "sin", "malloc", "a-b", "a:0", "größe", "x.y"])
def test_tensors_may_have_any_name(name: str, tmp_path: Path) -> None:
    a = ap.placeholder((4, 5), name=f"{name}/in")
    b = ap.compute((4, 5), lambda i, j: ap.sin(a[i, j]), name=name)
    kernel = ap.build(ap.State.initial(ap.ComputeDAG([b], [a])))
    x = np.linspace(-3, 3, 20, dtype=np.float32).reshape(4, 5)
    np.testing.assert_allclose(kernel(x), np.sin(x), rtol=1e-5, atol=1e-6)
    library = ap.load(kernel.export(tmp_path / "op.so"))
    np.testing.assert_array_equal(library.run([name], {f"{name}/in": x})[0], kernel(x))


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda A, i, j: A[i, j + 1], "at index 5 of dimension 1, which has 5 elements"),
        (lambda A, i, j: A[i - 1, j], "at index -1 of dimension 0"),
        (lambda A, i, j: A[i, 2 * j] + A[0, j], "at index . of dimension 1, which has 5"),
    ],
)
def test_definitions_that_read_outside_are_refused(read: Callable[..., Expr], message: str) -> None:
    A = ap.placeholder((4, 5), name="A")
    tensors = [A, ap.compute((4, 5), lambda i, j: read(A, i, j), name="B")]
    with pytest.raises(UsageError, match=f"A is read out of bounds: {message}"):
        ap.build(tensors)
    with pytest.raises(UsageError, match=message):
        ap.build(ap.State.initial(tensors))
    with pytest.raises(UsageError, match=message):
        ap.tune(tensors)


def test_a_condition_may_guard_a_read() -> None:
    A = ap.placeholder((4, 5), name="A")
    moved = ap.compute((4, 5), lambda i, j: ap.select(j < 4, A[i, j + 1], 0.0), name="B")
    a = np.arange(20, dtype=np.float32).reshape(4, 5)
    want = np.concatenate([a[:, 1:], np.zeros((4, 1), np.float32)], 1)
    np.testing.assert_array_equal(ap.build([A, moved])(a), want)


@pytest.mark.parametrize("tensors", [ap.placeholder((2,), name="A"), 3], ids=["tensor", "number"])
def test_tensors_are_given_as_a_list(tensors: object) -> None:
    with pytest.raises(
        ap.AnsorpyError, match="(?s)is not a list of tensors.*list every placeholder"
    ):
        ap.build(tensors)  # type: ignore[arg-type]
    with pytest.raises(ap.AnsorpyError, match="is not a list of tensors"):
        ap.tune(tensors, effort="none")  # type: ignore[arg-type]


def test_a_kernel_of_any_size_names_its_sizes() -> None:
    n = ap.dim("n", 1, 7)
    a = ap.placeholder((n,), name="A")
    kernel = ap.build([a, ap.compute((n,), lambda i: abs(a[i]), name="B")])
    assert repr(kernel) == "<Kernel B: 'A' -> 'B', n=1..7>"
    assert "n=1..7" in kernel._repr_html_()
    np.testing.assert_array_equal(kernel(np.asarray([-1.0, 2.0], np.float32)), [1.0, 2.0])


def test_open_decisions_are_refused_by_name() -> None:
    state, _ = ap.State.initial(matmul_relu(8, 8, 8)).split("C", "i", (None,))
    with pytest.raises(ScheduleError, match=r"decisions are still open: C\.i"):
        ap.build(state)


def test_schedules_that_are_not_legal_are_refused() -> None:
    """The threads of ``D`` would share the rows of ``C`` that each of them needs."""
    A = ap.placeholder((8, 8), name="A")
    C = ap.compute((8, 8), lambda i, j: A[i, j] * 2.0, name="C")
    D = ap.compute((8, 8), lambda i, j: C[i, j] + 1.0, name="D")
    state = ap.State.initial([A, D]).compute_at("C", "D", "i").parallel("D", ["i"])
    x = np.ones((8, 8), np.float32)
    np.testing.assert_array_equal(ap.build(state)(x), x * 2 + 1)
    with pytest.raises(ScheduleError, match='share the memory of "C"'):
        ap.build(state.set_scope("C", "workspace"))
