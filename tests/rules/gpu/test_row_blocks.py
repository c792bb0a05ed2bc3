"""GPU kernels of rows and lanes: which stages can form one, and how all of them follow it."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.loops import Barrier, For, ForKind, walk_stmts
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.rules.gpu.row_blocks import (
    RowBlock,
    RowKernel,
    row_kernel,
    thread_sources,
    threads_in_rows,
)
from ansorpy.rules.matching.kernels import kernels_in
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import CUDA
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.stage import KernelStyle
from ansorpy.schedule.state import State
from tests.rules.asking import CUDA as GPU
from tests.rules.gpu_workloads import WORKLOADS


def shares(rows: int, columns: int) -> State:
    """Each element as a share of its row."""
    x, k = placeholder((rows, columns), name="x"), reduce_axis(columns, name="k")
    total = compute((rows,), lambda i: sum_over(x[i, k], axis=k), name="total")
    return State.initial([x, compute((rows, columns), lambda i, j: x[i, j] / total[i], name="out")])


def test_rows_are_an_axis_whose_blocks_are_apart() -> None:
    kernel = row_kernel(shares(6, 10), "out", ["total"], (), {"i", "j"})
    assert kernel == RowKernel("out", ("total",), ("i",), "i", 10)
    alone = row_kernel(shares(6, 10), "out", ["total"], (), set())
    assert isinstance(alone, RowKernel) and alone.row is None
    assert isinstance(row_kernel(shares(1, 10), "out", ["total"], (), {"i"}), str)


def test_a_stage_whose_rows_are_others_is_refused() -> None:
    x, k = placeholder((4, 6, 5), name="x"), reduce_axis(5, name="k")
    total = compute((24,), lambda r: sum_over(x[r // 6, r % 6, k], axis=k), name="total")
    out = compute((4, 6, 5), lambda i, j, c: x[i, j, c] / total[i + j * 4], name="out")
    found = row_kernel(State.initial([x, out]), "out", ["total"], (), {"i", "j"})
    assert found == 'no axis of "total" runs along the rows of a block'


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(6, 10), (1 << 5, 3), (7, 33)])
def test_all_threads_come_to_all_barriers(rows: int, columns: int, across: bool) -> None:  # noqa: FBT001
    """However short its loops are, no stage runs on fewer threads than the kernel has."""
    made = RowBlock(
        shares(rows, columns), RowKernel("out", ("total",), ("i",), "i", columns, across)
    )
    made.tile_last()
    made.place("total")
    along = {False: {"out.i/1": 4, "out.j.0/1": 16}, True: {"out.i/1": 16, "out.j.0/1": 4}}[across]
    columns_of = {c: along.get(c, 1) for d in made.state.decisions for c in d.columns}
    program = lower(made.state.resolve(columns_of)).run
    for kind in (ForKind.THREAD_X, ForKind.THREAD_Y):
        extents = {s.extent for s in walk_stmts(program.body)
                   if isinstance(s, For) and s.kind is kind}  # fmt: skip
        assert extents == {16 if kind is ForKind.THREAD_X else 4}
    assert any(isinstance(s, Barrier) for s in walk_stmts(program.body))


def test_rows_and_lanes_are_found_in_annotated_kernels(rng: np.random.Generator) -> None:
    for name in ("softmax", "layer_norm", "attention"):
        sampler = SketchSampler(Task(ComputeDAG.of(WORKLOADS[name]), GPU, 1), CUDA)
        found = [k for s in sampler.draw(6, rng) for k in kernels_in(s.state, KernelStyle.ROWS)]
        assert found, name
        for kernel in found:
            assert ForKind.THREAD_X in thread_sources(kernel)
            assert len(threads_in_rows(kernel)) == len(thread_sources(kernel))
