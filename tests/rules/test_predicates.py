"""The predicates of rules, on definitions that distinguish their clauses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansorpy.ir import builders as ap
from ansorpy.ir.analysis.access import accesses
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, compute, placeholder, reduce_axis
from ansorpy.rules.matching.relations import consumers, direct_producers, producers, single_consumer
from ansorpy.rules.predicates import (
    axis_access,
    elementwise_match,
    has_data_reuse,
    has_single_elementwise_matched_consumer,
    is_elementwise,
    is_repeated_in_tiles,
    is_strictly_inlineable,
    num_common_outer_iterators,
)
from ansorpy.schedule.state import State
from tests import workloads

A = placeholder((8, 8), name="A")
R = placeholder((8,), name="R")
Q = placeholder((8,), name="Q")


def reader(at: Callable[..., Expr]) -> ComputeOp:
    return compute((8, 8), at, name="B", names=("i", "j"))


@pytest.mark.parametrize(
    ("index", "answer"),
    [
        (lambda i, j: (i, j), (False, False, True)),
        (lambda i, j: (i + 1, j - 2), (False, False, True)),
        (lambda i, j: (2 + i, 0), (True, False, True)),
        (lambda i, j: (j, i), (False, False, False)),
        (lambda i, j: (i, i), (True, True, True)),
        (lambda i, j: (0, 0), (True, False, True)),
        (lambda i, j: (i * 2, j), None),
        (lambda i, j: (i + j, j), None),
        (lambda i, j: (i // 2, j), None),
    ],
)
def test_axis_access(
    index: Callable[[Expr, Expr], tuple[Expr, Expr]], answer: tuple[bool, bool, bool] | None
) -> None:
    [access] = accesses(reader(lambda i, j: A[index(i, j)]))
    use = axis_access(access)
    assert (use and (use.missing, use.duplicated, use.same_order)) == answer


def test_a_reduce_axis_in_an_index_is_no_simple_access() -> None:
    k = reduce_axis(8, name="k")
    op = compute((8,), lambda i: ap.sum(A[i, k], axis=k), name="B")
    [access] = accesses(op)
    assert axis_access(access) is None


def test_axes_of_extent_one_are_constants_to_an_access() -> None:
    row = placeholder((1, 8), name="row")
    same = compute((1, 8), lambda n, i: row[0, i], name="same")
    assert is_elementwise(same, row)
    turned = compute((8, 1), lambda i, n: row[n, i], name="turned")
    [use] = map(axis_access, accesses(turned))
    assert use is not None and use.in_place and not is_elementwise(turned, row)


def test_elementwise_reads_keep_every_index_in_its_place() -> None:
    shifted = reader(lambda i, j: ap.select(i < 7, A[i + 1, j], 0.0))
    assert is_elementwise(shifted, A)
    assert not is_elementwise(reader(lambda i, j: A[j, i]), A)
    assert not is_elementwise(reader(lambda i, j: R[j]), R), "another shape"


@pytest.mark.parametrize(
    ("at", "answer"),
    [
        (lambda i, j: A[i, j] + R[j], True),
        (lambda i, j: A[j, i], False),
        (lambda i, j: A[i, i], False),
        (lambda i, j: ap.exp(A[i, j]), False),
        (lambda i, j: ap.tanh(A[i, j]), True),
        (lambda i, j: ap.select(i < 4, A[i, j], 0.0), False),
        (lambda i, j: ap.maximum(A[i, j], 0.0), True),
        (lambda i, j: ap.select(i.equal(j), 1.0, 0.0), True),
    ],
)
def test_is_strictly_inlineable(at: Callable[..., Expr], answer: bool) -> None:
    state = State.initial(ComputeDAG([reader(at)]))
    assert is_strictly_inlineable(state, state.stage("B")) is answer


@pytest.mark.parametrize(
    ("at", "answer"),
    [
        (lambda i, j: A[i, j] + R[j], False),  # one broadcast input, no reduction
        (lambda i, j: R[i] * Q[j], True),  # two
        (lambda i, j: R[i] * R[j], True),  # one tensor, read along either axis
        (lambda i, j: R[j] * R[j], False),  # twice along one
        (lambda i, j: A[i, j] * A[j, i], False),
    ],
)
def test_has_data_reuse_without_reduction(at: Callable[..., Expr], answer: bool) -> None:
    state = State.initial(ComputeDAG([reader(at)]))
    assert has_data_reuse(state, state.stage("B")) is answer


def test_one_broadcast_input_and_a_reduction_need_tiling() -> None:
    k = reduce_axis(8, name="k")
    many = compute((8, 8), lambda i, j: ap.sum(A[j, k], axis=k), name="B")
    state = State.initial([A, many])
    assert has_data_reuse(state, state.stage("B"))


def test_axes_of_extent_one_do_not_count_as_broadcast() -> None:
    gemv = workloads.matmul(1, 8, 8)
    state = State.initial(gemv)
    assert has_data_reuse(state, state.stage("C")), "A lacks j"
    dot = State.initial(workloads.matmul(1, 1, 8))
    assert not has_data_reuse(dot, dot.stage("C"))


def test_constants_are_inputs_to_the_rules() -> None:
    w = placeholder((8, 8), name="W", constant=True)
    k = reduce_axis(8, name="k")
    u = compute((8, 8), lambda i, j: ap.sum(w[i, k] * w[k, j], axis=k), name="U")
    r = reduce_axis(8, name="r")
    c = compute((8, 8), lambda i, j: ap.sum(A[i, r] * u[r, j], axis=r), name="C")
    state = State.initial([A, w, c])
    assert not has_data_reuse(state, state.stage("U")), "it runs at bind time"
    assert has_data_reuse(state, state.stage("C"))


def test_elementwise_match_follows_a_chain_of_only_readers() -> None:
    state = State.initial(workloads.conv2d_bn_relu(1, 6, 6, 4, 4))
    op = {stage.name: stage.op for stage in state.stages}
    assert elementwise_match(state.current_dag, op["conv"], op["relu"])
    assert not elementwise_match(state.current_dag, op["pad"], op["relu"])
    softmax = State.initial(workloads.softmax(4, 8))
    ops = {stage.name: stage.op for stage in softmax.stages}
    assert not elementwise_match(softmax.current_dag, ops["exp"], ops["norm"]), (
        "two stages read exp"
    )


def test_inlined_readers_are_looked_through() -> None:
    state = State.initial(workloads.conv2d_bn_relu(1, 6, 6, 4, 4))
    for name in ("bias_add", "bn_mul", "bn_add"):
        state = state.compute_inline(name)
    conv = state.stage("conv")
    assert [s.name for s in consumers(state, conv)] == ["relu"]
    assert has_single_elementwise_matched_consumer(state, conv)
    relu = state.stage("relu")
    names = {"bias", "offset", "scale", "conv"}
    assert {s.name for s in producers(state, relu)} == names
    assert {s.name for s in direct_producers(state, relu)} == {"bn_add"}


def test_single_consumer_is_the_common_root_of_several() -> None:
    state = State.initial(workloads.softmax(4, 8))
    assert single_consumer(state, state.stage("max")) == state.stage("exp")
    assert single_consumer(state, state.stage("exp")) is None
    placed = state.compute_at("sum", "norm", "i0")
    assert single_consumer(placed, placed.stage("exp")) == placed.stage("norm")


def test_num_common_outer_iterators_is_the_least_over_all_paths() -> None:
    state = State.initial(workloads.softmax(2, 3, 8))
    op = {stage.name: stage.op for stage in state.stages}
    assert num_common_outer_iterators(state.current_dag, op["exp"], op["norm"]) == 2, "through sum"
    assert num_common_outer_iterators(state.current_dag, op["sum"], op["norm"]) == 2
    assert num_common_outer_iterators(state.current_dag, op["norm"], op["sum"]) == 0
    turned = State.initial([A, reader(lambda i, j: A[j, i])])
    assert num_common_outer_iterators(turned.current_dag, A, turned.stage("B").op) == 0


def test_arithmetic_on_inputs_is_repeated_in_the_tiles_of_a_product() -> None:
    state = State.initial(workloads.activated_matmul(8, 4, 6))
    found = {s.name for s in state.stages if is_repeated_in_tiles(state, s)}
    assert found == {"relu"}, "the others are read once"
    moved = State.initial(workloads.transposed_matmul())
    assert not any(is_repeated_in_tiles(moved, stage) for stage in moved.stages)
    chained = State.initial(workloads.depthwise_pointwise(1, 8, 8, 4, 4))
    assert not any(is_repeated_in_tiles(chained, stage) for stage in chained.stages)
