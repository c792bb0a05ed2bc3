"""ChangeComputeLocation: which loops are candidates, and what is drawn from them."""

from __future__ import annotations

import numpy as np

from ansorpy.rules.placement.compute_location import (
    ChangeComputeLocation,
    is_movable,
    locations,
)
from ansorpy.rules.predicates import is_computed_where_read
from ansorpy.rules.sketch.multi_level_tiling import MultiLevelTiling
from ansorpy.schedule.stage import Attach
from ansorpy.schedule.state import State
from tests import workloads
from tests.rules.asking import CPU, derive

CONV = workloads.conv2d_bn_relu(2, 6, 6, 4, 4)


def candidates(state: State, name: str) -> list[str]:
    return [f"{at.stage}.{at.iter}" for at in locations(state, state.stage(name))]


def test_an_untiled_consumer_offers_its_space_loops() -> None:
    state = State.initial(workloads.max_pool2d(1, 6, 6, 4))
    assert candidates(state, "pad") == ["pool.j", "pool.y", "pool.x"], "i has extent 1"


def test_a_tiled_consumer_offers_loops_down_to_its_first_reduce_tile() -> None:
    [(state, _)] = derive(MultiLevelTiling("SRS"), CONV, "conv")
    names = [x.removeprefix("conv.") for x in candidates(state, "pad")]
    assert names == ["nn.0", "ff.0", "yy.0", "xx.0", "rc", "ry", "rx"]


def test_a_loop_that_hosts_a_stage_ends_the_scan() -> None:
    state = State.initial(workloads.softmax(4, 8)).compute_at("sum", "norm", "i0")
    assert candidates(state, "exp") == ["norm.i0"]


def test_unrolled_loops_are_not_entered() -> None:
    state = State.initial(workloads.max_pool2d(2, 6, 6, 4)).unroll("pool", "y")
    assert candidates(state, "pad") == ["pool.i", "pool.j"]


def test_an_attached_consumer_also_offers_its_hosts_loops() -> None:
    state = State.initial(CONV).compute_at("bn_mul", "bn_add", "f")
    assert candidates(state, "bias_add") == [
        "bn_mul.i", "bn_mul.f", "bn_mul.y", "bn_mul.x", "bn_add.i",
    ]  # fmt: skip


def test_outputs_and_stages_with_several_readers_have_none() -> None:
    state = State.initial(workloads.softmax(4, 8))
    assert candidates(state, "norm") == []
    assert candidates(state, "exp") == []


def test_what_a_sketch_rule_placed_is_not_moved() -> None:
    [(state, _)] = derive(MultiLevelTiling(), CONV, "conv")
    movable = [s.name for s in state.stages if is_movable(state, s)]
    assert movable == ["pad", "bias_add", "bn_mul", "bn_add", "relu"]


def test_every_choice_is_drawn_and_all_are_sound(rng: np.random.Generator) -> None:
    [(state, _)] = derive(MultiLevelTiling("SRS"), workloads.conv2d_bn_relu(2, 5, 7, 3, 4), "conv")
    for name in ("bias_add", "bn_mul", "bn_add"):
        state = state.compute_inline(name)
    seen = set()
    for _ in range(100):
        drawn = ChangeComputeLocation().draw(state, CPU, rng)
        assert is_computed_where_read(drawn)
        attach = drawn.stage("pad").attach
        seen.add(attach and attach.iter)
    assert seen == {None, "nn.0", "ff.0", "yy.0", "xx.0", "rc", "ry", "rx"}


def test_a_choice_that_is_no_loop_is_the_root() -> None:
    state = State.initial(workloads.max_pool2d(1, 6, 6, 4))
    options = ChangeComputeLocation().options(state, "pad", CPU)
    others = [option for option in options if not isinstance(option, Attach)]
    assert len(options) == 5 and others == ["root", "root"]
    assert all(ChangeComputeLocation().take(state, "pad", option) == state for option in others)


def test_a_stage_outside_its_readers_loop_is_unsound() -> None:
    state = State.initial(workloads.softmax(4, 8)).compute_at("exp", "norm", "i0")
    assert not is_computed_where_read(state), "sum reads exp as well, outside that loop"
