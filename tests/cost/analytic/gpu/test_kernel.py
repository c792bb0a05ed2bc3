"""The analytic model of GPU kernels: what it must prefer, and that columns are rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from ansorpy.cost.analytic.gpu.kernel import gpu_causes, gpu_seconds
from ansorpy.cost.analytic.gpu.machine import GpuMachine
from ansorpy.cost.analytic.gpu.statement import Statement, fills
from ansorpy.cost.analytic.limits import Limits
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.bound import least_seconds, limits_of
from ansorpy.cost.nest_view import view_nest
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.rules.matching.kernels import kernels
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.nest import build_nest
from ansorpy.target import Target
from tests import workloads
from tests.rules.algorithms.convolutions import convolution
from tests.rules.asking import CUDA as GPU
from tests.rules.gpu_workloads import gelu
from tests.tensor_cores import HOPPER, matmul, wgmma_sketches
from tests.tensor_cores import sketches as in_tensor_cores


def sketches(tensors: Sequence[Tensor], n: int = 1, target: Target = GPU) -> list[PlacedSketch]:
    sampler = SketchSampler(Task(ComputeDAG.of(tensors), target, 1))
    drawn = sampler.draw(8, np.random.default_rng(0))
    return [s for s in drawn if not any(".rf" in c for c in s.columns)][:n]


def seconds(sketch: PlacedSketch, *rows: Mapping[str, int], target: Target = GPU) -> list[float]:
    """Predictions for rows, given the columns that differ from one."""
    table = np.array([[row.get(c, 1) for c in sketch.columns] for row in rows], dtype=np.int64)
    views = view_nest(sketch.space.nest(table), len(rows))
    return [float(s) for s in np.broadcast_to(gpu_seconds(target, views), len(rows))]


def tile(
    i: tuple[int, int, int], j: tuple[int, int, int], k: int, depth: int = 3
) -> dict[str, int]:
    parts = {f"C.local.{a}/{n}": f for a, t in (("i", i), ("j", j)) for n, f in enumerate(t, 1)}
    return {**parts, "C.local.k/1": k, "C.local.pipeline": depth, "A.shared.i1/1": 4,
            "B.shared.i1/1": 4}  # fmt: skip


def test_a_tile_that_is_reused_is_preferred() -> None:
    (sketch,) = sketches(workloads.matmul(2048, 2048, 2048))
    good, small, single = seconds(
        sketch, tile((2, 16, 4), (2, 16, 4), 16), tile((1, 16, 2), (1, 16, 2), 16),
        tile((1, 16, 1), (1, 16, 1), 16),
    )  # fmt: skip
    assert good < small < single


def test_tiles_of_hand_written_products_come_first() -> None:
    """Blocks of 128 x 128 or twice that, 64 or 128 sums a thread: of random rows few are ahead."""
    h100 = Target.parse("sm_90")
    (sketch,) = sketches(workloads.matmul(4096, 4096, 4096), target=h100)
    hand = seconds(
        sketch,
        {**tile((2, 16, 4), (2, 16, 4), 32), "A.shared.pad": 4},
        {**tile((2, 16, 4), (4, 16, 4), 16), "A.shared.pad": 4},
        target=h100,
    )
    # One sample, always the same: in others, the fastest row is up to 13 % ahead.
    table = sketch.sample(1024, np.random.default_rng(2))
    table = table[sketch.valid(table)]
    views = view_nest(sketch.space.nest(table), len(table))
    found = np.broadcast_to(gpu_seconds(h100, views), len(table))
    assert (found < max(hand)).mean() < 0.08
    assert found.min() > 0.9 * min(hand)


def test_seconds_lie_between_the_largest_cause_and_all_of_them() -> None:
    for outputs in (workloads.matmul(512, 512, 512), workloads.softmax(64, 4096)):
        sketch = sketches(outputs)[0]
        table = sketch.sample(32, np.random.default_rng(3))
        views = view_nest(sketch.space.nest(table), len(table))
        causes, found = gpu_causes(GPU, views), gpu_seconds(GPU, views)
        assert causes.shape[1:] == (len(views), 7)
        assert (causes[..., :-1].max(2).sum(1) <= found * (1 + 1e-12)).all()
        assert (found <= causes.sum((1, 2)) * (1 + 1e-12)).all()


def test_a_few_large_blocks_leave_multiprocessors_idle() -> None:
    (sketch,) = sketches(workloads.matmul(512, 512, 512))
    large, small = seconds(
        sketch, tile((2, 16, 4), (2, 16, 4), 16), tile((1, 16, 2), (1, 16, 2), 16)
    )
    assert small < 0.7 * large


def test_copies_ahead_hide_their_latency() -> None:
    (sketch,) = sketches(workloads.matmul(256, 256, 2048))
    depths = [tile((1, 16, 4), (1, 16, 4), 8, depth) for depth in (1, 2, 4)]
    one, two, four = seconds(sketch, *depths)
    assert four < two < one


def test_a_matrix_product_takes_no_less_than_it_must() -> None:
    tensors = workloads.matmul(2048, 2048, 2048)
    (sketch,) = sketches(tensors)
    (predicted,) = seconds(sketch, tile((2, 16, 4), (2, 16, 4), 16))
    task = Task(ComputeDAG.of(tensors), GPU, 1)
    assert least_seconds(task, task.dag) < predicted < 12 * least_seconds(task, task.dag)


def limits(tensors: list[Tensor], kernels: int = 1, between: int = 0) -> Limits:
    dag = ComputeDAG.of(tensors)
    return limits_of(Task(dag, GPU, 1, reuse_distance_bytes=between), dag, kernels)


def test_what_limits_a_kernel_follows_from_its_size() -> None:
    machine = GpuMachine.of(GPU)
    product = limits(workloads.matmul(2048, 2048, 2048))
    assert product.bound == "arithmetic"
    flops = 2 * machine.products_per_cycle * machine.processors * machine.clock_hz
    assert product.compute_s == pytest.approx(2 * 2048**3 / flops, rel=0.01)
    large = limits(gelu(8192, 8192))
    assert large.bound == "memory"
    moved = 2 * 4 * 8192**2 - machine.l2_bytes
    assert large.memory_s == pytest.approx(moved / machine.dram_bytes_per_s)
    small = limits(gelu(31, 7), 3)
    assert small.bound == "launches" and small.least_s == 3 * machine.launch_s


def test_constants_that_the_network_drives_out_of_the_cache_come_from_memory() -> None:
    a, w = placeholder((1, 1024), name="A"), placeholder((1024, 1024), name="W", constant=True)
    k = reduce_axis(1024, name="k")
    tensors = [
        a,
        w,
        compute((1, 1024), lambda i, j: sum_over(a[i, k] * w[k, j], axis=k), name="C"),
    ]
    warm, cold = (limits(tensors, between=bytes_between) for bytes_between in (0, 1 << 30))
    machine = GpuMachine.of(GPU)
    assert cold.memory_s == pytest.approx(4 * 1024**2 / machine.dram_bytes_per_s)
    assert warm.memory_s < cold.memory_s


def test_rows_that_a_lookup_leaves_out_are_not_moved() -> None:
    table, rows = placeholder((50000, 64), name="T"), placeholder((3,), "int32", name="R")
    found = limits([table, rows, compute((3, 64), lambda i, j: table[rows[i], j], name="C")])
    machine = GpuMachine.of(GPU)
    assert found.memory_s <= 2 * 3 * 64 * (4 + 4) / machine.l2_bytes_per_s


def test_elementwise_kernels_are_bound_by_memory() -> None:
    (sketch,) = sketches(gelu(4096, 4096))
    (predicted,) = seconds(sketch, {"out.i1/1": 4, "out.i0@i1.0@/1": 256})
    machine = GpuMachine.of(GPU)
    moved = 2 * 4096 * 4096 * 4 / machine.dram_bytes_per_s
    assert moved < predicted < 3 * moved


def test_partial_sums_stay_in_the_cache_unless_they_are_too_large() -> None:
    """The second of two kernels finds there what the first has just written."""
    dag = ComputeDAG.of(workloads.matmul(1024, 512, 4096))
    sampler, rng = SketchSampler(Task(dag, GPU, 1)), np.random.default_rng(0)
    [number] = [n for n, s in enumerate(sampler.sketches) if "rfactor" in str(s.history)]
    sketch = sampler.place(number, rng)
    table = sketch.sample(64, rng)
    views = view_nest(sketch.space.nest(table[sketch.valid(table)][:1]), 1)
    between = [v.written for v in views if not v.written.alloc_depth and not v.written.is_output]
    [partial] = [float(b.elems) * b.elem_bytes for b in between]
    slow = replace(GpuMachine.of(GPU), dram_bytes_per_s=1e6)
    small = replace(slow, l2_bytes=partial - 1)
    given = sum(tensor.bytes for tensor in (*dag.args, *dag.outputs))
    [inside], [outside] = (1e6 * gpu_seconds(GPU, views, machine) for machine in (slow, small))
    assert given <= inside < 1.1 * given
    assert outside >= given + 2 * partial


@pytest.mark.parametrize(("rows", "length", "kernels"), [(64, 4096, 1), (1, 1 << 18, 5)])
def test_many_rows_take_one_kernel_and_few_long_ones_several(
    rows: int, length: int, kernels: int
) -> None:
    best: dict[int, float] = {}
    task = Task(ComputeDAG.of(workloads.softmax(rows, length)), Target.parse("sm_90"), 1)
    for sketch in SketchSampler(task).draw(16, np.random.default_rng(0)):
        table = sketch.sample(64, np.random.default_rng(1))
        table = table[sketch.valid(table)]
        views = view_nest(sketch.space.nest(table), len(table))
        alone = sum(stage.attach is None and not stage.inlined and not stage.is_placeholder
                    for stage in sketch.state.stages)  # fmt: skip
        fastest = float(gpu_seconds(task.target, views).min())
        best[alone] = min(best.get(alone, np.inf), fastest)
    assert min(best, key=lambda number: best[number]) == kernels and len(best) > 2


@pytest.mark.parametrize("tensors", [workloads.matmul(96, 80, 64), workloads.layer_norm(13, 300)])
def test_a_column_pass_equals_every_row_alone(tensors: list[Tensor]) -> None:
    for sketch in sketches(tensors, 3):
        table = sketch.sample(12, np.random.default_rng(2))
        views = view_nest(sketch.space.nest(table), len(table))
        together = np.broadcast_to(gpu_seconds(GPU, views), len(table))
        for row, expected in zip(table, together, strict=True):
            nest = build_nest(sketch.resolve(row), {})
            assert gpu_seconds(GPU, view_nest(nest, 1))[0] == pytest.approx(expected, rel=1e-12)


def test_the_model_of_gpus_is_the_analytic_model_there() -> None:
    task = Task(ComputeDAG.of(workloads.matmul(64, 64, 64)), GPU, 1)
    views = view_nest(build_nest(State.initial(task.dag), {}), 1)
    assert AnalyticModel().seconds(task, views) == gpu_seconds(GPU, views)


def products(kind: str, n: int) -> tuple[Task, list[PlacedSketch]]:
    dag = ComputeDAG.of(matmul(kind, n, n, n))
    task = Task(dag, GPU, 1, "tf32")
    sampler = SketchSampler(task)
    rng = np.random.default_rng(0)
    return task, [sampler.place(n, rng) for n in range(len(sampler.sketches))]


@pytest.mark.parametrize("kind", ["float16", "int8", "tf32"])
def test_tensor_cores_are_expected_to_be_faster(kind: str) -> None:
    task, found = products(kind, 1024)
    best: dict[bool, float] = {}
    for sketch in found:
        table = sketch.sample(128, np.random.default_rng(1))
        table = table[sketch.valid(table)]
        views = view_nest(sketch.space.nest(table), len(table))
        fastest = float(gpu_seconds(GPU, views).min())
        in_warps = ".warp." in " ".join(sketch.columns)
        best[in_warps] = min(best.get(in_warps, np.inf), fastest)
        assert fastest > least_seconds(task, sketch.state.definition)
    assert best[True] < best[False]


def test_fragments_that_are_reused_are_preferred() -> None:
    sketch = next(s for s in products("float16", 2048)[1] if "C.warp.i/1" in s.columns)
    common = {"C.warp.k/1": 2, "C.warp.pipeline": 3}
    common |= {f"{t}.shared.{c}": 8 for t in "AB" for c in ("i1/1", "pad")}
    tiles = [
        {**common, "C.warp.i/1": w, "C.warp.j/1": w, "C.warp.i/2": r, "C.warp.j/2": 2 * r}
        for w, r in ((2, 4), (2, 1), (1, 1))
    ]
    good, small, single = seconds(sketch, *tiles)
    assert good < small < single


def test_narrow_products_may_be_faster_than_single_precision_allows() -> None:
    exact, narrow = (ComputeDAG.of(matmul(kind, 1024, 1024, 1024)) for kind in ("tf32", "float16"))
    least = [least_seconds(Task(dag, GPU, 1), dag) for dag in (exact, narrow)]
    assert least[1] < least[0] / 4


def test_conditions_between_the_sums_of_a_thread_cost_what_they_choose() -> None:
    """Rows that differ in the condition are best not in one thread's tile."""
    tensors = convolution((5, 5), (3, 3), 64, 64, pad=1)
    task = Task(ComputeDAG.of(tensors), GPU, 1)
    every = list(SketchSampler(task).every())
    found = [s for s in every if s.pair.definition == "clipped"]
    sketch = next(s for s in found if not any(".rf" in c for c in s.columns))
    name = next(c for c in sketch.columns if c.endswith(".h0/3")).removesuffix(".h0/3")
    common = {f"{name}.o/2": 16, f"{name}.o/3": 4, f"{name}.rc/1": 16}
    inside, across = seconds(sketch, {**common, f"{name}.h0/3": 5}, {**common, f"{name}.h0/2": 5})
    (plain, *_) = (s for s in every if s.pair.definition == "direct")
    direct, _ = seconds(plain, {**common, f"{name}.h0/3": 5}, {**common, f"{name}.h0/2": 5})
    assert inside > 1.3 * direct and across < inside


