"""Right answers pass with honest rounding; wrong ones are told where."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ansorpy.ir.attrs import Attrs
from ansorpy.ir.builders import select, sum
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.routines.scatters import ScatterSum
from ansorpy.ir.tensor import compute, computed_by, placeholder, reduce_axis
from ansorpy.ir.text.serialize import dag_to_json
from ansorpy.measure.check.compare import compare, least_scale, sample_points, tolerance
from ansorpy.measure.run.buffers import TaskArrays
from ansorpy.measure.run.handlers import RunSession, sampled_magnitude
from ansorpy.measure.workers.messages import OpenRequest
from ansorpy.measure.workers.protocol import Message
from tests import workloads


def matmul(n: int, m: int, k: int, dtype: str = "float32", error: float = 0.0) -> ComputeDAG:
    return ComputeDAG.of(workloads.matmul(n, m, k, dtype=dtype, attrs=Attrs(error=error)))


@pytest.mark.parametrize("k", [1, 7, 512, 4608, 25088])
def test_any_order_of_summing_passes_and_a_lost_term_does_not(k, rng):
    dag = matmul(13, 17, k)
    allowed = tolerance(dag, dag.outputs[0])
    a = rng.standard_normal((13, k)).astype(np.float32)
    b = rng.standard_normal((k, 17)).astype(np.float32)
    want = (a.astype(np.float64) @ b).astype(np.float32)
    sequential = np.zeros((13, 17), np.float32)
    for r in range(k):
        sequential += a[:, r, None] * b[r]
    assert compare("C", sequential, want, allowed).ok
    lost = want.copy()
    lost[3, 4] -= a[3, k // 2] * b[k // 2, 4] or 1.0
    found = compare("C", lost, want, allowed)
    assert not found.ok
    assert "C[3, 4]" in found.reason


def test_tolerance_follows_type_length_and_stated_error():
    def of(dag: ComputeDAG) -> float:
        return tolerance(dag, dag.outputs[0])

    assert of(matmul(2, 2, 64)) < of(matmul(2, 2, 6400))
    assert of(matmul(2, 2, 64, "float64")) < 1e-12 < of(matmul(2, 2, 64, "float16"))
    assert of(matmul(2, 2, 64, error=3e-4)) == pytest.approx(of(matmul(2, 2, 64)) + 3e-4)
    assert of(matmul(2, 2, 64, "int32")) == 0.0


@pytest.mark.parametrize("hole", [(0, 0), (4, 6), (2, 3)])
def test_an_element_never_written_is_found(hole, rng):
    want = rng.standard_normal((5, 7)).astype(np.float32)
    got = want.copy()
    got[hole] = np.nan
    found = compare("C", got, want, 1.0)
    assert found.error == math.inf
    assert f"C[{hole[0]}, {hole[1]}] was never written or is not a number" in found.reason


def test_special_values_must_be_where_the_reference_has_them():
    want = np.array([np.nan, np.inf, -np.inf, 2.0], np.float32)
    assert compare("C", want.copy(), want, 1e-6).ok
    for n, value in enumerate([1.0, -np.inf, np.inf, np.inf]):
        got = want.copy()
        got[n] = value
        assert f"C[{n}] is wrong" in compare("C", got, want, 1e-6).reason


def test_all_zero_references_and_integers_are_exact():
    zeros = np.zeros(3, np.float32)
    assert compare("C", zeros, zeros, 1e-6).ok
    assert not compare("C", zeros + 1e-30, zeros, 1e-6).ok
    want = np.arange(6).reshape(2, 3)
    got = want.copy()
    got[1, 2] += 1
    assert compare("C", want, want, 0.0).ok
    assert "C[1, 2] is 6, the reference 5; 1 of 6" in compare("C", got, want, 0.0).reason


@pytest.mark.parametrize("shape", [(1,), (3, 5), (4096,), (97, 89), (7, 64, 31, 5), (1, 1000000)])
def test_sampled_points_are_distinct_inside_and_hold_the_corners(shape, rng):
    points = sample_points(shape, 4096, rng)
    assert len({tuple(p) for p in points}) == len(points) <= 4096
    assert len(points) == min(4096, math.prod(shape)) or len(points) > 3500
    assert (points >= 0).all() and (points < np.array(shape)).all()
    corners = np.stack(np.meshgrid(*[[0, n - 1] for n in shape]), -1).reshape(-1, len(shape))
    assert {tuple(c) for c in corners} <= {tuple(p) for p in points}


def test_a_tensor_without_dimensions_is_compared():
    want = np.array(2.0, np.float32)
    assert compare("y", want + np.float32(1e-6), want, 1e-5).ok
    assert "y[0] is 3" in compare("y", np.array(3.0, np.float32), want, 1e-5).reason
    assert not compare("y", np.array(np.nan, np.float32), want, 1e-5).ok
    assert not compare("y", np.array(3), np.array(2), 0.0).ok


@pytest.mark.parametrize("shape", [(8, 512), (8, 3, 40), (4, 2, 64)])
def test_a_wrong_element_of_a_small_row_is_found_and_rounding_is_not(shape, rng):
    dag = matmul(8, 512, 512)
    allowed = tolerance(dag, dag.outputs[0])
    want = rng.standard_normal(shape).astype(np.float32)
    want[1:] *= 1e-6
    rounded = want * (1 + 2e-6 * rng.standard_normal(shape)).astype(np.float32)
    assert compare("C", rounded, want, allowed, by_block=True).ok
    got = rounded.copy()
    at = (2,) + (1,) * (len(shape) - 1)
    got[at] = 0.0
    assert compare("C", got, want, allowed).ok
    found = compare("C", got, want, allowed, by_block=True)
    assert f"C[{', '.join(map(str, at))}] is 0, the reference" in found.reason
    want[0, 1], got[0, 1] = np.inf, np.inf
    assert not compare("C", got, want, allowed, by_block=True).ok


def test_noise_where_a_row_is_zero_is_no_error(rng):
    want = rng.standard_normal((4, 100)).astype(np.float32)
    want[1] = 0.0
    got = want.copy()
    got[1, 3] = 1e-9
    assert compare("C", got, want, 1e-5, by_block=True).ok


def test_a_candidate_with_one_small_element_lost_is_refused_unless_it_states_an_error() -> None:
    a = placeholder((6, 70), name="A")
    scaled = compute((6, 70), lambda i, j: a[i, j] * select(i < 5, 1.0, 1e-6), name="C")
    dag = ComputeDAG.of([a, scaled])
    (want,) = run_dag(dag, TaskArrays(dag, 0).values())
    want = want.astype(np.float32)
    session = RunSession()
    request = OpenRequest(seed=0, threads=1, reuse_distance_bytes=0, check_points=0)
    blobs = (dag_to_json(dag).encode(), want.tobytes())
    session.open(Message("open", request.model_dump(), blobs))
    (written,) = session.task.results()
    written[...] = want
    assert session.compared(0.0).ok
    written[5, 33] = 0.0
    assert "C[5, 33] is 0, the reference" in session.compared(0.0).reason
    assert session.compared(1e-5).ok


K = 96


def cancelled(n: int = 33, m: int = 70) -> ComputeDAG:
    """A product less itself, added up from the other end: every element is rounding errors."""
    a, b = placeholder((n, K), name="A"), placeholder((K, m), name="B")
    r, s = reduce_axis(K, name="r"), reduce_axis(K, name="s")
    p = compute((n, m), lambda i, j: sum(a[i, r] * b[r, j], axis=r), name="P")
    q = compute((n, m), lambda i, j: sum(a[i, K - 1 - s] * b[K - 1 - s, j], axis=s), name="Q")
    return ComputeDAG([compute((n, m), lambda i, j: p[i, j] - q[i, j], name="C")], [a, b])


def in_order(a: np.ndarray, b: np.ndarray, order: range) -> np.ndarray:
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for r in order:
        total += a[:, r, None] * b[r]
    return total


@pytest.fixture
def noise(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Operands, the reference of :func:`cancelled`, and its least scale."""
    dag = cancelled()
    (output,) = dag.outputs
    a = rng.standard_normal((33, K)).astype(np.float32)
    b = rng.standard_normal((K, 70)).astype(np.float32)
    magnitude = sampled_magnitude(output, 128, rng, {"A": a, "B": b})
    assert magnitude == pytest.approx(2 * K * 2 / np.pi, rel=0.2)
    want = in_order(a, b, range(K)) - in_order(a, b, range(K)[::-1])
    return a, b, want, least_scale(dag, output, magnitude)


