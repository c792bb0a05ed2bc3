"""The analytic model of CPUs: seconds of each statement from its loops and the machine alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.cpu.bound import cpu_limits, handover_cpu_seconds
from ansorpy.cost.analytic.cpu.core import CoreCycles, StepCycles, core_cycles
from ansorpy.cost.analytic.cpu.machine import MachineModel
from ansorpy.cost.analytic.cpu.memory import Footprints
from ansorpy.cost.analytic.cpu.tile import tile_of
from ansorpy.cost.analytic.limits import Limits
from ansorpy.cost.nest_view import LeafView
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task

__all__ = ["TERMS", "CpuModel", "LeafCost", "leaf_cost"]

_OVERLAP = 0.25
"""Share of the smaller terms that the largest does not hide."""

_KEPT_FILL, _LOST_FILL = 0.75, 1.25
"""Fractions of the last-level cache.  Touching the first fraction leaves older data in the cache;
touching the second evicts them.  Measured with 14 MB of transformed weights, 28 MB touched and
32 MB of cache: 1.7 times the time with cached weights, 0.65 times that with weights from memory."""

_STEP = tuple(field.name for field in fields(StepCycles))

TERMS = (*_STEP, "visits", "tasks", "l2", "l3", "dram", "forks")
"""The parts of :attr:`LeafCost.terms`.  In a step: arithmetic, loads and stores, waiting for the
last step's sums, issued instructions, spills.  Then: moving results out of registers, starting
tasks, traffic from the caches and from memory, forks."""


@dataclass(frozen=True)
class LeafCost:
    """Seconds of one statement by cause, per setting; in ``total_s``, the causes overlap.

    ``core`` has what ``core_s`` consists of, as cycles, ``per_s`` of which pass in a second.
    """

    core: CoreCycles
    per_s: Floats
    core_s: Floats
    l2_s: Floats
    l3_s: Floats
    dram_s: Floats
    fork_s: Floats

    @property
    def causes(self) -> tuple[Floats, ...]:
        """The seconds on the core, for each level of memory, and for the forks."""
        return self.core_s, self.l2_s, self.l3_s, self.dram_s, self.fork_s

    @property
    def terms(self) -> list[Floats]:
        """The seconds that each of :data:`TERMS` would take alone; a task counts one cycle."""
        core = self.core
        cycles = [core.run * core.steps * getattr(core.step, name) for name in _STEP]
        cycles += [core.run * core.visits * core.visit, core.tasks]
        return [*(c / self.per_s for c in cycles), *self.causes[1:]]

    @property
    def shares(self) -> Floats:
        """:attr:`terms` relative to :attr:`total_s`, ``[n, len(TERMS)]``; 0 where that is 0."""
        total = self.total_s
        terms = np.stack(np.broadcast_arrays(*self.terms, total)[:-1], axis=1)
        found: Floats = np.divide(terms, total[:, None], out=np.zeros_like(terms), where=terms > 0)
        return found

    @property
    def total_s(self) -> Floats:
        causes = (self.core_s, self.l2_s, self.l3_s, self.dram_s)
        largest = np.maximum.reduce(causes)
        together = self.core_s + self.l2_s + self.l3_s + self.dram_s
        total: Floats = largest + _OVERLAP * (together - largest) + self.fork_s
        return total


def leaf_cost(
    view: LeafView, machine: MachineModel, threads: int, reuse_distance_bytes: int
) -> LeafCost:
    """The cost of one statement on *threads* cores of *machine*.

    Between two calls, *reuse_distance_bytes* of other data are touched (:class:`.Task`).
    """
    tile = tile_of(view, machine)
    speedup, tasks, forks = thread_balance(view, threads)
    core = core_cycles(view, tile, machine, tasks)
    at_once = [tile.transposed(buffer.accesses[0]) for buffer in view.buffers]
    footprints = Footprints(view, machine.line_bytes, machine.l1_way_bytes, at_once)
    l1, l2, l3_cache = machine.data_caches
    # Calls find what the last one, or the operator before, left in the cores' own caches; of
    # constants, what the other data have not evicted since.
    own = machine.l2_bytes * speedup
    warm, still = footprints.kept(own), footprints.kept(own, reuse_distance_bytes)
    kept = [still if buffer.is_constant else warm for buffer in view.buffers]
    into_l1, into_l3 = footprints.traffic(l1), footprints.traffic(l3_cache)
    into_l2 = footprints.traffic(l2, kept)
    # Data that exceed the third level come from memory every time; the rest mostly stay cached.
    beyond = np.maximum(1.0 - machine.l3_bytes / np.maximum(into_l3.once, 1.0), 0.0)
    dram, l3 = into_l3.moved * beyond, into_l2.moved
    constants = [b.region[0] * b.elem_bytes for b in view.buffers if b.is_constant]
    if reuse_distance_bytes and constants:
        held: Floats = np.sum(constants, axis=0)
        missing, gone = _missing(held + reuse_distance_bytes, machine), held * (1.0 - still)
        dram = np.maximum(dram, gone * missing)
        l3 = np.maximum(l3, gone * (1.0 - missing))
    per_s = machine.clock_hz * speedup
    return LeafCost(
        core=core,
        per_s=per_s,
        core_s=core.total / per_s,
        l2_s=into_l1.moved / machine.l2_bandwidth / per_s,
        l3_s=l3 / np.minimum(machine.l3_bandwidth * per_s, machine.l3_bytes_per_s),
        dram_s=dram / np.minimum(machine.dram_core_bytes_per_s * speedup, machine.dram_bytes_per_s),
        fork_s=forks * machine.fork_join_s,
    )


def _missing(reach: Floats, machine: MachineModel) -> Floats:
    """Share of data evicted from the last-level cache while *reach* bytes were touched.

    The cache is shared and not strictly LRU, so the transition is gradual.
    """
    fill = reach / max(machine.l3_bytes, 1)
    lost: Floats = np.clip((fill - _KEPT_FILL) / (_LOST_FILL - _KEPT_FILL), 0.0, 1.0)
    return lost


def thread_balance(view: LeafView, threads: int) -> tuple[Floats, Floats, Floats]:
    """(speed-up from dividing the work into equal tasks, tasks and forks of this statement).

    Statements inside another stage's parallel loop run in that stage's tasks.
    """
    tasks, marked = np.ones(view.rows), np.zeros(view.rows, dtype=bool)
    own = np.zeros(view.rows, dtype=bool)
    forks = np.zeros(view.rows)
    for loop, mask in view.parallel.items():
        first = mask & ~marked
        if view.leaf.loops[loop].stage == view.leaf.stage:
            own = own | first
        forks = np.where(first & own, view.outer_prod[loop], forks)
        tasks = np.where(mask, tasks * view.extent[loop], tasks)
        marked = marked | mask
    speedup = tasks / np.ceil(tasks / threads)
    return speedup, np.where(own, tasks, 0.0), forks if threads > 1 else forks * 0


def _together(views: Sequence[LeafView], costs: Sequence[LeafCost]) -> Floats:
    total: Floats = np.zeros(1)
    for view, cost in zip(views, costs, strict=True):
        total = total + view.spread(cost.total_s)
    return total


@dataclass(frozen=True)
class CpuModel:
    """A roofline model with register tiles, in closed form on the population's columns.

    It covers arithmetic, load and store ports, accumulation latency, spills, traffic through three
    caches and memory, balance of parallel tasks, and the cost of starting them.

    Args:
        machine: Replaces the machine of the task's target.
    """

    machine: MachineModel | None = None
    default_may_win: bool = True

    def seconds(self, task: Task, views: Sequence[LeafView]) -> Floats:
        """Predicted seconds of each candidate; statements run one after another."""
        return _together(views, self._costs(task, views))

    def explained(self, task: Task, views: Sequence[LeafView]) -> tuple[Floats, list[Floats]]:
        """The same, and the shares of :data:`TERMS` in the time of each statement."""
        costs = self._costs(task, views)
        return _together(views, costs), [cost.shares for cost in costs]

    def causes(self, task: Task, views: Sequence[LeafView]) -> Floats:
        """Seconds of each statement on the core, for each level of memory, and for its forks."""
        found = []
        for view, cost in zip(views, self._costs(task, views), strict=True):
            found.append(np.stack([view.spread(seconds) for seconds in cost.causes], axis=1))
        return np.stack(found, axis=1)

    def _costs(self, task: Task, views: Sequence[LeafView]) -> list[LeafCost]:
        machine = self.machine or MachineModel.of(task.target)
        return [leaf_cost(v, machine, task.threads, task.reuse_distance_bytes) for v in views]

    def least_seconds(self, task: Task, dag: ComputeDAG) -> float:
        """Least seconds that any schedule of *dag*, a definition of *task*, can take."""
        return self.limits(task, dag, 0).least_s

    def limits(self, task: Task, dag: ComputeDAG, kernels: int) -> Limits:
        """What limits schedules of *dag*; a CPU calls its code directly."""
        return cpu_limits(task, dag, self.machine or MachineModel.of(task.target))

    def handover_seconds(self, task: Task) -> float:
        """Seconds that *task* takes longer between other calls than when it is timed alone."""
        return handover_cpu_seconds(task, self.machine or MachineModel.of(task.target))
