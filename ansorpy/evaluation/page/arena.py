"""The memory plan of a network as rectangles: bytes of the arena over the calls that need them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from ansorpy.ir.extents import most
from ansorpy.ir.loops import Role
from ansorpy.ir.strides import padded
from ansorpy.measure.build.built import ParamSpec
from ansorpy.runtime.control import MemoryRegion
from ansorpy.runtime.execution_plan import ExecutionPlan, PlanStep

__all__ = ["ArenaValue", "arena_values"]


@dataclass(frozen=True)
class ArenaValue:
    """A value in the arena: written by call ``first`` and needed until call ``last``.

    ``name`` is the call that writes it; ``start`` and ``end`` are bytes, at the largest sizes.
    """

    name: str
    first: int
    last: int
    start: int
    end: int

    def shares_bytes(self, start: int, end: int) -> bool:
        return start < self.end and self.start < end


def arena_values(plan: ExecutionPlan) -> list[ArenaValue]:
    """The values that the calls of *plan* write to its arena, in the order of the calls."""
    slots = _slot_starts(plan)
    accesses = [list(_accesses(step, slots)) for step in plan.steps]
    found = []
    for number, step in enumerate(plan.steps):
        for role, start, end in accesses[number]:
            if role is Role.OUTPUT:
                value = ArenaValue(step.name, number, number, start, end)
                last = _last_read(value, accesses[number + 1 :])
                found.append(ArenaValue(step.name, number, last, start, end))
    return found


def _accesses(step: PlanStep, slots: Sequence[int]) -> Iterator[tuple[Role, int, int]]:
    """The bytes of the arena that a call reads and writes."""
    for argument, spec in zip(step.args, step.params, strict=True):
        if argument.region is MemoryRegion.ARENA:
            start = most(argument.offset) + (slots[argument.number] if slots else 0)
            yield spec.role, start, start + _bytes(spec)


def _slot_starts(plan: ExecutionPlan) -> list[int]:
    """Where each slot of the arena starts at the largest sizes."""
    starts: list[int] = []
    for slot in plan.slots:
        ends = [starts[n] + padded(most(plan.slots[n].size_bytes)) for n in slot.behind]
        starts.append(max(ends, default=0))
    return starts


def _bytes(spec: ParamSpec) -> int:
    """Bytes from the first element to the end of the last one."""
    shape = [most(extent) for extent in spec.shape]
    if spec.strides is None:
        elements = prod(shape)
    else:
        steps = zip(shape, spec.strides, strict=True)
        elements = 1 + sum((extent - 1) * most(stride) for extent, stride in steps)
    return elements * spec.dtype.bytes


def _last_read(value: ArenaValue, later: Sequence[Sequence[tuple[Role, int, int]]]) -> int:
    """The last call that reads *value* before others overwrite it."""
    last = value.first
    for number, accesses in enumerate(later, value.first + 1):
        mine = [role for role, start, end in accesses if value.shares_bytes(start, end)]
        if any(role is not Role.OUTPUT for role in mine):
            last = number
        if Role.OUTPUT in mine:
            break
    return last