def in_rows_of_one_channel(side: int, channels: int) -> ComputeDAG:
    """A 3x3 convolution of rows whose neighbours in memory are pixels, as in ONNX."""
    x = placeholder((1, channels, side + 2, side + 2), name="x")
    w = placeholder((channels, channels, 3, 3), name="w", constant=True)
    c, p, q = (reduce_axis(n, name=name) for n, name in ((channels, "c"), (3, "p"), (3, "q")))
    out = compute(
        (1, channels, side, side),
        lambda n, f, i, j: sum_over(x[n, c, i + p, j + q] * w[f, c, p, q], axis=[c, p, q]),
        name="out",
    )
    return ComputeDAG.of([x, w, out])


def test_transforms_that_are_written_out_load_each_element_once(rng: np.random.Generator) -> None:
    """Winograd's transforms of a tile of 6 by 6 took 5 us on an H200, as its products did."""
    task = Task(in_rows_of_one_channel(56, 64), Target.parse("sm_90"), 1)
    best: dict[str, list[float]] = {"direct": [], "winograd": []}
    for sketch in SketchSampler(task).every():
        table = sketch.sample(64, rng)
        table = table[sketch.valid(table)]
        if len(table):
            found = gpu_seconds(task.target, view_nest(sketch.space.nest(table), len(table)))
            best[sketch.pair.definition.partition("(")[0]].append(float(np.min(found)))
    assert max(best["winograd"]) < 3 * min(best["direct"])


