"""What sums of fragments ask for: products of tensor cores, and what loads their operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ansorpy.cost.gpu.banks import BANK_BYTES
from ansorpy.cost.view import Floats
from ansorpy.ir.loops import ForKind

if TYPE_CHECKING:
    from ansorpy.cost.gpu.statement import Asked, Statement

__all__ = ["ask_for_operand", "ask_for_sum"]

_REGISTER = 4
"""Bytes."""

_PRODUCTS, _SUMS = 1024.0, 128.0
"""Products of an instruction for each factor that a register holds, and sums it adds to."""

_MATRIX = 128.0
"""Bytes of a matrix that one instruction loads for a warp, one for each eight of its lanes."""

_BESIDE = 40.0
"""Registers of a lane beside fragments."""


def ask_for_sum(statement: Statement, found: Asked) -> None:
    """One instruction of a warp adds products of fragments."""
    view, machine = statement.view, statement.machine
    width = max(b.elem_bytes for b in view.buffers if not b.is_written)
    instructions = statement.mine / (_PRODUCTS * _REGISTER / width)
    elements = view.written.region[view.leaf.own_from]
    steps = instructions / np.maximum(elements / _SUMS, 1.0)
    found.issued = instructions
    found.multiplied = statement.mine * statement.threads * (8.0 * width)
    found.multiplied = found.multiplied / machine.tensor_bits_per_cycle
    found.registers = elements / machine.warp + _BESIDE
    found.waited = steps * (machine.step_latency + machine.tensor_latency)


def ask_for_operand(statement: Statement, found: Asked) -> None:
    """Each lane loads what it holds, neighbours along the reduction at once; or instructions of
    the warp load whole matrices."""
    view, machine = statement.view, statement.machine
    source = next(b for b in view.buffers if not b.is_written)
    held = view.written.region[view.leaf.own_from] / machine.warp
    found.registers = held * view.written.elem_bytes / _REGISTER
    own = view.leaf.loops[view.leaf.own_from :]
    size = float(source.elem_bytes)
    if not any(loop.annotation is ForKind.THREAD_X for loop in own):
        found.issued = statement.mine * size / _MATRIX / 2
        found.turns = statement.mine * statement.threads * size / BANK_BYTES
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
