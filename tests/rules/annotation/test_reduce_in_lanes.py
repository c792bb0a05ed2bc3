"""ReduceInLanes: reductions that read memory along their reduce axes."""

from __future__ import annotations

from ansorpy.ir import builders as ap
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.rules.annotation.reduce_in_lanes import ReduceInLanes
from ansorpy.rules.annotation.tile_for_vectors import TileForVectors
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from tests import workloads
from tests.rules.asking import CPU, shows


def in_lanes(state: State | list[Tensor]) -> State:
    """Follows the rule for stages that vectorise along a space axis; the CPU has 8 lanes."""
    state = state if isinstance(state, State) else State.initial(state)
    space = TileForVectors().declare(Space(state), CPU)
    return ReduceInLanes().declare(space, CPU).state


def lanes_of(state: State) -> dict[str, object]:
    return {d.name: d.domain for d in state.decisions if d.name.endswith(".lanes")}


def test_a_row_sum() -> None:
    state = in_lanes(workloads.min_reduce(10, 1024))
    shows(
        state,
        """
        for i in 0..10
          for k.0 in 0..?  # reduce
            for k.1 in 0..?  # lanes of a reduction
              B[i] min= ...
        """,
    )
    assert lanes_of(state) == {"B.lanes": OneOf((8, 16, 32, 64))}


def test_the_lanes_end_where_the_reduction_does() -> None:
    assert lanes_of(in_lanes(workloads.min_reduce(10, 17))) == {"B.lanes": OneOf((8, 16, 32))}
    assert in_lanes(workloads.min_reduce(10, 5)).stage("B").lanes == "k.1"
    assert in_lanes(workloads.min_reduce(10, 2)).stage("B").lanes is None, "a quarter of a vector"


def test_axes_that_follow_each_other_in_memory_are_one() -> None:
    state = in_lanes(workloads.matrix_norm(4, 16, 32))
    assert [it.name for it in state.stage("squares").iters] == ["b", "r@c@.0", "r@c@.1"]


def test_axes_with_something_between_them_are_not() -> None:
    x = placeholder((4, 16, 40), name="X")
    r, c = reduce_axis(16, name="r"), reduce_axis(32, name="c")
    part = compute((4,), lambda b: ap.sum(x[b, r, c], axis=(r, c)), name="part")
    state = in_lanes([x, part])
    assert [it.name for it in state.stage("part").iters] == ["b", "r", "c.0", "c.1"]


def test_an_operand_of_one_axis_alone_splits_them() -> None:
    x, w = placeholder((4, 16, 32), name="X"), placeholder((16,), name="w")
    r, c = reduce_axis(16, name="r"), reduce_axis(32, name="c")
    y = compute((4,), lambda b: ap.sum(x[b, r, c] * w[r], axis=(r, c)), name="y")
    assert [it.name for it in in_lanes([x, w, y]).stage("y").iters] == ["b", "r", "c.0", "c.1"]


def test_inlined_producers_are_looked_through() -> None:
    x = placeholder((8, 32), name="X")
    turned = compute((32, 8), lambda i, j: x[j, i] * 2.0, name="turned")
    k = reduce_axis(32, name="k")
    state = State.initial([x, compute((8,), lambda i: ap.sum(turned[k, i], axis=k), name="y")])
    assert in_lanes(state).stage("y").lanes is None, "the sums of columns are vectors of columns"
    assert in_lanes(state.compute_inline("turned")).stage("y").lanes == "k.1"


def test_windows_and_columns_keep_vectors_along_space() -> None:
    assert in_lanes(workloads.max_pool2d(1, 8, 8, 4)).stage("pool").lanes is None
    a = placeholder((64, 32), name="A")
    k = reduce_axis(64, name="k")
    columns = [a, compute((32,), lambda j: ap.sum(a[k, j], axis=k), name="B")]
    assert in_lanes(columns).stage("B").lanes is None


def test_a_stage_computed_inside_the_reduction_keeps_its_loop() -> None:
    x = placeholder((8, 32), name="X")
    k = reduce_axis(32, name="k")
    e = compute((8, 32), lambda i, j: ap.exp(x[i, j]), name="e")
    state = State.initial([x, compute((8,), lambda i: ap.sum(e[i, k], axis=k), name="y")])
    assert in_lanes(state.compute_at("e", "y", "k")).stage("y").lanes is None
    assert in_lanes(state.compute_at("e", "y", "i")).stage("y").lanes == "k.1"
