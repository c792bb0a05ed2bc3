"""Cycles that one core needs for a statement whose data are all in its first-level cache."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.arrays import Floats, Masks
from ansorpy.cost.analytic.cpu.machine import MachineModel
from ansorpy.cost.analytic.cpu.tile import Tile
from ansorpy.cost.counts import OpCounts
from ansorpy.cost.nest_view import LeafView

__all__ = ["CoreCycles", "StepCycles", "core_cycles", "step_cycles"]

_DIVIDE_OPS = 10.0
_FUNCTION_OPS = 16.0
_VISIT_CYCLES = 4.0
_TREE_CYCLES = 12.0
"""Cycles to reduce the lanes of one vector; the reductions of several rows partly overlap."""
_LOOP_CYCLES = 1.0
_LOOP_INSTRUCTIONS = 2.0
"""Those of an iteration: an addition, and a comparison that is fused with its branch."""
_LONG_BODY = 256.0
_LONG_BODY_COST = 0.35
"""Cost of a body of several unrolled steps, where LLVM hoists loads until registers run out.
Measured on a matmul tile of 8 x 2 vectors: 8, 16, 32 and 64 steps take 1.3, 1.6, 1.9 and 2.3 times
as long as 4.  The nine steps of a convolution cost nothing, though: they share loads.  Of measured
programs of 237 tasks, 256 ranks more pairs correctly than 64."""
_SPILL_CYCLES = 1.5
"""Cycles per step for each register that is lacking: a store, a load and a wait, none hidden."""
_TASK_CYCLES = 20.0
"""Cycles to start an iteration of a parallel loop, for the index arithmetic of collapsed loops.
On the measured programs of an Intel core and of Zen 5, the first ones of a ranking with 20 are
faster than those of one with 40."""


@dataclass(frozen=True)
class StepCycles:
    """Cycles of one step by what limits them; all but the spills overlap."""

    arithmetic: Floats
    loads: Floats
    latency: Floats
    issue: Floats
    spills: Floats

    @property
    def total(self) -> Floats:
        """The cycles of a step: those of the tightest limit, and the spills."""
        limits = [self.arithmetic, self.loads, self.latency, self.issue]
        total: Floats = np.maximum.reduce(limits) + self.spills
        return total


def step_cycles(view: LeafView, tile: Tile, machine: MachineModel) -> StepCycles:
    """Cycles of one step."""
    reads, slots = _reads(view, tile), _slots(view, tile)
    computed = tile.accumulators * slots
    return StepCycles(
        arithmetic=_arithmetic(slots, tile, machine),
        loads=_loads(reads, tile, machine),
        latency=_latency(computed + reads[0] + reads[1], tile, machine),
        issue=_issue(computed + reads[0], tile, machine),
        spills=_SPILL_CYCLES * _spilled(tile, machine),
    )


@dataclass(frozen=True)
class CoreCycles:
    """Cycles of a statement by what the core does in them.

    Args:
        run: Share of the evaluations that run.
        steps, visits: Numbers of steps and of visits, if all ran.
        step, visit: Cycles of one step, and to move the results of one visit out of registers.
        tasks: Iterations of parallel loops that are started.
    """

    run: Floats
    steps: Floats
    step: StepCycles
    visits: Floats
    visit: Floats
    tasks: Floats

    @property
    def total(self) -> Floats:
        """All cycles."""
        evaluated: Floats = self.steps * self.step.total + self.visits * self.visit
        return self.run * evaluated + _TASK_CYCLES * self.tasks


def core_cycles(view: LeafView, tile: Tile, machine: MachineModel, tasks: Floats) -> CoreCycles:
    """The cycles of a statement that is divided into *tasks*."""
    step, visit = step_cycles(view, tile, machine), _visit_cycles(view, tile, machine)
    return CoreCycles(_share_run(view, tile), tile.steps, step, tile.visits, visit, tasks)


def _share_run(view: LeafView, tile: Tile) -> Floats:
    """Share of the evaluations that run, where a condition guards the sum."""
    # If the condition differs within a tile, it is evaluated inside the arithmetic.
    apart = np.zeros(view.rows, dtype=bool)
    for loop, mask in view.changes_guard.items():
        if loop in tile.inside:
            apart |= tile.inside[loop] & mask
    return np.where(apart, 1.0, view.leaf.held)


def _slots(view: LeafView, tile: Tile) -> Floats:
    """Vector instructions of one evaluation; a multiplication with an addition is one FMA.

    Conditions on loop indices that agree in all lanes of a register are tested once, outside.
    """
    every, tested = _instructions(view.body_ops), _instructions(view.choice_ops)
    slots: Floats = np.maximum(every - np.where(_differs_by_lane(view, tile), 0.0, tested), 0.5)
    return slots


def _instructions(ops: OpCounts) -> float:
    floats, ints = ops.floats, ops.ints
    arithmetic = max(floats.mul, floats.addsub) + floats.mad + floats.cmp + floats.otherfunc
    slow = _DIVIDE_OPS * floats.divmod + _FUNCTION_OPS * floats.mathfunc
    integer = ints.total + _DIVIDE_OPS * ints.divmod
    return arithmetic + slow + integer + ops.selects + 0.5 * ops.bools


def _differs_by_lane(view: LeafView, tile: Tile) -> Masks:
    """Where conditions on loop indices differ within a register; always without vectors."""
    differs, length = tile.length <= 1, np.ones(view.rows)
    for loop in reversed(list(view.vector)):
        mask = view.vector[loop]
        if loop in view.changes_choice:
            differs = differs | (mask & view.changes_choice[loop] & (length < tile.lanes))
        length = np.where(mask, length * view.extent[loop], length)
    return differs


def _rate(tile: Tile, machine: MachineModel) -> Floats:
    """Vector instructions per cycle; half-width vectors and scalars may run faster."""
    narrow = tile.length <= tile.lanes / 2
    return np.where(narrow, machine.narrow_ops_per_cycle, machine.vector_ops_per_cycle)


def _arithmetic(slots: Floats, tile: Tile, machine: MachineModel) -> Floats:
    work = tile.accumulators * slots / _rate(tile, machine)
    body = tile.accumulators * slots * tile.unrolled_steps
    too_long = np.where(tile.unrolled_steps > 1, np.maximum(body / _LONG_BODY, 1.0), 1.0)
    slower: Floats = work * (1 + _LONG_BODY_COST * np.log2(too_long))
    return slower


def _in_registers(tile: Tile, machine: MachineModel) -> Floats:
    """Accumulators that generated code keeps in registers: all of an unrolled tile, or none.

    A tile that needs more than twice the registers is not promoted
    (:mod:`ansorpy.codegen.passes.promote_accumulators`).
    """
    kept = tile.unrolled & (tile.accumulators <= 2 * machine.vector_registers)
    return np.where(kept, tile.accumulators, 0.0)


def _in_memory(tile: Tile, machine: MachineModel) -> Floats:
    """Accumulators that each step loads and stores."""
    return np.where(tile.reduces, tile.accumulators - _in_registers(tile, machine), 0.0)


def _spilled(tile: Tile, machine: MachineModel) -> Floats:
    """Registers that a step lacks: it needs accumulators, a row of operands and a broadcast."""
    needed = _in_registers(tile, machine) + tile.vectors + 1
    return np.where(tile.reduces, np.maximum(needed - machine.vector_registers, 0.0), 0.0)


def _reads(view: LeafView, tile: Tile) -> tuple[Floats, Floats]:
    """(vector or broadcast loads, gathered elements) of one step."""
    loads, gathered = np.zeros(view.rows), np.zeros(view.rows)
    for buffer in view.buffers:
        for access in buffer.accesses:
            if not access.is_write:
                simple, irregular = tile.loads(access)
                loads = loads + access.times * simple
                gathered = gathered + access.times * irregular
    return loads, gathered


def _loads(reads: tuple[Floats, Floats], tile: Tile, machine: MachineModel) -> Floats:
    """Cycles of the load and store ports in one step."""
    loads, gathered = reads
    moved = _in_memory(tile, machine)
    return (
        (loads + moved) / machine.loads_per_cycle
        + gathered / machine.gathered_per_cycle
        + moved / machine.stores_per_cycle
    )


def _latency(instructions: Floats, tile: Tile, machine: MachineModel) -> Floats:
    """Latency per step of *instructions*: each waits for the accumulators of the previous one.

    Visits of different sums do not wait for each other, so those that are short run together: as
    many as the core holds instructions of.  A visit loads and stores its accumulators once.
    """
    kept = _in_registers(tile, machine)
    chain = np.where(kept > 0, machine.fma_latency, machine.store_forward_latency)
    step = instructions + 2 * _in_memory(tile, machine) + _LOOP_INSTRUCTIONS * _iterations(tile)
    visit = step * tile.steps / tile.visits + 2 * kept
    together = np.minimum(machine.instructions_in_flight / visit, tile.independent)
    return np.where(tile.reduces, chain / np.maximum(together, 1.0), 0.0)


def _iterations(tile: Tile) -> Floats:
    """Iterations of loops that are not unrolled in one step."""
    return np.where(tile.unrolled, 1.0 / tile.unrolled_steps, tile.rows)


def _issue(instructions: Floats, tile: Tile, machine: MachineModel) -> Floats:
    """Cycles to issue a step's instructions, plus a branch per iteration that is not unrolled."""
    return instructions / machine.issue_per_cycle + _LOOP_CYCLES * _iterations(tile)


def _visit_cycles(view: LeafView, tile: Tile, machine: MachineModel) -> Floats:
    """Cycles to move a tile of results out of registers (and back in, if partial)."""
    [write] = [a for a in view.written.accesses if a.is_write][:1]
    contiguous, scattered = tile.along_vector(write)
    vector_stores = tile.accumulators / machine.stores_per_cycle
    element_stores = tile.rows * tile.length / machine.gathered_per_cycle
    stores = np.where(scattered, 2 * element_stores, vector_stores)
    partial = np.where(tile.reduces, tile.accumulators / machine.loads_per_cycle, 0.0)
    setup = np.where(tile.reduces, _VISIT_CYCLES, 0.0)
    tree = tile.accumulators + tile.rows * _TREE_CYCLES
    return np.where(tile.sums_apart, tree, np.maximum(stores, partial)) + setup