def test_half_as_many_lanes_take_twice_as_long() -> None:
    (sketch,) = sketches(workloads.matmul(2048, 2048, 2048))
    row = {**tile((2, 16, 4), (2, 16, 4), 16), "A.shared.pad": 4, "B.shared.pad": 0}
    rows = np.array([[row[c] for c in sketch.columns]])
    views = view_nest(sketch.space.nest(rows), 1)
    machine = GpuMachine.of(GPU)
    full = replace(machine, products_per_cycle=128.0)
    assert GpuMachine.of(Target.parse("sm_90")).products_per_cycle == 128
    half, whole = (gpu_seconds(GPU, views, m)[0] for m in (machine, full))
    assert machine.products_per_cycle == 64 and 1.5 < half / whole < 2


def test_larger_tiles_of_warps_move_less_from_the_second_level_cache() -> None:
    sketch = next(s for s in products("float16", 4096)[1] if "C.warp.i/1" in s.columns)
    common = {"C.warp.k/1": 2, "C.warp.pipeline": 3, "C.warp.i/2": 4, "C.warp.j/2": 8}
    common |= {f"{t}.shared.{c}": 8 for t in "AB" for c in ("i1/1", "pad")}
    rows = [{**common, "C.warp.i/1": i, "C.warp.j/1": j} for i, j in ((2, 2), (4, 2))]
    table = np.array([[row.get(c, 1) for c in sketch.columns] for row in rows])
    found = np.zeros(2)
    views = view_nest(sketch.space.nest(table), 2)
    shared = {view.written.name for view in views if fills(view)}
    for view in views:
        if view.written.name in shared:
            needed = Statement(view, GpuMachine.of(GPU), shared).resources()
            found = found + view.spread(needed.l2)
    # Blocks of 128 x 128 and 256 x 128 read both operands, 2 bytes an element, 4096 deep.
    blocks = [32 * 32 * (128 + 128), 16 * 32 * (256 + 128)]
    assert found.tolist() == [n * 4096 * 2 for n in blocks]


