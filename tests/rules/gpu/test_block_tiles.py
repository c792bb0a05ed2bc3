"""Tiles of blocks are drawn within the limits, with whole warps if possible."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.rules.annotation.thread_bind import ThreadBind
from ansorpy.rules.gpu.block_tiles import BlockLimits, draw_block_tiles, threads_of
from ansorpy.rules.matching.kernels import kernels
from tests import workloads
from tests.rules.gpu_spaces import after


@pytest.mark.parametrize("n, m", [(64, 64), (509, 127), (37, 4096), (70, 12)])
def test_tiles_keep_to_the_limits(n: int, m: int, rng: np.random.Generator) -> None:
    space = after(ThreadBind(), workloads.matmul(n, m, 64))
    (kernel,) = kernels(space.state)
    limits = BlockLimits(32, 256, 4, 64, 32)
    table = draw_block_tiles(space, kernel, space.sample(300, rng), limits, rng)
    assert space.within(table).all()
    parts = [table[:, space.slices[d.name]] for d in space.decisions if d.name[-1] in "ij"]
    vthreads, threads, inner = (np.prod([p[:, k] for p in parts], axis=0) for k in range(3))
    assert np.array_equal(threads, threads_of(space, kernel, table))
    assert vthreads.max() <= 4
    assert threads.max() <= 256
    assert (vthreads * inner).max() <= 64
    assert threads.min() >= 32
    assert (threads % 32 == 0).mean() > 0.8
    assert len(np.unique(table, axis=0)) > 100


def test_other_decisions_stay(rng: np.random.Generator) -> None:
    space = after(ThreadBind(), workloads.matmul(64, 64, 64))
    (kernel,) = kernels(space.state)
    before = space.sample(50, rng)
    drawn = draw_block_tiles(space, kernel, before, BlockLimits(32, 256, 4, 64, 32), rng)
    at = space.slices["C.local.k"]
    assert np.array_equal(before[:, at], drawn[:, at])
