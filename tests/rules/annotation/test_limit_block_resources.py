"""LimitBlockResources: shared memory, registers and blocks of every row, as lowering finds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.loops import Alloc, Scope, walk_stmts
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.annotation.limit_block_resources import LimitBlockResources, registers_of
from ansorpy.rules.matching.kernels import kernels
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.shared_memory import shared_bytes
from ansorpy.schedule.tables.size import as_array
from tests import workloads
from tests.rules.algorithms.convolutions import convolution
from tests.rules.asking import CUDA as GPU
from tests.rules.gpu_spaces import after, annotated

WORKLOADS = [workloads.matmul(60, 52, 40), convolution((9, 7), (3, 3), 8, 12, pad=1)]


@pytest.mark.parametrize("tensors", WORKLOADS, ids=["matmul", "conv"])
def test_columns_hold_what_lowering_allocates(
    tensors: Sequence[Tensor], rng: np.random.Generator
) -> None:
    space = annotated(tensors)
    table = space.sample(4, rng)
    (kernel,) = kernels(space.state)
    bounds = Bounds(space.state, space.values(table))
    shared = as_array(shared_bytes(bounds, kernel), len(table))
    registers = as_array(registers_of(bounds, kernel), len(table))
    for row, expected, most in zip(table, shared, registers, strict=True):
        body = lower(space.resolve(row)).run.body
        buffers = [s.buffer for s in walk_stmts(body) if isinstance(s, Alloc)]
        tiles = [b for b in buffers if b.scope is Scope.SHARED]
        assert sum(b.shared_bytes for b in tiles) == expected
        assert sum(b.size for b in buffers if b.scope is Scope.LOCAL) < most


def test_rows_that_do_not_fit_are_refused(rng: np.random.Generator) -> None:
    small = replace(GPU, max_shared_optin_bytes=4096)
    space = after(LimitBlockResources(spare=8), workloads.matmul(64, 64, 64), small)
    table = space.sample(500, rng)
    (kernel,) = kernels(space.state)
    bounds = Bounds(space.state, space.values(table))
    used = as_array(registers_of(bounds, kernel), len(table)) + 8
    columns = {name: table[:, at] for at, name in enumerate(space.columns)}
    threads = columns["C.local.i/2"] * columns["C.local.j/2"]
    fits = (used <= GPU.vector_registers) & (used * threads <= GPU.registers_per_block)
    fits &= as_array(shared_bytes(bounds, kernel), len(table)) <= 4096
    named = {c.name: c for c in space.constraints}
    held = [named[f"C.{n}"].holds(bounds) for n in ("shared", "registers")]
    assert np.array_equal(np.all([as_array(h, len(table)) for h in held], axis=0), fits)
    assert 0 < fits.sum() < len(fits)


def test_a_grid_has_at_most_so_many_blocks(rng: np.random.Generator) -> None:
    space = after(LimitBlockResources(most_blocks=9), workloads.matmul(64, 64, 64))
    (limit,) = (c for c in space.constraints if c.name == "C.blocks")
    table = space.sample(300, rng)
    tile = np.prod([table[:, space.slices[f"C.local.{axis}"]] for axis in "ij"], axis=(0, 2))
    assert np.array_equal(
        as_array(limit.holds(Bounds(space.state, space.values(table))), 300), tile * 9 >= 64 * 64
    )


def test_new_rows_mostly_fit(rng: np.random.Generator) -> None:
    for tensors in (workloads.matmul(1024, 1024, 1024), convolution((14, 14), (3, 3), 256, 256)):
        sampler = SketchSampler(Task(ComputeDAG.of(tensors), GPU, 1))
        for sketch in sampler.draw(2, rng):
            table = sketch.sample(256, rng)
            assert sketch.valid(table).mean() > 0.5


def test_of_a_chain_the_larger_sums_count(rng: np.random.Generator) -> None:
    """The sums occupy registers one after the other; rows between them are in shared memory."""
    space = annotated(workloads.attention(2, 24, 40, 16))
    table = space.sample(400, rng)
    table = table[space.valid(table)][:3]
    (kernel,) = kernels(space.state)
    bounds = Bounds(space.state, space.values(table))
    shared = as_array(shared_bytes(bounds, kernel), len(table))
    registers = as_array(registers_of(bounds, kernel), len(table))
    for row, expected, most in zip(table, shared, registers, strict=True):
        body = lower(space.resolve(row)).run.body
        buffers = [s.buffer for s in walk_stmts(body) if isinstance(s, Alloc)]
        tiles = [b for b in buffers if b.scope is Scope.SHARED]
        assert sum(b.shared_bytes for b in tiles) == expected
        sums = [b.size for b in buffers if b.name in ("S", "P")]
        assert max(sums) < most <= max(sums) + 32
