"""Resources that tensor-core products and the loads of their operand fragments need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.gpu.banks import BANK_BYTES
from ansorpy.cost.nest_view import BufferView
from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import ForKind

if TYPE_CHECKING:
    from ansorpy.cost.analytic.gpu.statement import Resources, Statement

__all__ = ["held_resources"]

_REGISTER = 4
"""Bytes of a register."""

_DESCRIPTORS = 6.0
"""Instructions issued per warpgroup instruction, including those that compute addresses."""

_MATRIX = 128.0
"""Bytes of each matrix that one ``ldmatrix`` loads for a warp, one per eight of its lanes."""

_ROWS, _ROW_BYTES = 8, 16
"""Rows of such a matrix, and the bytes of each, which lie in four neighbouring banks."""

_COMBINED = 0.75
"""Instructions of a lane for each value that lanes combine in their quad, of which they have 1/16.
"""

_BESIDE_FRAGMENTS = 40.0
"""Registers of a lane in addition to its accumulator fragments; threads without fragments need
``BESIDE`` (:mod:`ansorpy.codegen.cuda.passes.residency`)."""


def held_resources(statement: Statement, found: Resources) -> None:
    """Set the cost of a statement whose results are in the registers of a team's lanes."""
    leaf, each = statement.view.leaf, statement.arithmetic_each
    by_lanes = any(loop.index is ForKind.THREAD_X for loop in leaf.loops[leaf.own_from :])
    read = [b for b in statement.view.buffers if not b.is_written]
    if not read:  # a constant
        return
    if not leaf.op.reduce_axes:
        _operand_resources(statement, found)
        moves = not each and any(b.team for b in read)
        found.issued = 0.0 * found.issued if moves else found.issued + statement.mine * each
    elif by_lanes:
        found.issued = statement.mine * max(1.0, each)
    elif len(statement.view.buffers) > 2:
        _sum_resources(statement, found)
    else:
        found.issued = statement.mine * _COMBINED


def _sum_resources(statement: Statement, found: Resources) -> None:
    """Set the cost of a sum whose three innermost loops are one tensor-core instruction."""
    view, machine = statement.view, statement.machine
    width = max(b.elem_bytes for b in view.buffers if not b.is_written)
    innermost = len(view.leaf.loops) - 1
    depth, columns, rows = (view.extent[innermost - n] for n in range(3))
    instructions = statement.mine / (rows * columns * depth)
    elements = view.written.region[view.leaf.own_from]
    steps = instructions / np.maximum(elements / (rows * columns), 1.0)
    found.multiplied = statement.mine * statement.threads * (8.0 * width)
    outer = view.leaf.loops[: view.leaf.own_from]
    inside = any(loop.kind is AxisKind.REDUCE for loop in outer)  # of another sum, with its own
    found.registers = elements / view.written.team + (0.0 if inside else _BESIDE_FRAGMENTS)
    if view.written.team == machine.warp:
        found.issued = instructions
        found.multiplied = found.multiplied / machine.tensor_bits_per_cycle
        found.waited = steps * (machine.step_latency + machine.tensor_latency)
        return
    # Operands are read in place from shared memory, with one wait per tile.
    moved = instructions * statement.threads * (rows + columns) * depth * width
    found.issued = instructions * _DESCRIPTORS
    found.multiplied = found.multiplied / machine.wgmma_bits_per_cycle
    found.turns = moved / BANK_BYTES
    found.waited = steps / _unrolled(statement) * machine.wgmma_latency


def _rows_a_bank(statement: Statement, source: BufferView) -> Floats:
    """How many of the eight rows of a matrix lie in the same banks."""
    loops = len(statement.view.leaf.loops)
    rows: Floats = np.ones(statement.view.rows)
    for access in source.accesses:
        jumps = [access.flat[n] for n in (loops - 1, loops - 2) if n in access.flat]
        apart = np.maximum.reduce(np.broadcast_arrays(*jumps, np.ones(1))) * source.elem_bytes
        units = np.where(np.isfinite(apart), apart, 0.0).astype(np.int64) // _ROW_BYTES
        rows = np.maximum(rows, np.gcd(units, _ROWS))
    return rows


def _unrolled(statement: Statement) -> Floats:
    """Number of unrolled steps of the reduction."""
    view, total = statement.view, np.ones(statement.view.rows)
    for n, mask in view.unroll.items():
        if view.is_reduce(n):
            total = np.where(mask, total * view.extent[n], total)
    return total


def _operand_resources(statement: Statement, found: Resources) -> None:
    """Set the cost of loading an operand's fragments.

    Either each lane loads the elements it holds, several adjacent ones along the reduction at once,
    or ``ldmatrix`` instructions load whole matrices for the warp.
    """
    view, machine = statement.view, statement.machine
    source = next(b for b in view.buffers if not b.is_written)
    held = view.written.region[view.leaf.own_from] / machine.warp
    found.registers = held * view.written.elem_bytes / _REGISTER
    own = view.leaf.loops[view.leaf.own_from :]
    size = float(source.elem_bytes)
    if not any(loop.index is ForKind.THREAD_X for loop in own):
        found.issued = statement.mine * size / _MATRIX / 2
        turns = statement.mine * statement.threads * size / BANK_BYTES
        found.turns = turns * _rows_a_bank(statement, source)
        return
    near = _REGISTER / size
    along: Floats = np.minimum(source.run[len(view.leaf.loops) - 1], near)
    loads = statement.mine / along
    warps = np.ceil(statement.threads / machine.warp)
    found.issued = loads + (statement.mine / near) * (along < near)
    if source.name in statement.shared:
        found.turns = loads * warps * statement.turns(source, along * size)
    elif not source.alloc_depth:
        found.turns = loads * warps
        statement.from_memory(found, source)