def test_warps_that_wait_for_a_large_tile_are_slow() -> None:
    sketch = next(s for s in products("float16", 4096)[1] if "C.warp.i/1" in s.columns)
    common = {f"{t}.shared.{c}": 8 for t in "AB" for c in ("i1/1", "pad")}
    common |= {"C.warp.i/1": 4, "C.warp.j/1": 2, "C.warp.i/2": 4, "C.warp.j/2": 8}
    at_once = {**common, "C.warp.k/1": 8, "C.warp.pipeline": 1}
    ahead = {**common, "C.warp.k/1": 2, "C.warp.pipeline": 3}
    slow, fast = seconds(sketch, at_once, ahead)
    assert fast < 0.8 * slow


def test_instructions_of_warpgroups_are_expected_to_be_faster() -> None:
    best: dict[str, float] = {}
    rng = np.random.default_rng(0)
    for sketch in in_tensor_cores(matmul("float16", 4096, 4096, 4096), rng, HOPPER):
        table = sketch.sample(256, rng)
        table = table[sketch.valid(table)]
        views = view_nest(sketch.space.nest(table), len(table))
        by = "wgmma" if "wgmma" in str(sketch.placed.history) else "mma"
        fastest = float(np.min(gpu_seconds(HOPPER, views)))
        best[by] = min(best.get(by, np.inf), fastest)
    assert best["wgmma"] < best["mma"] < 4 * best["wgmma"]
    dag = ComputeDAG.of(matmul("float16", 4096, 4096, 4096))
    assert least_seconds(Task(dag, HOPPER, 1), dag) < best["wgmma"]


