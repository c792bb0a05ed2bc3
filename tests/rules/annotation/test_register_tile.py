"""RegisterTile: the innermost tile is unrolled and must fit the vector registers."""

from __future__ import annotations

import numpy as np

from ansorpy.rules.annotation.register_tile import RegisterTile
from ansorpy.rules.sketch.multi_level_tiling import MultiLevelTiling
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from tests import workloads
from tests.rules.asking import CPU, derive


def test_the_space_loops_inside_the_last_reduce_loop_are_unrolled_but_the_last() -> None:
    conv = workloads.conv2d_bn_relu(1, 6, 6, 4, 4)
    [(state, _)] = derive(MultiLevelTiling(), conv, "conv")
    state = RegisterTile().declare(Space(state), CPU).state
    iters = state.stage("conv").iters
    unrolled = [it.name for it in iters if it.annotation.value == "unrolled"]
    assert unrolled == ["nn.3", "ff.3", "yy.3"]


def test_tiles_beyond_the_registers_are_refused(rng: np.random.Generator) -> None:
    [(state, _)] = derive(MultiLevelTiling(), workloads.matmul(64, 64, 8), "C")
    space = RegisterTile(spare=4).declare(Space(state), CPU)
    table = space.sample(500, rng)
    i, j = (table[:, space.columns.index(c)] for c in ("C.i/3", "C.j/3"))
    assert CPU.lanes(32) == 8
    fits = (i * -(-j // 8) <= CPU.vector_registers - 4) & (j >= 8)
    assert np.array_equal(space.valid(table), fits)
    assert 0 < fits.sum() < len(fits)


def test_new_rows_fill_a_vector_or_use_the_largest_divisor(rng: np.random.Generator) -> None:
    for m, least in ((48, 8), (14, 14), (7, 7), (61, 61), (101, 1), (9, 9), (6, 6)):
        [(state, _)] = derive(MultiLevelTiling(), workloads.matmul(64, m, 8), "C")
        rule = RegisterTile()
        space = rule.declare(Space(state), CPU)
        table = rule.sample(space, space.sample(200, rng), CPU, rng)
        innermost = table[:, space.columns.index("C.j/3")]
        assert innermost.min() == least
        assert space.valid(table).any()
        assert all(space.contains(row) for row in table[space.valid(table)][:5])


def test_untiled_stages_and_stages_without_reduction_are_left_alone() -> None:
    start = State.initial(workloads.conv2d_bn_relu(1, 6, 6, 4, 4))
    space = RegisterTile().declare(Space(start), CPU)
    assert space.state is start
    assert space.constraints == ()
