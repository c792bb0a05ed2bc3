"""Vectorized loops: cut into chunks of lanes, the chunks unrolled or looped over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansorpy.codegen.llvm.affine import Affine, constant, from_lane_values
from ansorpy.codegen.llvm.emitter import Lanes
from ansorpy.codegen.llvm.loops import counted_loop
from ansorpy.codegen.llvm.transposes import Block
from ansorpy.codegen.vectors import Chunk, VectorSpace, chunks, vector_space
from ansorpy.ir.expr import Var
from ansorpy.ir.loops import For

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.emitter import Emitter

__all__ = ["emit_blocks", "emit_vectorized"]

_UNROLLED_CHUNKS = 16
"""Up to this many vectors a loop is straight code; beyond, chunks are looped over."""
_CHUNKS_A_STEP = 4
"""Chunks in one iteration of such a loop: hides the latency of elementwise functions."""


def emit_vectorized(e: Emitter, loop: For) -> None:
    """Emit *loop* and the vectorized loops directly inside as one vector iteration space."""
    if e.lanes is not None:
        _inside_vector_loop(e, loop)
        return
    space = vector_space(loop)
    lanes = e.module.lanes_of(loop, space.body)
    count = space.extent // lanes
    if count > _UNROLLED_CHUNKS and len(space.loops) == 1:
        _looped(e, space, lanes)
        return
    if count > _UNROLLED_CHUNKS and _inner_fills_lanes(space, lanes):
        _outermost_serial(e, loop)
        return
    for chunk in chunks(space.extent, lanes):
        _emit_chunk(e, space, chunk, None, 0)


def emit_blocks(e: Emitter, loop: For) -> None:
    """Emit unrolled *loop* around a vector loop, all of its steps for one chunk after another."""
    assert isinstance(loop.body, For)
    space = vector_space(loop.body)
    for chunk in chunks(space.extent, e.module.lanes_of(loop.body, space.body)):
        e.block = Block(loop.var, loop.extent)
        for step in range(loop.extent):
            e.block.step = step
            with e.bound({loop.var: constant(step)}):
                _emit_chunk(e, space, chunk, None, 0)
    e.block = None


def _inside_vector_loop(e: Emitter, loop: For) -> None:
    """A vectorized loop that is not directly nested in the outer one adds no lanes."""

    def body(index: Affine) -> None:
        with e.bound({loop.var: index}):
            e.statement(loop.body)

    counted_loop(e, loop.extent, loop.var.name, body)


def _inner_fills_lanes(space: VectorSpace, lanes: int) -> bool:
    inner = space.extent // space.loops[0][1]
    return inner >= lanes and inner % lanes == 0


def _outermost_serial(e: Emitter, loop: For) -> None:
    def body(index: Affine) -> None:
        with e.bound({loop.var: index}):
            e.statement(loop.body)

    counted_loop(e, loop.extent, loop.var.name, body)


def _looped(e: Emitter, space: VectorSpace, lanes: int) -> None:
    """A long single loop: several full vectors an iteration, the rest as straight code."""
    steps = space.extent // (lanes * _CHUNKS_A_STEP)
    step = lanes * _CHUNKS_A_STEP

    def body(index: Affine) -> None:
        for chunk in range(_CHUNKS_A_STEP):
            _emit_chunk(e, space, Chunk(chunk * lanes, lanes, lanes), index, step)

    counted_loop(e, steps, space.loops[0][0].name, body)
    done = steps * step
    for chunk in chunks(space.extent - done, lanes) if space.extent > done else ():
        moved = Chunk(chunk.start + done, chunk.width, chunk.active)
        _emit_chunk(e, space, moved, None, 0)


def _emit_chunk(
    e: Emitter, space: VectorSpace, chunk: Chunk, index: Affine | None, step: int
) -> None:
    """Emit the body for one chunk; *index* counts iterations of *step* elements before it."""
    values = _lane_values(space, chunk)
    if index is not None:
        var = space.loops[0][0]
        values = {var: values[var] + index.scaled(step)}
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
        values[var] = from_lane_values({}, [lane // inner % extent for lane in lanes])
        inner *= extent
    return values
