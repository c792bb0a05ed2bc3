"""AnnotateParallel: which leading loops may be collapsed, and how many a sampled row takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ansorpy.rules.annotation.parallel import AnnotateParallel, parallel_prefix
from ansorpy.rules.sketch.multi_level_tiling_with_fusion import MultiLevelTilingWithFusion
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from tests import workloads
from tests.rules.asking import CPU, derive


def prefix(state: State, stage: str) -> list[str]:
    return [it.name for it in parallel_prefix(state, state.stage(stage))[0]]


def test_the_prefix_ends_at_a_reduce_loop() -> None:
    state = State.initial(workloads.max_pool2d(1, 6, 6, 4))
    assert prefix(state, "pool") == ["i", "j", "y", "x"]
    assert prefix(State.initial(workloads.zero_rank_reduce(4)), "B") == []


def test_the_prefix_includes_the_host_of_another_stage() -> None:
    rule = MultiLevelTilingWithFusion(levels=(1,))
    conv = State.initial(workloads.conv2d_bn_relu(1, 6, 6, 4, 4))
    for name in ("bias_add", "bn_mul", "bn_add"):
        conv = conv.compute_inline(name)
    [(state, _)] = derive(rule, conv, "conv")
    assert prefix(state, "relu") == ["i.0", "f.0", "y.0", "x.0"]


def test_one_decision_a_root_stage_and_none_on_one_core() -> None:
    state = State.initial(workloads.max_pool2d(1, 6, 6, 4)).compute_at("pad", "pool", "y")
    space = AnnotateParallel().declare(Space(state), CPU)
    assert [(d.name, d.domain) for d in space.decisions] == [("pool.parallel", OneOf((1, 2, 3)))]
    alone = AnnotateParallel().declare(Space(state), replace(CPU, cores=1))
    assert alone.decisions == ()


def test_a_new_row_takes_as_few_loops_as_keep_the_cores_busy(rng: np.random.Generator) -> None:
    state = State.initial(workloads.max_pool2d(1, 6, 6, 4))
    rule = AnnotateParallel(jobs_per_core=1)
    space = rule.declare(Space(state), CPU)
    table = rule.sample(space, space.sample(5, rng), CPU, rng)
    pad, pool = (space.columns.index(f"{name}.parallel") for name in ("pad", "pool"))
    assert set(table[:, pool]) == {3}, "1 * 4 iterations are not more than 4, 1 * 4 * 7 are"
    assert set(table[:, pad]) == {3}
    some = AnnotateParallel(jobs_per_core=1000)
    assert set(some.sample(space, table, CPU, rng)[:, pool]) == {4}, "never enough: all"


def test_counts_follow_the_rows_tile_sizes(rng: np.random.Generator) -> None:
    state, _ = State.initial(workloads.matmul(64, 4, 8)).split("C", "i", (None,))
    rule = AnnotateParallel(jobs_per_core=4)
    space = rule.declare(Space(state), CPU)
    table = rule.sample(space, space.sample(200, rng), CPU, rng)
    inner, count = (table[:, space.columns.index(c)] for c in ("C.i/1", "C.parallel"))
    assert np.array_equal(count == 1, 64 // inner > 16)
    assert set(count) == {1, 2}


def test_where_the_outer_loops_are_of_extent_one_the_stages_inside_run_in_parallel() -> None:
    state = State.initial(workloads.max_pool2d(1, 6, 6, 4)).compute_at("pad", "pool", "i")
    space = AnnotateParallel().declare(Space(state), CPU)
    marks = {s.name: s.parallel.iters for s in space.state.stages if s.parallel}
    assert marks == {"pad": ("i", "j", "y", "x"), "pool": ("j", "y", "x")}


def test_the_innermost_loop_can_be_kept_and_no_loop_taken() -> None:
    state = State.initial(workloads.conv2d_bn_relu(2, 6, 6, 4, 4))
    rule = AnnotateParallel(allow_serial=True, keep_innermost=True)
    space = rule.declare(Space(state), CPU)
    domains = {d.name: d.domain for d in space.decisions}
    assert domains["relu.parallel"] == OneOf((0, 1, 2, 3))
    assert domains["conv.parallel"] == OneOf((0, 1, 2, 3, 4)), "a reduce loop is inside"


def test_some_new_rows_are_serial_where_that_is_allowed(rng: np.random.Generator) -> None:
    rule = AnnotateParallel(allow_serial=True, serial_share=0.5)
    space = rule.declare(Space(State.initial(workloads.matmul(64, 64, 8))), CPU)
    counts = rule.sample(space, space.sample(200, rng), CPU, rng)[:, 0]
    assert set(counts) == {0, 2}
    assert 60 < (counts == 0).sum() < 140
