"""TileForVectors: an inner loop to vectorise for stages no sketch rule tiled."""

from __future__ import annotations

from ansorpy.ir import builders as ap
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.rules.annotation.tile_for_vectors import TileForVectors
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from tests import workloads
from tests.rules.asking import CPU, shows


def tiled(state: State | list[Tensor]) -> State:
    state = state if isinstance(state, State) else State.initial(state)
    return TileForVectors().declare(Space(state), CPU).state


def nhwc_pool(stride: int = 1) -> list[Tensor]:
    data = placeholder((1, 9, 9, 12), name="data")
    ry, rx = reduce_axis(2, name="ry"), reduce_axis(2, name="rx")
    pool = compute(
        (1, 4, 4, 12),
        lambda n, y, x, c: ap.max(data[n, y * stride + ry, x * stride + rx, c], axis=(ry, rx)),
        name="pool",
    )
    return [data, pool]


def test_part_of_the_channels_moves_inside_the_window() -> None:
    shows(
        tiled(nhwc_pool(2)),
        """
        for n in 0..1
          for y in 0..4
            for x in 0..4
              for c.0 in 0..?
                for ry in 0..2  # reduce
                  for rx in 0..2  # reduce
                    for c.1 in 0..?
                      pool[n, y, x, c] max= ...
        """,
    )


def test_an_attached_reduction_is_reordered_only() -> None:
    data, pool = nhwc_pool()
    relu = compute((1, 4, 4, 12), lambda n, y, x, c: ap.maximum(pool[n, y, x, c], 0.0), name="relu")
    state = tiled(State.initial([data, relu]).compute_at("pool", "relu", "y"))
    assert [it.name for it in state.stage("pool").iters] == ["n", "y", "x", "ry", "rx", "c"]


def test_an_elementwise_stage_is_split() -> None:
    a = placeholder((100,), name="A")
    state = tiled([a, compute((100,), lambda i: a[i] * 2.0, name="B")])
    assert [it.name for it in state.stage("B").iters] == ["i.0", "i.1"]
    assert state.decisions[0].domain.rows.max() == 56  # 2 tiles, the last one shifted by 12


def test_row_sums_and_strided_columns_are_left_alone() -> None:
    rows = State.initial(workloads.min_reduce(10, 64))
    assert tiled(rows) is rows
    a = placeholder((8, 6, 4), name="A")
    k = reduce_axis(4, name="k")
    jumps = State.initial([a, compute((8, 6), lambda i, j: ap.sum(a[i, j, k], axis=k), name="B")])
    assert tiled(jumps) is jumps


def test_trailing_unit_axes_are_passed_over() -> None:
    a = placeholder((6, 8, 1, 1), name="A")
    state = tiled([a, compute(a.shape, lambda n, c, y, x: a[n, c, y, x] + 1.0, name="B")])
    assert [it.name for it in state.stage("B").iters] == ["n", "c.0", "y", "x", "c.1"]


def test_a_loop_that_hosts_a_stage_is_not_split_but_loops_inside_it_are() -> None:
    state = State.initial(workloads.max_pool2d(1, 6, 6, 4))
    outside = tiled(state.compute_at("pad", "pool", "y"))
    names = [it.name for it in outside.stage("pool").iters]
    assert names == ["i", "j", "y", "x.0", "ry", "rx", "x.1"]
    at_last = tiled(state.compute_at("pad", "pool", "x"))
    assert [it.name for it in at_last.stage("pool").iters] == ["i", "j", "y", "x", "ry", "rx"]


def test_inlined_stages_keep_their_loops() -> None:
    state = State.initial(workloads.conv2d_bn_relu(1, 6, 6, 4, 4)).compute_inline("bn_add")
    assert [it.name for it in tiled(state).stage("bn_add").iters] == ["i", "f", "y", "x"]
