"""ChainInWarps: attention in the registers of warps, whose maxima are carried over blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis.strategies import booleans, integers, sampled_from

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import dim
from ansorpy.ir.interpret import run_dag, run_program
from ansorpy.ir.loops import Alloc, Scope, walk_stmts
from ansorpy.ir.rewrite.sizes import dag_at, program_at
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.algorithms.tf32 import Tf32
from ansorpy.rules.matching.kernels import kernels
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.rules.sketch.chain_in_warps import ChainInWarps
from ansorpy.schedule.boxes import is_box
from ansorpy.schedule.lowering.dispatch import lower_for_all
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.stage import KernelStyle
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.mma import MmaStep
from ansorpy.schedule.steps.records import steps_from_json, steps_to_json
from ansorpy.target import Target
from tests.budget import examples
from tests.faults import planted_races
from tests.proved import assert_proved
from tests.rules.asking import ALONE, CPU, CUDA, SKIP, ask
from tests.rules.attentions import attend, heads_attend
from tests.tensor_cores import HOPPER, arguments, values

Array = npt.NDArray[np.float64]
RULE = ChainInWarps()


def sketches(tensors: Sequence[Tensor], rng: np.random.Generator) -> list[PlacedSketch]:
    """The placed sketches, all of which the rule makes: queries in registers, or shared memory."""
    sampler = SketchSampler(Task(ComputeDAG.of(tensors), CUDA, 1))
    for state in sampler.sketches:
        (kernel,) = kernels(state)
        assert kernel.kernel_style is KernelStyle.ROWS_IN_WARPS
    assert len(sampler.sketches) == 2
    return [sampler.place(n, rng) for n in range(2)]


def group_sketches(tensors: Sequence[Tensor], rng: np.random.Generator) -> list[PlacedSketch]:
    """The placed sketches of warpgroups, by the keys that they take at once."""
    sampler = SketchSampler(Task(ComputeDAG.of(tensors), HOPPER, 1))
    found = [n for n, state in enumerate(sampler.sketches) if "wgmma" in str(state.history)]
    return [sampler.place(n, rng) for n in found]


def states(
    tensors: Sequence[Tensor], count: int, rng: np.random.Generator, *, groups: bool = False
) -> list[State]:
    """At most *count* random programs of each sketch, mutated ones among them."""
    found = []
    for placed in group_sketches(tensors, rng) if groups else sketches(tensors, rng):
        table = placed.sample(64, rng)
        both = np.concatenate((placed.mutate(table, rng), table))
        found += [placed.resolve(row) for row in both[placed.valid(both)][:count]]
    return found


def close(tensors: Sequence[Tensor], state: State, data: Mapping[str, npt.NDArray[Any]]) -> None:
    """Assert that *state* computes *tensors*, of which rows without finite scores are NaN."""
    program = lower(state).run
    (want,) = run_dag(ComputeDAG.of(tensors), dict(data), dtype=DType.FLOAT64)
    arrays = arguments(program, data)
    run_program(program, arrays)
    error = 2e-2 if tensors[-1].dtype is DType.BFLOAT16 else 3e-3
    limit = error * max(1.0, float(np.nanmax(np.abs(want))))
    np.testing.assert_allclose(arrays[-1].astype(np.float64), want, rtol=0, atol=limit)


def hidden(tensors: Sequence[Tensor], rng: np.random.Generator, *, empty: int) -> dict[str, Array]:
    """Random inputs whose masks hide all but some late keys, and all keys of row *empty*."""
    data = values(tensors, rng)
    for name, mask in data.items():
        if name.startswith("mask"):
            seen = np.arange(mask.shape[-1]) >= mask.shape[-1] - 9
            mask[...] = np.where(seen, mask, -np.inf)
            mask[..., empty, :] = -np.inf
    return data


def filled(*axes: tuple[int, int]) -> float:
    """Products of whole fragments, relative to those needed: of extents and those of fragments."""
    return prod(-(-extent // whole) * whole / extent for extent, whole in axes)


@examples(12)
@given(
    heads=integers(1, 2), rows=integers(9, 50), keys=integers(9, 100), dim=integers(8, 40),
    wide=integers(4, 40), narrow=booleans(),
    dtype=sampled_from(["float16", "bfloat16"]), seed=integers(0, 2**31),
)  # fmt: skip
def test_attention_of_any_shape(
    heads: int, rows: int, keys: int, dim: int, wide: int, narrow: bool, dtype: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    tensors = attend(heads, rows, keys, dim, wide, narrow=narrow, dtype=dtype)
    scores = filled((rows, 16), (keys, 8), (dim, 16))
    mixed = filled((rows, 16), (wide, 8), (keys, 16))
    applies = ask(RULE, tensors, "out", CUDA).answer is ALONE
    assert applies is (max(scores, mixed) <= RULE.most_waste)
    assume(applies)
    found = states(tensors, 1, rng)
    assert found
    for state in found:
        close(tensors, state, values(tensors, rng))


@examples(8)
@given(
    rows=integers(13, 40), keys=integers(29, 80), shared=sampled_from([2, 1]),
    guarded=sampled_from([True, False]), turned=sampled_from([True, False]),
    seed=integers(0, 2**31),
)  # fmt: skip
def test_attention_of_networks_with_masks(
    rows: int, keys: int, shared: int, guarded: bool, turned: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    tensors = heads_attend(
        1, rows, keys, 2, 16, masks=[(1, 1, rows, keys)], guarded=guarded, shared=shared,
        perm=(0, 2, 1, 3) if turned else (0, 1, 2, 3), dtype="float16",
    )  # fmt: skip
    found = states(tensors, 1, rng)
    assert found
    for state in found:
        close(tensors, state, hidden(tensors, rng, empty=rows // 2))


@examples(6)
@given(
    rows=integers(97, 110), keys=integers(120, 140),
    dim=sampled_from([29, 16, 40, 64]), wide=sampled_from([25, 16, 64]),
    dtype=sampled_from(["float16", "bfloat16"]), seed=integers(0, 2**31),
)  # fmt: skip
def test_attention_of_warpgroups(
    rows: int, keys: int, dim: int, wide: int, dtype: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    tensors = attend(1, rows, keys, dim, wide, dtype=dtype)
    found = states(tensors, 1, rng, groups=True)
    assert found
    for state in found:
        close(tensors, state, values(tensors, rng))


def test_attention_of_warpgroups_with_masks_and_views(rng: np.random.Generator) -> None:
    tensors = heads_attend(1, 101, 133, 2, 16, masks=[(1, 1, 101, 133)], shared=2, dtype="float16")
    found = states(tensors, 1, rng, groups=True)
    assert found
    for state in found:
        close(tensors, state, hidden(tensors, rng, empty=50))


def test_schedules_of_warpgroups_are_legal_proved_and_recorded(rng: np.random.Generator) -> None:
    tensors = attend(1, 101, 187, 40, 24)
    found = states(tensors, 1, rng, groups=True)
    assert len(found) == 2
    for state in found:
        checked = state.check()
        assert checked.reads and not checked.undecided
        again = State.replay(state.definition, steps_from_json(steps_to_json(state.history)))
        assert again.history == state.history
        assert_proved(Lowered(lower(again).run, None))


def test_warpgroups_read_keys_as_they_lie(rng: np.random.Generator) -> None:
    """Their tiles are boxes, which no pair of blocks shares, and views are not turned."""
    for tensors in (attend(1, 128, 128, 32, 32), heads_attend(1, 128, 128, 2, 32, dtype="float16")):
        for placed in group_sketches(tensors, rng):
            steps = [s for s in placed.placed.history if isinstance(s, MmaStep)]
            assert [s.intrinsic.split(".")[2] for s in steps] == ["kk", "hc"]
    for placed in group_sketches(attend(1, 128, 128, 32, 32), rng):
        tiles = [stage for stage in placed.placed.stages if stage.swizzle]
        assert len(tiles) == 3 and all(is_box(placed.placed, tile) for tile in tiles)
        bulk = [n for n, column in enumerate(placed.columns) if column.endswith(".bulk")]
        assert len(bulk) == 3 and placed.sample(32, rng)[:, bulk].max() == 1


def test_rows_that_would_pad_warpgroups_are_left_to_warps(rng: np.random.Generator) -> None:
    assert not group_sketches(attend(1, 32, 192, 64, 24), rng)


def test_schedules_are_legal_proved_and_recorded(rng: np.random.Generator) -> None:
    tensors = attend(1, 37, 51, 40, 24)
    for state, reads in zip(states(tensors, 1, rng), (17, 18), strict=True):
        checked = state.check()
        assert checked.reads == reads and not checked.undecided
        again = State.replay(state.definition, steps_from_json(steps_to_json(state.history)))
        assert again.history == state.history
        program = lower(again).run
        assert_proved(Lowered(program, None))


def test_scores_stay_in_registers(rng: np.random.Generator) -> None:
    (state, *_) = states(attend(1, 40, 96, 32, 32), 1, rng)
    allocated = [s.buffer for s in walk_stmts(lower(state).run.body) if isinstance(s, Alloc)]
    shared = {buffer.name for buffer in allocated if buffer.scope is Scope.SHARED}
    assert shared == {"k.shared", "v.shared"}
    assert {buffer.scope for buffer in allocated if "scores" in buffer.name} == {Scope.WARP}


def test_missing_barriers_are_found(rng: np.random.Generator) -> None:
    (state, *_) = states(attend(1, 20, 150, 16, 16), 1, rng)
    assert "k.shared" in planted_races(lower(state).run, rng)


def test_keys_beyond_the_last_do_not_count(rng: np.random.Generator) -> None:
    """Their scores are 0, infinitely far above those of all others."""
    tensors = attend(1, 32, 51, 16, 16)
    data = values(tensors, rng)
    data["q"][:], data["k"][:] = 40.0, -40.0
    found = states(tensors, 1, rng)
    assert found
    for state in found:
        close(tensors, state, data)


def test_one_program_for_all_lengths(rng: np.random.Generator) -> None:
    length = dim("n", 16, 120)
    whole = ComputeDAG.of(heads_attend(1, length, length, 1, 16, dtype="float16"))
    (open_size,) = whole.dims
    drawn = states([*(part := dag_at(whole, {open_size: 64})).args, *part.outputs], 1, rng)
    program = lower_for_all(State.replay(whole, drawn[0].history)).run
    for size in (16, 70):
        at, called = dag_at(whole, {open_size: size}), program_at(program, {open_size: size})
        data = values([*at.args, *at.outputs], rng)
        (want,) = run_dag(at, dict(data), dtype=DType.FLOAT64)
        arrays = arguments(called, data)
        run_program(called, arrays)
        np.testing.assert_allclose(arrays[-1].astype(np.float64), want, rtol=0, atol=5e-3)


REFUSED = {
    "weights that are divided first": (attend(1, 32, 32, 16, 16, late=False), "are divided before"),
    "few rows": (attend(1, 3, 64, 16, 16), "takes 5 times the work"),
    "exact factors": (attend(1, 32, 32, 16, 16, dtype="float32"), "may not be rounded"),
    "wide heads": (attend(1, 32, 32, 16, 256), "wider than 192"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_suit_fragments(name: str) -> None:
    tensors, reason = REFUSED[name]
    verdict = ask(RULE, tensors, "out", CUDA)
    assert verdict.answer is SKIP and reason in verdict.reason


def test_factors_rounded_to_tf32_are_left_to_other_kernels() -> None:
    """Their instruction takes 8 keys at once, half of what lanes of a row share."""
    dag = ComputeDAG.of(attend(1, 32, 32, 16, 16, dtype="float32"))
    (rounded,) = Tf32().rewrite(dag, CUDA)
    verdict = ask(RULE, State.initial(rounded.dag), "out", CUDA)
    assert verdict.answer is SKIP and "does not take 16 keys at once" in verdict.reason


def test_other_targets_and_stages() -> None:
    tensors = attend(1, 32, 32, 16, 16)
    assert ask(RULE, tensors, "out", CUDA).answer is ALONE
    assert "matrix products of warps" in ask(RULE, tensors, "out", Target.parse("sm_75")).reason
    assert "matrix products of warps" in ask(RULE, tensors, "out", CPU).reason
    assert ask(RULE, tensors, "scores", CUDA).reason == "not the last stage"
