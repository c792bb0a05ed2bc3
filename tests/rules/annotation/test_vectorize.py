"""AnnotateVectorize: which inner loops qualify, and how many of them a sampled row takes."""

from __future__ import annotations

import numpy as np

from ansorpy.rules.annotation.parallel import AnnotateParallel
from ansorpy.rules.annotation.vectorize import AnnotateVectorize
from ansorpy.rules.sketch.multi_level_tiling import MultiLevelTiling
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from tests import workloads
from tests.rules.asking import CPU, derive


def space_of(state: State, rule: AnnotateVectorize) -> Space:
    return rule.declare(Space(state), CPU)


def test_the_suffix_ends_at_reduce_loops_and_hosts() -> None:
    rule = AnnotateVectorize()
    space = space_of(State.initial(workloads.softmax(2, 4, 8)), rule)
    found = {s.name: s.vectorize.iters for s in space.state.stages if s.vectorize}
    assert found == {"exp": ("i0", "i1", "i2"), "norm": ("i0", "i1", "i2")}
    placed = State.initial(workloads.softmax(2, 4, 8)).compute_at("sum", "norm", "i1")
    found = {s.name: s.vectorize.iters for s in space_of(placed, rule).state.stages if s.vectorize}
    assert found["norm"] == ("i2",)


def test_only_the_innermost_loop_of_a_tiled_stage() -> None:
    [(state, _)] = derive(MultiLevelTiling(), workloads.matmul(64, 64, 8), "C")
    (decision,) = set(space_of(state, AnnotateVectorize()).decisions) - set(state.decisions)
    assert (decision.name, decision.domain) == ("C.vectorize", OneOf((0, 1)))


def test_rows_vectorise_where_the_extent_is_within_the_limit(rng: np.random.Generator) -> None:
    [(state, _)] = derive(MultiLevelTiling(), workloads.matmul(64, 64, 8), "C")
    rule = AnnotateVectorize(max_elements=16)
    space = space_of(state, rule)
    table = rule.sample(space, space.sample(300, rng), CPU, rng)
    inner, count = (table[:, space.columns.index(c)] for c in ("C.j/3", "C.vectorize"))
    assert np.array_equal(count, (inner <= 16).astype(int))
    assert set(count) == {0, 1}


def test_of_several_loops_a_random_number_but_never_all(rng: np.random.Generator) -> None:
    rule = AnnotateVectorize(max_elements=16)
    space = space_of(State.initial(workloads.softmax(2, 2, 2, 2)), rule)
    table = rule.sample(space, space.sample(200, rng), CPU, rng)
    assert set(table[:, space.columns.index("norm.vectorize")]) == {1, 2, 3}
    two = AnnotateVectorize(max_elements=4).sample(space, table, CPU, rng)
    assert set(two[:, space.columns.index("norm.vectorize")]) == {1}


def test_always_innermost_leaves_nothing_open_for_one_loop() -> None:
    [(state, _)] = derive(MultiLevelTiling(), workloads.matmul(64, 64, 8), "C")
    space = space_of(state, AnnotateVectorize(max_elements=64, always_innermost=True))
    assert space.decisions == state.decisions
    mark = space.state.stage("C").vectorize
    assert mark is not None
    assert (mark.iters, mark.count) == (("j.3",), (1,))


def test_no_loop_is_both_parallel_and_a_vector(rng: np.random.Generator) -> None:
    state = State.initial(workloads.conv2d_bn_relu(2, 3, 3, 2, 2))
    parallel, vector = AnnotateParallel(), AnnotateVectorize()
    space = vector.declare(parallel.declare(Space(state), CPU), CPU)
    table = space.sample(300, rng)
    columns = [space.columns.index(f"relu.{x}") for x in ("parallel", "vectorize")]
    clash = table[:, columns].sum(axis=1) > 4
    assert clash.any()
    assert not space.valid(table[clash]).any()
    drawn = vector.sample(space, parallel.sample(space, table, CPU, rng), CPU, rng)
    assert space.valid(drawn).all()
