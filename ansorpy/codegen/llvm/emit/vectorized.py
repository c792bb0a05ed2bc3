"""Vectorized loops, cut into chunks of lanes that are unrolled or looped over."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.emit.affine import Affine, constant, from_lane_values
from ansorpy.codegen.llvm.emit.emitter import Lanes
from ansorpy.codegen.llvm.emit.loops import counted_loop, serial_loop
from ansorpy.codegen.llvm.emit.transposes import Block
from ansorpy.codegen.vectors import Chunk, VectorSpace, chunks, vector_space
from ansorpy.ir.expr import Var
from ansorpy.ir.loops import For
from ansorpy.ir.sizes import fixed

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emit.emitter import Emitter

__all__ = ["emit_blocks", "emit_vectorized"]

_UNROLLED_CHUNKS = 16
"""A loop of up to this many vectors becomes straight-line code; longer ones stay loops."""
_CHUNKS_A_STEP = 4
"""Chunks per iteration of such a loop, which hide the latency of elementwise functions."""


def emit_vectorized(e: Emitter, loop: For) -> None:
    """Emit *loop* and the vectorized loops directly inside it as one vector iteration space."""
    if e.lanes is not None:
        serial_loop(e, loop)  # it is not directly in the loop whose lanes are open
        return
    space = vector_space(loop)
    lanes = e.module.lanes[loop.var]
    if space.extent // lanes > _UNROLLED_CHUNKS:
        inner = space.extent // space.loops[0][1]
        if inner >= lanes:
            serial_loop(e, loop)
            return
        group = lanes * _CHUNKS_A_STEP if inner == 1 else lanes // math.gcd(inner, lanes)
        if group <= space.loops[0][1]:
            _looped(e, space, group, lanes)
            return
    for chunk in chunks(space.extent, lanes):
        _emit_chunk(e, space, chunk, None, 0)


def emit_blocks(e: Emitter, loop: For) -> None:
    """Emit unrolled *loop* around a vector loop: for each chunk in turn, all steps of *loop*."""
    assert isinstance(loop.body, For)
    space = vector_space(loop.body)
    for chunk in chunks(space.extent, e.module.lanes[loop.body.var]):
        e.block = Block.of(loop)
        for step in range(fixed(loop.extent)):
            e.block.step = step
            with e.bound({loop.var: constant(step)}):
                _emit_chunk(e, space, chunk, None, 0)
    e.block = None


def _looped(e: Emitter, space: VectorSpace, group: int, lanes: int) -> None:
    """Emit a long space as a loop over groups of *group* outermost iterations, and unroll the
    remainder.

    A group fills whole vectors, even if the inner loops alone do not.
    """
    outer = space.loops[0][1]
    block = group * (space.extent // outer)

    def body(index: Affine) -> None:
        for chunk in chunks(block, lanes):
            _emit_chunk(e, space, chunk, index, group)

    counted_loop(e, outer // group, space.loops[0][0].name, body)
    done = outer // group * block
    for chunk in chunks(space.extent - done, lanes) if space.extent > done else ():
        moved = Chunk(chunk.start + done, chunk.width, chunk.active)
        _emit_chunk(e, space, moved, None, 0)


def _emit_chunk(
    e: Emitter, space: VectorSpace, chunk: Chunk, index: Affine | None, step: int
) -> None:
    """Emit the body for one chunk, shifted by *index* times *step* outer iterations."""
    values = _lane_values(space, chunk)
    if index is not None:
        var = space.loops[0][0]
        values[var] = values[var] + index.scaled(step)
    before = e.lanes
    e.lanes = Lanes(chunk.width, chunk.active) if chunk.width > 1 else None
    with e.bound(values):
        e.statement(space.body)
    e.lanes = before


def _lane_values(space: VectorSpace, chunk: Chunk) -> dict[Var, Affine]:
    """Each variable's value per lane; inactive lanes repeat the last active one's."""
    lanes = [chunk.start + min(k, chunk.active - 1) for k in range(chunk.width)]
    values: dict[Var, Affine] = {}
    inner = 1
    for var, extent in reversed(space.loops):
        values[var] = from_lane_values([lane // inner % extent for lane in lanes])
        inner *= extent
    return values
