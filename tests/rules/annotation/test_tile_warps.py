"""TileWarps: no more warps than a block may have, and rows that fit from the start."""

from __future__ import annotations

import numpy as np

from ansorpy.ir.loops import ForKind
from ansorpy.rules.annotation.limit_block_resources import registers_of
from ansorpy.rules.gpu.warp_tiling import warp_factors, warp_sum
from ansorpy.schedule.bounds.inference import Bounds
from tests import workloads
from tests.rules.gpu_spaces import annotated
from tests.tensor_cores import matmul, sketches


def test_rows_have_tiles_that_fit(rng: np.random.Generator) -> None:
    (sketch,) = sketches(matmul("float16", 1024, 2048, 512), rng)
    table = sketch.sample(256, rng)
    assert sketch.valid(table).mean() > 0.9
    kernel = sketch.state.stage("C")
    total = warp_sum(sketch.state, kernel)
    columns = dict(zip(sketch.columns, table.T, strict=True))
    warps = np.prod([columns[str(f)] for f in warp_factors(total)], axis=0)
    assert warps.max() <= 32 and len(set(warps.tolist())) > 3


def test_too_many_warps_break_a_constraint(rng: np.random.Generator) -> None:
    (sketch,) = sketches(matmul("float16", 1024, 2048, 512), rng)
    row = dict.fromkeys(sketch.columns, 0)
    row |= {name: 1 for name in sketch.columns if "/" in name or "pipeline" in name}
    at = list(sketch.columns)
    row["C.warp.i/1"], row["C.warp.j/1"] = 4, 8
    assert sketch.valid(np.array([[row[c] for c in at]])).all()
    row["C.warp.j/1"] = 16
    assert not sketch.valid(np.array([[row[c] for c in at]])).any()


def test_fragments_are_registers_of_each_lane(rng: np.random.Generator) -> None:
    (sketch,) = sketches(matmul("float16", 256, 256, 64), rng)
    row = dict.fromkeys(sketch.columns, 0)
    row |= {name: 1 for name in sketch.columns if "/" in name or "pipeline" in name}
    row |= {"C.warp.i/2": 2, "C.warp.j/2": 4}
    bound = sketch.resolve([row[c] for c in sketch.columns])
    # Sums: 2 * 4 fragments of 4; A: 2 fragments of 8 halves; B: 4 of 4 halves.
    assert registers_of(Bounds(bound, {}), bound.stage("C")) == 2 * 4 * 4 + 2 * 4 + 4 * 2


def test_other_kernels_are_left_alone() -> None:
    space = annotated(workloads.matmul(64, 64, 64))
    assert not any("warps" in c.name for c in space.constraints)
    kinds = {it.annotation for stage in space.state.stages for it in stage.iters}
    assert ForKind.THREAD_Z not in kinds