def test_what_is_left_where_everything_cancels_is_rounding(noise) -> None:
    a, b, want, least = noise
    allowed = tolerance(cancelled(), cancelled().outputs[0])
    other = in_order(a, b, range(0, K, 2)) + in_order(a, b, range(1, K, 2))
    got = other - in_order(a, b, range(K)[::-1])
    assert not compare("C", got, want, allowed, by_block=True).ok, "noise is no measure of noise"
    assert compare("C", got, want, allowed, by_block=True, least=least).ok


def test_wrong_kernels_are_told_from_noise(noise) -> None:
    a, b, want, least = noise
    allowed = tolerance(cancelled(), cancelled().outputs[0])
    p = in_order(a, b, range(K))
    late, short, scaled = want.copy(), want.copy(), want.copy()
    late[:, 64:] = (np.roll(p, 1, axis=1) - p)[:, 64:]  # a tile off by one
    short[30:] -= a[30:, K - 1 :] * b[K - 1 :]  # the last term is missing in a tail
    scaled[-1, -3:] += 0.01 * p[-1, -3:]  # an epilogue wrong in three elements
    one = want.copy()
    one[7, 11] -= 0.01
    for wrong in (late, short, scaled, one):
        found = compare("C", wrong, want, allowed, by_block=True, least=least)
        assert not found.ok and "allowed" in found.reason


def test_the_least_scale_changes_nothing_where_values_are_left(rng) -> None:
    for k in (16, 512, 4608):
        dag = matmul(64, 64, k)
        a = rng.standard_normal((64, k)).astype(np.float32)
        b = rng.standard_normal((k, 64)).astype(np.float32)
        magnitude = sampled_magnitude(dag.outputs[0], 128, rng, {"A": a, "B": b})
        assert least_scale(dag, dag.outputs[0], magnitude) < np.abs(a @ b).max()


def test_a_routine_has_no_scale_but_its_results(rng) -> None:
    x, to = placeholder((1, 9, 4), name="x"), placeholder((1, 3, 1), "int64", name="to")
    new = placeholder((1, 3, 4), name="new")
    y = computed_by(ScatterSum(), [x, to, new], (1, 9, 4), DType.FLOAT32, name="y")
    given = {
        "x": np.zeros((1, 9, 4), np.float32), "to": np.full((1, 3, 1), 50000),
        "new": np.ones((1, 3, 4), np.float32),
    }  # fmt: skip
    assert sampled_magnitude(y, 16, rng, given) == 0.0


def test_one_element_that_is_left_is_the_scale() -> None:
    want = np.array([1e-7, 5.0, -1e-7], np.float32)
    got = want + np.array([4e-5, 0, 0], np.float32)
    assert not compare("C", got, want, 1e-6, least=4.0).ok
    assert compare("C", got, want, 1e-5, least=4.0).ok
