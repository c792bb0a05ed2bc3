"""The analytic model: what it must get right before anything is measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansorpy.cost.analytic.cpu.cache_sets import SetCache
from ansorpy.cost.analytic.cpu.core import step_cycles
from ansorpy.cost.analytic.cpu.machine import MachineModel
from ansorpy.cost.analytic.cpu.memory import Footprints
from ansorpy.cost.analytic.cpu.model import CpuModel, LeafCost, leaf_cost, thread_balance
from ansorpy.cost.analytic.cpu.tile import tile_of
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.counts import count_ops
from ansorpy.cost.nest_view import LeafView, view_nest
from ansorpy.ir.builders import all_of, select
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.nest import Nest, build_nest
from ansorpy.schedule.tables.size import Column, Size
from ansorpy.target import Target
from tests.budget import examples
from tests.cost.nests import Given, elementwise, tiled_matmul
from tests.cost.tasks import matmul_task
from tests.rules.algorithms.transposed import by_residue

MACHINE = MachineModel()
GOOD: dict[str, Size] = {"i1": 4, "i2": 8, "j1": 4, "j2": 32, "k1": 64}


def cost(nest: Nest, threads: int = 1, machine: MachineModel = MACHINE) -> LeafCost:
    return leaf_cost(view_nest(nest, 1)[0], machine, threads, reuse_distance_bytes=0)


def product_cost(threads: int = 1, /, **changes: Size) -> LeafCost:
    return cost(tiled_matmul(512, 512, 512, **{**GOOD, **changes}), threads)


def test_a_good_register_tile_runs_near_the_peak() -> None:
    peak_s = 512**3 / 16 / MACHINE.vector_ops_per_cycle / MACHINE.clock_hz
    [total] = product_cost().total_s
    assert peak_s <= total < 1.2 * peak_s


@pytest.mark.parametrize(
    "change",
    [
        {"vector": 0},
        {"max_unroll": 0},
        {"i2": 1},
        {"j2": 4},
        {"i2": 32},
        {"i1": 1, "i2": 1, "j1": 1, "j2": 1},
        {"k1": 64, "max_unroll": 512},
    ],
    ids=str,
)
def test_a_worse_tile_costs_more(change: dict[str, Size]) -> None:
    """No vectors, accumulators in memory, too few or too many of them, a body too long."""
    assert product_cost(**change).core_s[0] > 1.1 * product_cost().core_s[0]


def test_the_tile_is_what_the_innermost_reduce_loop_encloses() -> None:
    [product, relu] = view_nest(tiled_matmul(64, 96, 32, i1=2, i2=4, j1=1, j2=48, k1=8), 1)
    tile = tile_of(product, MACHINE)
    assert (tile.rows[0], tile.vectors[0], tile.length[0]) == (4, 3, 48)
    assert tile.steps[0] * 4 * 48 == 64 * 96 * 32
    assert tile.visits[0] * 32 == tile.steps[0]
    assert tile.unrolled[0] and tile.reduces[0]
    assert not tile_of(relu, MACHINE).reduces[0]


@pytest.mark.parametrize(
    ("i1", "max_unroll", "rows"),
    [(4, 64, 8), (4, 16, 2), (4, 0, 2), (32, 512, 2)],
    ids=["unrolled", "over the limit", "rolled", "over the registers"],
)
def test_rows_around_an_unrolled_reduction_accumulate_apart(
    i1: int, max_unroll: int, rows: int
) -> None:
    nest = tiled_matmul(64, 32, 4, i1=i1, i2=2, j1=1, j2=32, k1=4, max_unroll=max_unroll)
    tile = tile_of(view_nest(nest, 1)[0], MACHINE)
    assert tile.rows[0] == rows
    assert tile.steps[0] * rows * 32 == 64 * 32 * 4
    assert tile.steps[0] == tile.visits[0] * 4


def test_two_threads_halve_the_time_of_an_even_division() -> None:
    assert product_cost(2).core_s[0] == pytest.approx(product_cost(1).core_s[0] / 2)


def test_an_uneven_division_waits_for_the_longer_part() -> None:
    three = tiled_matmul(96, 32, 512, i1=1, i2=32, j1=1, j2=32, k1=64)
    assert cost(three, 2).core_s[0] == pytest.approx(cost(three, 1).core_s[0] * 2 / 3)


def test_forking_costs_time_only_with_several_threads_and_iterations() -> None:
    assert product_cost(2).fork_s[0] == MACHINE.fork_join_s
    assert product_cost(1).fork_s[0] == 0
    assert product_cost(2, parallel=0).fork_s[0] == 0
    whole = tiled_matmul(32, 32, 8, i1=4, i2=8, j1=1, j2=32, k1=8)
    assert cost(whole, 2).fork_s[0] == 0


def test_blocking_for_a_cache_cuts_its_traffic() -> None:
    blocked = view_nest(tiled_matmul(512, 512, 512, i1=4, i2=8, j1=4, j2=32, k1=64), 1)[0]
    plain = view_nest(tiled_matmul(512, 512, 512, i1=1, i2=1, j1=1, j2=1, k1=1), 1)[0]
    moved = [
        Footprints(view, 64, 4096).traffic(SetCache(32 * 1024)).moved[0]
        for view in (blocked, plain)
    ]
    assert moved[0] < moved[1] / 8


def test_what_fits_is_fetched_once() -> None:
    [view, _] = view_nest(tiled_matmul(16, 16, 16, i1=1, i2=4, j1=1, j2=16, k1=1), 1)
    found = Footprints(view, 64, 4096).traffic(SetCache(1 << 20))
    assert found.moved[0] == found.once[0] == (16 * 16 * 4) * 4  # the result moves in and out


def test_data_that_stay_in_the_core_s_own_caches_are_not_fetched_again() -> None:
    def l3_s(elements: int, threads: int = 1) -> float:
        return float(cost(elementwise(elements // 64, 64, along=1, parallel=1), threads).l3_s[0])

    fits = int(MACHINE.l2_bytes) // 16
    assert l3_s(fits) == 0
    assert l3_s(4 * fits, threads=2) == 0 < l3_s(4 * fits)
    assert 0 < l3_s(3 * fits) < 3 * l3_s(6 * fits) / 6
    assert l3_s(12 * fits) == pytest.approx(2 * l3_s(6 * fits))


@pytest.mark.parametrize(("taps", "faster"), [(4, True), (4096, False)])
def test_short_sums_do_not_wait_for_each_other(taps: int, faster: bool) -> None:
    """The core begins the next sum before the last one is done, if it holds both."""
    [product, _] = view_nest(tiled_matmul(16, 16, taps, i1=1, i2=1, j1=1, j2=16, k1=4), 1)
    step = step_cycles(product, tile_of(product, MACHINE), MACHINE)
    assert (step.latency[0] < MACHINE.fma_latency / 4) == faster
    assert (step.latency[0] == MACHINE.fma_latency) != faster


@pytest.mark.parametrize(("outer", "sums", "inner"), [(1, 1, 32), (1024, 2, 4), (1024, 1, 4)])
def test_no_more_sums_run_together_than_there_are(outer: int, sums: int, inner: int) -> None:
    """The outer reduce loop goes on with the first sum after the last one."""
    a, b = placeholder((sums, outer * inner), name="A"), placeholder((outer * inner, 16), name="B")
    k = reduce_axis(outer * inner, name="k")
    dag = ComputeDAG(
        [compute((sums, 16), lambda i, j: sum_over(a[i, k] * b[k, j], axis=k), name="C")]
    )
    state, (k0, k1) = State.initial(dag).split("C", "k", (inner,))
    state = state.reorder("C", [k0, "i", k1, "j"]).vectorize("C", ["j"])
    [view] = view_nest(build_nest(state, {}), 1)
    [latency] = step_cycles(view, tile_of(view, MACHINE), MACHINE).latency
    assert latency == MACHINE.fma_latency / sums


def test_sums_that_are_moved_fill_the_core_too() -> None:
    """A step has three instructions and two of its loop; a visit, a load and a store besides."""
    [product, _] = view_nest(tiled_matmul(64, 16, 4, i1=64, i2=1, j1=1, j2=16, k1=4), 1)
    tile = tile_of(product, MACHINE)
    few = replace(MACHINE, instructions_in_flight=2.0 * (4 * 3 + 2 + 2))
    assert step_cycles(product, tile, few).latency[0] == MACHINE.fma_latency / 2


def test_constants_that_were_not_evicted_are_not_fetched() -> None:
    """16 KB of them, and few other data."""
    nest = tiled_matmul(8, 64, 64, i1=1, i2=8, j1=1, j2=32, k1=64, constant_b=1)
    view = view_nest(nest, 1)[0]
    near, far = (leaf_cost(view, MACHINE, 1, distance) for distance in (1 << 16, 1 << 40))
    assert near.l3_s[0] == near.dram_s[0] == 0
    assert far.l3_s[0] * MACHINE.l3_bandwidth * MACHINE.clock_hz == pytest.approx(64 * 64 * 4)
    assert far.dram_s[0] > 0


def test_all_constants_are_fetched() -> None:
    nest = tiled_matmul(8, 512, 512, i1=1, i2=8, j1=1, j2=32, k1=64, constant_b=1)
    [product, *_] = view_nest(nest, 1)
    both = replace(product, buffers=tuple(replace(b, is_constant=True) for b in product.buffers))
    once, all_ = (leaf_cost(v, MACHINE, 1, 1 << 40).dram_s[0] for v in (product, both))
    assert all_ == pytest.approx(once * (512 * 512 + 2 * 8 * 512) / 512**2)


def test_strided_vectors_are_gathers() -> None:
    contiguous, strided = elementwise(64, 64, along=1), elementwise(64, 64, along=0)
    assert cost(strided).core_s[0] > 4 * cost(contiguous).core_s[0]


def test_constants_out_of_cache_are_paid_for() -> None:
    nest = tiled_matmul(8, 512, 512, i1=1, i2=8, j1=1, j2=32, k1=64, constant_b=1)
    task = matmul_task(8, 512, 512)

    def seconds(distance: int) -> float:
        beside = replace(task, reuse_distance_bytes=distance)
        return float(CpuModel(MACHINE).seconds(beside, view_nest(nest, 1))[0])

    warm, *near, cold = (seconds(size) for size in (0, 1 << 24, 1 << 25, 1 << 26, 1 << 40))
    assert warm <= near[0] < near[1] < near[2] == cold
    assert cold >= 512 * 512 * 4 / MACHINE.dram_bytes_per_s


def test_the_machine_comes_from_the_target() -> None:
    narrow = MachineModel.of(Target.parse("x86-64-v3"))
    wide = MachineModel.of(Target.parse("x86-64-v4"))
    assert (narrow.vector_bits, wide.vector_bits) == (256, 512)
    nest = tiled_matmul(512, 512, 512, **GOOD)
    assert cost(nest, machine=narrow).core_s[0] > 1.5 * cost(nest, machine=wide).core_s[0]


EXTENT = st.sampled_from([1, 2, 3, 6])
ROW = st.fixed_dictionaries(
    {
        **{name: EXTENT for name in ("i1", "i2", "j1", "j2", "k1")},
        **{name: st.sampled_from([0, 1]) for name in ("parallel", "vector")},
        "max_unroll": st.sampled_from([0, 16, 512]),
    }
)


@examples(40)
@given(rows=st.lists(ROW, min_size=1, max_size=9), threads=st.integers(1, 3))
def test_each_row_of_a_population_costs_what_it_costs_alone(
    rows: list[dict[str, int]], threads: int
) -> None:
    task, shape = matmul_task(36, 72, 6, threads), (36, 72, 6)
    columns = {name: Column([row[name] for row in rows]) for name in rows[0]}
    together = AnalyticModel().predict(task, Given(tiled_matmul(*shape, **columns), len(rows)))
    assert (np.isfinite(together) & (together > 0)).all()
    for r, row in enumerate(rows):
        [alone] = AnalyticModel().predict(task, Given(tiled_matmul(*shape, **row), 1))
        assert together[r] == alone


def test_a_condition_that_skips_terms_is_not_asked_of_every_one() -> None:
    op = ComputeDAG.of(by_residue(7, 5, 3, 1)).computes[-1]
    counts = count_ops(op.body, indices=False)
    assert (counts.floats.mul, counts.floats.addsub) == (1, 1)
    assert counts.ints.total == counts.bools == counts.selects == 0


def _columns_of(pitch: int, rows: int, step: int = 1) -> LeafView:
    """Each of 16 passes reads one element of *rows* rows; rows are *pitch* elements apart.

    It reads every *step*-th row.
    """
    x = placeholder((rows * step, pitch), name="x")
    k = reduce_axis(rows, name="k")
    dag = ComputeDAG([compute((16,), lambda j: sum_over(x[k * step, j], axis=k), name="y")])
    [view] = view_nest(build_nest(State.initial(dag), {}), 1)
    return view


@pytest.mark.parametrize(
    ("pitch", "rows", "step", "again"),
    [
        (1024, 64, 1, True),
        (1024, 8, 1, False),
        (1040, 64, 1, False),
        (512, 64, 1, True),
        (1000, 64, 1, False),
        (512, 16, 1, False),
        (512, 16, 2, True),
        (256, 16, 4, True),
        (520, 16, 2, False),
    ],
)
def test_rows_that_start_in_one_set_push_each_other_out(
    pitch: int, rows: int, step: int, again: bool
) -> None:
    """48 KB in 12 ways: of rows 4 KB apart 12 lines stay, whatever else would fit."""
    view = _columns_of(pitch, rows, step)
    anywhere = Footprints(view, 64, 4096).traffic(SetCache(48 * 1024)).moved[0]
    in_sets = Footprints(view, 64, 4096).traffic(SetCache(48 * 1024, 4096)).moved[0]
    assert in_sets > 4 * anywhere if again else in_sets == anywhere


@pytest.mark.parametrize(
    ("pitch", "step", "times"),
    [(1024, 1, 6.5), (512, 1, 3.25), (256, 1, 1.625), (1040, 1, 1.0), (256, 2, 3.25)],
)
def test_lines_that_go_to_few_sets_come_slowly(pitch: int, step: int, times: float) -> None:
    view = _columns_of(pitch, 64, step)
    cache = SetCache(1 << 30, 1 << 20, 6.5)
    [moved] = Footprints(view, 64, 4096).traffic(cache).moved
    [usual] = Footprints(view, 64, 4096).traffic(SetCache(1 << 30)).moved
    x = 64 * 1.5 * 64  # a line and what it drags along, of each row
    assert moved - usual == pytest.approx((times - 1) * x)


def test_lines_that_are_kept_do_not_come_at_all() -> None:
    """However slowly they would."""
    assert leaf_cost(_columns_of(1024, 64), MACHINE, 1, 0).l3_s[0] == 0


def test_lines_of_rows_go_to_many_sets_where_a_stride_steps_over_some() -> None:
    """Every second row, and every second pixel of every second row."""
    x, image = placeholder((64, 64), name="x"), placeholder((28, 28, 64), name="image")
    k = reduce_axis(64, name="k")
    rows = compute((32,), lambda i: sum_over(x[2 * i, k], axis=k), name="rows")
    pixels = compute((14, 14, 64), lambda i, j, c: image[2 * i, 2 * j, c], name="pixels")
    nests = [build_nest(State.initial(ComputeDAG([op])), {}) for op in (rows, pixels)]
    row, pixel = (Footprints(view_nest(nest, 1)[0], 64, 4096).rows[0] for nest in nests)
    first, second, _ = MACHINE.data_caches
    assert row.crowded(first) is None
    slowness = pixel.slowness(second)
    assert slowness is None or slowness[0] == 1


def _product_tile(rows_inside: bool) -> LeafView:
    """14 rows by two vectors, the rows inside the vectors or around them."""
    a, b = placeholder((14, 64), name="A"), placeholder((64, 32), name="B")
    k = reduce_axis(64, name="k")
    dag = ComputeDAG(
        [compute((14, 32), lambda i, j: sum_over(a[i, k] * b[k, j], axis=k), name="C")]
    )
    state, (j0, j1) = State.initial(dag).split("C", "j", (16,))
    stage = state.stage("C")
    i, loop = stage.iter("i"), stage.iter("k")
    state = state.reorder("C", [loop, j0, i, j1] if rows_inside else [loop, i, j0, j1])
    state = state.unroll("C", i).unroll("C", j0).vectorize("C", [j1])
    [view] = view_nest(build_nest(state, {}), 1)
    return view


def test_what_rows_share_is_loaded_again_when_no_register_holds_it() -> None:
    """28 sums leave four registers: two vectors of B, but not 14 elements of A."""
    tiles = [tile_of(_product_tile(rows_inside), MACHINE) for rows_inside in (False, True)]
    views = [_product_tile(rows_inside) for rows_inside in (False, True)]
    loads = [
        [float(tile.loads(buffer.accesses[0])[0][0]) for buffer in view.buffers[:2]]
        for tile, view in zip(tiles, views, strict=True)
    ]
    assert loads == [[14, 2], [28, 2]]


def test_seconds_lie_between_the_largest_cause_and_all_of_them(rng: np.random.Generator) -> None:
    task = matmul_task(64, 64, 64)
    nest = tiled_matmul(64, 64, 64, i1=Column(rng.choice([1, 2, 4], 9)), i2=2, j1=2, j2=8, k1=4)
    views = view_nest(nest, 9)
    causes, seconds = CpuModel().causes(task, views), CpuModel().seconds(task, views)
    assert causes.shape == (9, 2, 5)
    assert (causes.max(2).sum(1) <= seconds * (1 + 1e-12)).all()
    assert (seconds <= causes.sum((1, 2)) * (1 + 1e-12)).all()


@pytest.mark.parametrize(
    ("vectors", "instructions"),
    [(["c"], 1.0), (["i", "c"], 1.0), (["i"], 3.5), ([], 3.5)],
    ids=str,
)
def test_a_condition_is_tested_for_each_vector_only_where_lanes_differ(
    vectors: list[str], instructions: float
) -> None:
    """A choice, and two comparisons with an "and" of half an instruction."""
    x = placeholder((16, 16), name="x")
    inside = compute(
        (18, 16), lambda i, c: select(all_of(i >= 1, i < 17), x[i - 1, c], 0.0), name="pad"
    )
    state = State.initial(ComputeDAG([inside]))
    if vectors == ["i"]:
        state = state.reorder("pad", ["c", "i"])
    state = state.vectorize("pad", vectors) if vectors else state
    [view] = view_nest(build_nest(state, {}), 1)
    tile = tile_of(view, MACHINE)
    rate = MACHINE.vector_ops_per_cycle if vectors else MACHINE.narrow_ops_per_cycle
    [cycles] = step_cycles(view, tile, MACHINE).arithmetic
    assert cycles * rate == instructions * tile.accumulators[0]


def _transposing(pitch: int, is_unrolled: bool) -> LeafView:
    """64 rows, *pitch* elements apart, are read by columns, 16 of them at a time."""
    a = placeholder((64, pitch), name="A")
    dag = ComputeDAG([compute((pitch, 64), lambda c, v: a[v, c], name="T")])
    state, (c0, c1) = State.initial(dag).split("T", "c", (16,))
    state = state.unroll("T", c1) if is_unrolled else state
    [view] = view_nest(build_nest(state.vectorize("T", ["v"]), {}), 1)
    return view


def test_squares_that_are_transposed_in_registers_are_no_gathers() -> None:
    loads = {}
    for is_unrolled in (True, False):
        view = _transposing(1024, is_unrolled)
        [simple], [irregular] = tile_of(view, MACHINE).loads(view.buffers[0].accesses[0])
        loads[is_unrolled] = simple, irregular
    # 16 rows of 4 vectors, each shuffled 4 times; otherwise element by element.
    assert loads == {True: (64, 256), False: (0, 64)}


def test_lines_that_are_transposed_at_once_cannot_push_each_other_out() -> None:
    """64 lines go to one set of 12 ways."""
    moved = {
        (pitch, is_unrolled): leaf_cost(_transposing(pitch, is_unrolled), MACHINE, 1, 0).l2_s[0]
        for pitch in (1024, 1040)
        for is_unrolled in (True, False)
    }
    assert moved[1040, True] == moved[1040, False]
    assert moved[1024, False] > 4 * moved[1024, True]


def test_a_stage_inside_another_s_tasks_starts_none() -> None:
    x = placeholder((32, 64), name="x")
    first = compute((32, 64), lambda i, j: x[i, j] + 1.0, name="first")
    last = compute((32, 64), lambda i, j: first[i, j] * 2.0, name="last")
    state = State.initial(ComputeDAG([last])).compute_at("first", "last", "i")
    views = view_nest(build_nest(state.parallel("last", ["i"]), {}), 1)
    tasks = {view.leaf.stage: thread_balance(view, 2)[1][0] for view in views}
    assert tasks == {"first": 0, "last": 32}
