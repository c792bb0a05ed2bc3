"""ThreadBind: blocks, virtual threads and threads, and the limits on them."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.algorithms.winograd import Winograd
from ansorpy.rules.annotation.thread_bind import ThreadBind
from ansorpy.rules.derive import generate_sketches
from ansorpy.rules.presets import ANSOR_CUDA
from ansorpy.rules.presets import CUDA as DEFAULT_CUDA
from ansorpy.rules.sketch.chain_in_rows import ChainInRows
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.space import Space
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.tables.size import as_array
from tests import workloads
from tests.properties.random_elements import random_values
from tests.rules.algorithms.convolutions import convolution
from tests.rules.asking import CUDA, derive
from tests.rules.gpu_spaces import annotated
from tests.rules.gpu_workloads import average_pool
from tests.rules.test_gpu_programs import check


def bound(tensors: list[Tensor], sketch: int = 0) -> Space:
    sketches = generate_sketches(ComputeDAG.of(tensors), CUDA, ANSOR_CUDA)
    return ThreadBind().declare(Space(sketches[sketch]), CUDA)


def marks(stage: Stage) -> list[tuple[str, str]]:
    return [(it.name, it.annotation.value) for it in stage.iters if it.annotation.value != "serial"]


def test_the_outer_tiles_of_a_kernel() -> None:
    state = bound(workloads.matmul(64, 64, 64)).state
    assert marks(state.stage("C")) == [
        ("i.0@j.0@", "blockIdx.x"), ("i.1@j.1@", "vthread"), ("i.2@j.2@", "threadIdx.x"),
    ]  # fmt: skip
    attach = state.stage("C.local").attach
    assert attach is not None
    assert attach.iter == "i.2@j.2@"


def test_all_threads_fetch_a_shared_tile_together() -> None:
    stage = bound(workloads.matmul(64, 64, 64)).state.stage("A.shared")
    assert marks(stage) == [("i0@i1.0@.1", "threadIdx.x")]
    assert stage.vectorize is not None
    assert stage.vectorize.iters == ("i1.1",)


def test_threads_and_virtual_threads_are_limited(rng: np.random.Generator) -> None:
    space = bound(workloads.matmul(64, 64, 64))
    table = space.sample(600, rng)
    level = [
        np.prod([table[:, space.columns.index(f"C.local.{a}/{k}")] for a in "ij"], axis=0)
        for k in (1, 2)
    ]
    fits = (level[0] <= 8) & (level[1] >= 32) & (level[1] <= 1024)
    assert np.array_equal(space.valid(table), fits)
    assert 0 < fits.sum() < len(fits)


def test_a_small_kernel_may_have_less_than_a_warp(rng: np.random.Generator) -> None:
    space = bound(workloads.matmul(8, 8, 16))
    table = space.sample(200, rng)
    names = [space.columns.index(f"C.local.{a}/2") for a in "ij"]
    assert (table[space.valid(table)][:, names].prod(axis=1) < 32).any()


def test_an_untiled_stage_is_fused_and_split_by_a_warp() -> None:
    state = bound(workloads.max_pool2d(1, 8, 8, 4)).state
    fused = "i@j@y@x@"
    assert marks(state.stage("pool")) == [
        (f"{fused}.0", "blockIdx.x"), (f"{fused}.1", "threadIdx.x"),
    ]  # fmt: skip
    tiny = bound(workloads.min_reduce(10, 16)).state
    assert marks(tiny.stage("B")) == [("i", "threadIdx.x")]


def test_a_thread_adds_up_sums_of_neighbours_at_once() -> None:
    state = annotated(average_pool(1, 9, 9, 8, 3, 2)).state
    host, total = state.stage("mean"), state.stage("total")
    assert [it.kind.value for it in total.iters] == ["reduce"] * 2 + ["space"] * 4
    assert [mark for _, mark in marks(total)] == ["unrolled"] * 3
    assert total.vectorize is not None and total.vectorize.iters == (total.iters[-1].name,)
    assert host.vectorize is not None and host.vectorize.iters == (host.iters[-1].name,)


def test_sums_whose_rows_are_no_whole_vectors_stay_alone() -> None:
    state = annotated(average_pool(1, 9, 9, 9, 3, 2)).state
    assert all(stage.vectorize is None for stage in state.stages)


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("tensors", [
    workloads.max_pool2d(1, 2, 7, 3), average_pool(1, 5, 5, 8, 3, 2),
], ids=["padded", "last"])  # fmt: skip
def test_vectors_of_sums_compute_the_definition(
    tensors: list[Tensor], width: int, rng: np.random.Generator
) -> None:
    space = annotated(tensors)
    [vectors] = [d for d in space.decisions if d.domain.rows.tolist() == [[1], [2], [4]]]
    table = space.sample(1, rng)
    table[:, space.slices[vectors.name]] = width
    dag = ComputeDAG.of(tensors)
    data = random_values(dag, rng)
    check(space.resolve(table[0]), data, run_dag(dag, data, dtype=DType.FLOAT64))


def test_a_reduction_across_threads_binds_its_outer_loops_to_blocks() -> None:
    state = bound(workloads.min_reduce(10, 64)).state
    assert marks(state.stage("B")) == [("i", "blockIdx.x"), ("k.1", "threadIdx.x")]


def test_formulas_are_chosen_inside_a_thread() -> None:
    dag = ComputeDAG.of(convolution((9, 8), (3, 3), 16, 16, pad=1))
    (found, *_) = Winograd(tiles=(4,)).rewrite(dag, CUDA)
    state, *_ = generate_sketches(found.dag, CUDA, DEFAULT_CUDA)
    rule = ThreadBind(vectors=(1, 2, 4), untiled_threads=(64, 128))
    state = rule.declare(Space(state), CUDA).state
    transform, out = state.stage("conv.V"), state.stage("relu")
    assert marks(transform)[-2:] == [("p0", "unrolled"), ("p1", "unrolled")]
    assert [it.extent for it in transform.iters[-2:]] == [6, 6]
    assert [kind for _, kind in marks(out)] == ["blockIdx.x", "threadIdx.x", *["unrolled"] * 2]
    assert [it.extent for it in out.iters[-2:]] == [4, 4]


def test_new_rows_copy_by_the_widest_vectors_mostly(rng: np.random.Generator) -> None:
    space = annotated(workloads.matmul(256, 256, 96))
    rule = ThreadBind(vectors=(1, 2, 4), untiled_threads=(64, 128))
    table = rule.sample(space, space.sample(400, rng), CUDA, rng)
    tile = table[:, [space.columns.index(f"C.local.j/{n}") for n in (1, 2, 3)]].prod(axis=1)
    vector = table[:, space.columns.index("B.shared.i1/1")]
    widest = np.where(tile % 4 == 0, 4, np.where(tile % 2 == 0, 2, 1))
    assert 0.75 < (vector == widest).mean() < 1


def in_rows() -> Space:
    """Attention as one kernel of rows and lanes, with its copies bound to threads."""
    [(state, _)] = derive(ChainInRows(), workloads.attention(2, 64, 96, 32), "out", CUDA)
    rule = ThreadBind(vectors=(1, 2, 4), untiled_threads=(64, 128))
    return rule.declare(Space(state), CUDA)


def test_rows_and_lanes_of_a_block_fetch_tiles_together() -> None:
    stage = in_rows().state.stage("K.shared")
    assert [it.annotation.value for it in stage.iters] == [
        "serial", "threadIdx.y", "threadIdx.x", "serial",
    ]  # fmt: skip
    assert stage.vectorize is not None and stage.vectorize.iters == (stage.iters[-1].name,)


def test_rows_and_lanes_are_whole_warps_within_the_limit(rng: np.random.Generator) -> None:
    space = in_rows()
    table = space.sample(400, rng)
    columns = {name: table[:, at] for at, name in enumerate(space.columns)}
    threads = columns["out.i.0/1"] * columns["out.j.0/1"]
    (limit,) = [c for c in space.constraints if c.name == "out.threads"]
    held = as_array(limit.holds(Bounds(space.state, space.values(table))), len(table)).astype(bool)
    assert np.array_equal(held, (threads >= 32) & (threads <= 1024))
    assert not (threads[held] % 32).any()
    drawn = ThreadBind(vectors=(1, 2, 4)).sample(space, table, CUDA, rng)
    assert space.valid(drawn).mean() > 0.95
