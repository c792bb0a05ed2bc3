"""A compiled program as a list of calls: the code and the memory of each.

The memory is the caller's inputs and outputs, the context's arena, and the constants: ``POOL``
holds those that calls read at run time, ``RAW`` are those needed only to fill it, and ``SCRATCH``
is memory of one call that fills it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ansorpy.arrays import Array
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.errors import CodegenError
from ansorpy.graph.memory import Slot
from ansorpy.ir.alias import Alias
from ansorpy.ir.extents import AnyExtent, dim_extent, dims_of, most, prod_of
from ansorpy.ir.sizes import Sizes, at_most
from ansorpy.ir.strides import padded
from ansorpy.ir.symbols import Dim
from ansorpy.measure.build.built import ParamSpec
from ansorpy.runtime.control import Argument, PlannedControl, Tells
from ansorpy.runtime.footprint import Footprint
from ansorpy.runtime.ports import Port
from ansorpy.runtime.sizes import Told, told_by
from ansorpy.target import Target

__all__ = ["ExecutionPlan", "PlanStep", "ScheduledProgram"]


@dataclass(frozen=True)
class PlanStep:
    """One call of *code*, with arguments in the order of its parameters; *name* is for display.

    The sizes of *dims* follow the arguments.  The call counts those that it *tells*.  ``params``
    describes the parameters; its dimensions are those of the code.  ``shared_bytes`` is the
    workspace that the threads of the call share, by *dims*.
    """

    code: ObjectCode
    args: tuple[Argument, ...]
    name: str = ""
    dims: tuple[Dim, ...] = ()
    tells: tuple[Tells, ...] = ()
    params: tuple[ParamSpec, ...] = ()
    shared_bytes: AnyExtent = 0


@dataclass(frozen=True)
class ScheduledProgram:
    """A program whose schedule is known, and what calls it.

    Args:
        name: That of its first call.
        schedule: The schedule of each part of the sizes (:mod:`ansorpy.runtime.schedules`).
        calls: Number of its calls.
        dims: Names of the dimensions that a call depends on.  The definition of *schedule* has
            those of the first call only.
    """

    name: str
    schedule: str
    calls: int = 0
    dims: tuple[str, ...] = ()

    def called(self, dims: Sequence[Dim]) -> ScheduledProgram:
        """The program with one more call, which depends on *dims*."""
        names = dict.fromkeys((*self.dims, *(dim.name for dim in dims)))
        return replace(self, calls=self.calls + 1, dims=tuple(names))


@dataclass(frozen=True)
class ExecutionPlan:
    """All inputs for making a library.

    ``direct`` are the constants that are read as they are, with their offsets in ``POOL``;
    ``packs`` fills the rest of the pool once, from these and from ``raw``.  ``programs`` are those
    whose schedules are known.  ``arena_bytes`` is the size of the arena, at the largest sizes if it
    has ``slots``.  ``aliases`` are the outputs in the memory of inputs.  ``counted`` are the
    dimensions whose sizes steps tell, and the largest size of each.  ``controls`` are loops and
    branches over the steps, each before those inside it.
    """

    kind: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    steps: tuple[PlanStep, ...]
    packs: tuple[PlanStep, ...]
    raw: tuple[Array, ...]
    direct: tuple[tuple[int, Array], ...]
    arena_bytes: int
    pool_bytes: int
    target: Target
    threads: int
    median_s: float | None = None
    programs: tuple[ScheduledProgram, ...] = ()
    slots: tuple[Slot, ...] = ()
    aliases: tuple[Alias, ...] = ()
    counted: Sizes = field(default_factory=dict)
    controls: tuple[PlannedControl, ...] = ()

    @cached_property
    def told(self) -> tuple[Told, ...]:
        """Where a call states the size of each dimension.

        Raises:
            UsageError: The inputs do not tell the size of one of them.
        """
        return told_by(self.inputs, self._dims)

    @property
    def _dims(self) -> tuple[Dim, ...]:
        """The dimensions that a run depends on, beyond those of its inputs and capacities."""
        extents = [extent for port in self.outputs for extent in port.shape]
        extents += [slot.size_bytes for slot in self.slots]
        extents += self.offsets
        extents += [dim_extent(dim) for step in self.steps for dim in step.dims]
        known = {*self.capacities, *self.counted}
        return tuple(dim for dim in dims_of(extents) if dim not in known)

    def at_most(self, port: Port) -> Port:
        """*port*, an output, with the largest sizes of what steps count."""
        return replace(port, shape=tuple(at_most(extent, self.counted) for extent in port.shape))

    def is_counted(self, port: Port) -> bool:
        """Whether only steps tell the shape of *port*."""
        return not self.counted.keys().isdisjoint(dims_of(port.shape))

    @cached_property
    def offsets(self) -> tuple[AnyExtent, ...]:
        """The extents that the addresses and the lengths of loops in a run depend on."""
        found = [extent for step in self.steps for arg in step.args for extent in arg.extents]
        found += [extent for control in self.controls for extent in control.extents]
        return tuple(dict.fromkeys(found))

    @cached_property
    def capacities(self) -> Mapping[Dim, tuple[Alias, ...]]:
        """The outputs whose shapes, as a caller gives them, state each capacity."""
        dims = dict.fromkeys(alias.capacity for alias in self.aliases)
        return {
            dim: tuple(alias for alias in self.aliases if alias.capacity == dim)
            for dim in dims
            if dim is not None
        }

    def is_apart(self, alias: Alias) -> bool:
        """Whether rows of the output lie as far apart as the capacity of its memory says."""
        return prod_of(self.outputs[alias.output].shape[: alias.axis]) != 1

    @cached_property
    def workspaces(self) -> tuple[tuple[AnyExtent, int], ...]:
        """The bytes of workspace that calls need: for all threads, and for each; the first by the
        sizes that inputs tell."""
        most_of = {**self.counted, **{dim: dim.high for dim in self.capacities}}
        found = [(at_most(s.shared_bytes, most_of), s.code.thread_bytes) for s in self.steps]
        return tuple(dict.fromkeys(found))

    @property
    def slot_starts(self) -> tuple[int, ...]:
        """Where each slot starts, in bytes, in an arena for the largest sizes."""
        starts: list[int] = []
        for slot in self.slots:
            ends = (starts[n] + padded(most(self.slots[n].size_bytes)) for n in slot.behind)
            starts.append(max(ends, default=0))
        return tuple(starts)

    @property
    def footprint(self) -> Footprint:
        """The memory that a run needs whose calls do not overlap, at the largest sizes."""
        shared = {alias.input for alias in self.aliases}
        own = [port for number, port in enumerate(self.inputs) if number not in shared]
        return Footprint(
            constants=self.pool_bytes,
            arena=self.arena_bytes,
            workspace=max(
                (most(shared) + self.threads * each for shared, each in self.workspaces), default=0
            ),
            ports=sum(most(port.bytes) for port in (*own, *self.outputs)),
        )

    @property
    def objects(self) -> list[ObjectCode]:
        """The distinct object codes of all calls, including those of ``packs``.

        Raises:
            CodegenError: Two different object codes share a symbol.
        """
        found: dict[str, ObjectCode] = {}
        for step in (*self.steps, *self.packs):
            known = found.setdefault(step.code.symbol, step.code)
            if known.digest != step.code.digest:
                raise CodegenError(f"two different programs are both called {known.symbol}")
        return list(found.values())
