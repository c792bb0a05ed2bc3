"""ThreadBind: blocks, virtual threads and threads, and the limits on them."""

from __future__ import annotations

import numpy as np

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.annotation.thread_bind import ThreadBind
from ansorpy.rules.derive import generate_sketches
from ansorpy.rules.presets import ANSOR_CUDA
from ansorpy.schedule.space import Space
from ansorpy.schedule.stage import Stage
from tests import workloads
from tests.rules.asking import CUDA


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


def test_a_reduction_across_threads_binds_its_outer_loops_to_blocks() -> None:
    state = bound(workloads.min_reduce(10, 64)).state
    assert marks(state.stage("B")) == [("i", "blockIdx.x"), ("k.1", "threadIdx.x")]
