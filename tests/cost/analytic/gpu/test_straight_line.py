"""The model's straight-line code is the generator's: as many steps, as many loads."""

from __future__ import annotations

import numpy as np

from ansorpy.codegen.cuda.passes.unroll_registers import unroll_registers
from ansorpy.codegen.cuda.passes.unroll_sums import longest_bodies
from ansorpy.cost.analytic.gpu.machine import GpuMachine
from ansorpy.cost.analytic.gpu.statement import Statement
from ansorpy.cost.nest_view import LeafView, view_nest
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import ReduceKind
from ansorpy.ir.loops import For, ForKind, Stmt, Store, substatements
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.schedule.lowering.program import lower
from tests import workloads
from tests.rules.asking import CUDA as GPU


def sketch_of(m: int, n: int, k: int) -> PlacedSketch:
    drawn = SketchSampler(Task(ComputeDAG.of(workloads.matmul(m, n, k)), GPU, 1))
    (found,) = (s for s in drawn.every() if not any(".rf" in c for c in s.columns))
    return found


def products_written(s: Stmt) -> int:
    """Products of the longest straight-line body of sums."""
    if isinstance(s, Store):
        return int(s.reduce is ReduceKind.SUM)
    inner = [products_written(part) for part in substatements(s)]
    unrolled = isinstance(s, For) and s.kind in (ForKind.UNROLLED, ForKind.VECTORIZED)
    return (s.extent if unrolled and isinstance(s, For) else 1) * max(inner, default=0)


def sums(views: list[LeafView]) -> Statement:
    (view,) = (v for v in views if v.leaf.op.reduce_axes)
    return Statement(view, GpuMachine.of(GPU), ("A.shared", "B.shared"))


def test_bodies_are_as_long_as_those_of_programs(rng: np.random.Generator) -> None:
    sketch = sketch_of(190, 256, 96)
    table = sketch.sample(256, rng)
    table = table[sketch.valid(table)][:12]
    statement = sums(view_nest(sketch.space.nest(table), len(table)))
    predicted = statement.view.spread(statement.tile * statement.body.steps)
    for row, expected in zip(table, predicted, strict=True):
        program = unroll_registers(lower(sketch.resolve(row)).run, GPU)
        assert products_written(longest_bodies(program).body) == expected


def tile(**columns: int) -> dict[str, int]:
    """A tile of 128 x 128 for 256 threads, 8 x 8 sums each."""
    axes = {f"C.local.{a}/{n}": f for a in "ij" for n, f in enumerate((2, 16, 4), 1)}
    copies = {"A.shared.i1/1": 4, "B.shared.i1/1": 4, "C.local.pipeline": 3, "A.shared.pad": 4}
    return {**axes, **copies, "C.local.k/1": 16, **columns}


def needed(row: dict[str, int]) -> tuple[float, float]:
    """Instructions and turns of the banks for 16 steps of one thread's sums."""
    sketch = sketch_of(256, 256, 256)
    table = np.array([[row.get(c, 0) for c in sketch.columns]])
    assert sketch.valid(table).all()
    found = sums(view_nest(sketch.space.nest(table), 1)).resources()
    return float(found.issued[0]) / 16, float(found.turns[0]) / 16


def test_loads_are_those_of_the_machine_code() -> None:
    """``LDS.128`` of both operands: 4 a step for 64 products (docs/results/gpu_figures.md)."""
    issued, turns = needed(tile())
    assert 1024 + 64 <= issued <= 1024 + 64 + 16
    # Two different rows of A, 256 bytes of B, for each of 8 warps.
    assert turns == 8 * (32 * 1 + 32 * 2)


def test_rows_without_pads_meet_in_banks_where_threads_read_many() -> None:
    wide = {f"C.local.{a}/2": n for a, n in (("i", 64), ("j", 4))}
    _, padded = needed(tile(**wide))
    _, dense = needed(tile(**wide, **{"A.shared.pad": 0}))
    assert padded < dense
