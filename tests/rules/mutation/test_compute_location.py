"""MutateComputeLocation: another loop for one placed stage, and tables carried over."""

from __future__ import annotations

import numpy as np

from ansorpy.rules.mutation.compute_location import MutateComputeLocation, carry_over
from ansorpy.rules.sketch.multi_level_tiling import MultiLevelTiling
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from tests import workloads
from tests.rules.asking import derive


def placed() -> State:
    [(state, _)] = derive(MultiLevelTiling("SRS"), workloads.conv2d_bn_relu(2, 6, 6, 4, 4), "conv")
    return state.compute_at("pad", "conv", "yy.0")


def test_the_stage_moves_to_any_other_candidate(rng: np.random.Generator) -> None:
    seen = set()
    for _ in range(60):
        moved = MutateComputeLocation().move(placed(), rng)
        assert moved is not None
        attach = moved.stage("pad").attach
        assert attach is not None
        seen.add(attach.iter)
        assert len(moved.history) == len(placed().history)
    assert seen == {"nn.0", "ff.0", "xx.0", "rc", "ry", "rx"}


def test_root_stages_and_fused_producers_stay(rng: np.random.Generator) -> None:
    assert MutateComputeLocation().move(State.initial(workloads.softmax(4, 8)), rng) is None
    only = State.initial(workloads.min_reduce(1, 8))
    assert MutateComputeLocation().move(only, rng) is None


def test_shared_decisions_keep_their_values(rng: np.random.Generator) -> None:
    old = Space(placed())
    moved, _ = placed().split("relu", "x", (None,))
    new = Space(moved)
    table = old.sample(20, rng)
    carried = carry_over(old, table, new, rng)
    at = [new.columns.index(name) for name in old.columns]
    assert np.array_equal(carried[:, at], table)
    assert all(new.contains(row) for row in carried)
