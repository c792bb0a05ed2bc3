"""Where the calls of a compiled program find their data, and the loops and branches over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from ansorpy.graph.control import Branch, Carried, Control, Loop, Spans
from ansorpy.graph.network import Network
from ansorpy.ir.extents import AnyExtent
from ansorpy.ir.symbols import Dim

__all__ = [
    "Argument", "BranchSteps", "CarriedPlaces", "LoopSteps", "MemoryRegion", "PlannedControl",
    "Stride", "Tells", "controls_of",
]  # fmt: skip


class MemoryRegion(Enum):
    INPUT = "input"
    OUTPUT = "output"
    ARENA = "arena"
    POOL = "pool"
    RAW = "raw"
    SCRATCH = "scratch"
    MOVING = "moving"
    """Behind a pointer that a loop changes."""


@dataclass(frozen=True)
class Stride:
    """``bytes`` for each iteration of loop number ``loop`` before this one, or after it.

    ``is_last`` says after it: row 0 then belongs to the last iteration.
    """

    loop: int
    bytes: AnyExtent
    is_last: bool


@dataclass(frozen=True)
class Argument:
    """An address: *offset* bytes into the region, or into its *number*-th tensor or slot.

    Inputs, outputs and ``RAW`` are tensors.  Only an arena of values whose sizes depend on the call
    has slots.  *strides* are added to it.
    """

    region: MemoryRegion
    offset: AnyExtent = 0
    number: int = 0
    strides: tuple[Stride, ...] = ()

    @property
    def extents(self) -> tuple[AnyExtent, ...]:
        """What it depends on that may depend on sizes."""
        return (self.offset, *(stride.bytes for stride in self.strides))


@dataclass(frozen=True)
class Tells:
    """After a step or loop, the int64 at *place* is the size of *dim*.

    With a *depth*, that holds until the end of an iteration of the innermost of so many loops.
    """

    dim: Dim
    place: Argument
    depth: int = 0


@dataclass(frozen=True)
class CarriedPlaces:
    """A value of ``bytes`` that each iteration reads at pointer ``current`` and writes at ``next``.

    They are numbers of ``MOVING`` memory; see :class:`ansorpy.graph.control.Carried`.
    """

    before: Argument
    result: Argument
    spare: Argument
    bytes: AnyExtent
    current: int
    next: int


@dataclass(frozen=True)
class LoopSteps(Spans):
    """A loop over steps, whose results tell sizes; see :class:`ansorpy.graph.control.Loop`."""

    number: int
    trips: AnyExtent | None
    limit: Argument | None
    begins: Argument | None
    goes_on: Argument | None
    counter: Argument
    carried: tuple[CarriedPlaces, ...]
    count: Argument | None = None
    tells: tuple[Tells, ...] = ()
    is_bounded: bool = False

    @property
    def extents(self) -> tuple[AnyExtent, ...]:
        """What it depends on that may depend on sizes."""
        own = (self.limit, self.begins, self.goes_on, self.counter, self.count)
        held = [place for c in self.carried for place in (c.before, c.result, c.spare)]
        places = [*(place for place in own if place is not None), *held]
        found = [extent for place in places for extent in place.extents]
        found += [c.bytes for c in self.carried]
        return tuple(found if self.trips is None else [*found, self.trips])


@dataclass(frozen=True)
class BranchSteps(Spans):
    """A branch over steps, whose results tell sizes; see :class:`ansorpy.graph.control.Branch`."""

    middle: int
    condition: Argument
    tells: tuple[Tells, ...] = ()

    @property
    def extents(self) -> tuple[AnyExtent, ...]:
        """What it depends on that may depend on sizes."""
        return self.condition.extents


PlannedControl = LoopSteps | BranchSteps


def controls_of(
    network: Network, places: Mapping[str, Argument]
) -> tuple[tuple[PlannedControl, ...], dict[str, Argument]]:
    """The loops and branches of *network*, and the places of all its values.

    Args:
        places: Those of inputs, outputs, and values of the arena: what loops move, and parts of
            other values, lie behind these.
    """
    found = _Places(network, places)
    controls = tuple(
        BranchSteps(c.start, c.stop, c.middle, found.of(c.condition), found.tells(c))
        if isinstance(c, Branch) else found.loop(number, c)
        for number, c in enumerate(network.controls)
    )  # fmt: skip
    views = {name: found.of(name) for name in network.subviews}
    return controls, {**places, **found.moving, **views}


class _Places:
    def __init__(self, network: Network, places: Mapping[str, Argument]):
        self.network = network
        self.places = places
        self.moving: dict[str, Argument] = {}

    def of(self, name: str) -> Argument:
        """The place of the value *name*."""
        if name in self.network.subviews:
            view = self.network.subviews[name]
            whole = self.of(view.of)
            return replace(whole, offset=whole.offset + view.offset_bytes)
        return self.moving[name] if name in self.moving else self.places[name]

    def loop(self, number: int, loop: Loop) -> LoopSteps:
        """The loop with this *number*; those around it come before it."""
        for row in loop.rows:
            whole, size = self.of(row.whole), self.network.values[row.name].bytes
            stride = Stride(number, size, row.is_last)
            self.moving[row.name] = replace(whole, strides=(*whole.strides, stride))
        carried = tuple(map(self._carried, loop.carried))
        return LoopSteps(
            loop.start, loop.stop, number, loop.trips, self._maybe(loop.limit),
            self._maybe(loop.begins), self._maybe(loop.goes_on), self.of(loop.counter), carried,
            self._maybe(loop.count),
            self.tells(loop), loop.is_bounded,
        )  # fmt: skip

    def tells(self, control: Control) -> tuple[Tells, ...]:
        """The sizes that what *control* computes tells."""
        network = self.network
        calls = network.calls[control.start : control.stop]
        made = {network.root(name) for call in calls for name in call.outputs}
        made.update(control.writes)
        counts = (counted for counted in network.counts if network.root(counted.name) in made)
        return tuple(Tells(c.dim, self.of(c.name), c.depth) for c in counts)

    def _maybe(self, name: str | None) -> Argument | None:
        return None if name is None else self.of(name)

    def _carried(self, value: Carried) -> CarriedPlaces:
        first = sum(place.region is MemoryRegion.MOVING for place in self.moving.values())
        places = self.of(value.before), self.of(value.result), self.of(value.spare)
        for number, name in enumerate((value.current, value.next), start=first):
            self.moving[name] = Argument(MemoryRegion.MOVING, number=number)
        size = self.network.values[value.current].bytes
        return CarriedPlaces(*places, size, first, first + 1)