def test_instructions_left_under_way_need_a_tile_more() -> None:
    rng = np.random.default_rng(0)
    sketch = wgmma_sketches(matmul("float16", 4096, 4096, 4096), rng)[0]
    common = {"C.warp.i/1": 2, "C.warp.k/1": 2, "A.shared.k/1": 8, "B.shared.j/1": 8}
    one, two, four = seconds(
        sketch, *({**common, "C.warp.pipeline": depth} for depth in (1, 2, 4)), target=HOPPER
    )
    assert four < two < one


def in_one_kernel(tensors: Sequence[Tensor]) -> PlacedSketch:
    sampler = SketchSampler(Task(ComputeDAG.of(tensors), GPU, 1))
    numbers = [n for n, s in enumerate(sampler.sketches) if len(list(kernels(s))) == 1]
    return sampler.place(numbers[0], np.random.default_rng(0))


def test_what_a_block_makes_of_its_own_is_not_waited_for_as_memory_is(
    rng: np.random.Generator,
) -> None:
    sketch = in_one_kernel(workloads.attention(2, 64, 96, 32))
    table = sketch.sample(64, rng)
    views = {v.leaf.stage: v for v in view_nest(sketch.space.nest(table), len(table))}
    machine, shared = GpuMachine.of(GPU), {n for n, v in views.items() if fills(v)}
    needed = {name: Statement(v, machine, shared).resources() for name, v in views.items()}
    assert (needed["E"].fetched == 0).all() and (needed["scaled"].fetched == 0).all()
    assert (needed["K.shared"].fetched >= machine.memory_latency).all()


def test_attention_in_one_kernel_is_predicted_to_be_faster(rng: np.random.Generator) -> None:
    """The sizes of BERT: its scores are written and read by others of three kernels."""
    tensors = workloads.attention(12, 128, 128, 64)
    sampler = SketchSampler(Task(ComputeDAG.of(tensors), GPU, 1))
    best: dict[bool, float] = {}
    for number in range(len(sampler.sketches)):
        sketch = sampler.place(number, rng)
        table = sketch.sample(128, rng)
        table = table[sketch.valid(table)]
        views = view_nest(sketch.space.nest(table), len(table))
        alone = len(list(kernels(sampler.sketches[number]))) == 1
        found = float(np.min(gpu_seconds(GPU, views)))
        best[alone] = min(found, best.get(alone, found))
    assert best[True] < best[False]
