"""The order of calls where some of them count sizes that others need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ansorpy.graph.control import Control, Loop, nested
from ansorpy.graph.network import Call, Counted, Subview
from ansorpy.ir.extents import dims_of
from ansorpy.ir.symbols import Dim

__all__ = ["in_order"]


def in_order(
    calls: Sequence[Call],
    controls: Sequence[Control],
    counts: Sequence[Counted],
    subviews: Mapping[str, Subview],
) -> tuple[tuple[Call, ...], tuple[Control, ...]]:
    """*calls*, each after the calls that count its dimensions, otherwise in the given order.

    A call that depends on a dimension may read nothing that depends on the call that counts it:
    positions, for example, follow from the size alone.  The calls of a loop or branch, which
    *controls* has, stay together.
    """
    if not counts:
        return tuple(calls), tuple(controls)
    order = _Order(counts, subviews)
    for unit in _units(calls, controls):
        order.add(unit)
    assert not order.waiting, f"{order.waiting[0].calls[0].name} waits for its own result"
    found: list[Call] = []
    moved: list[Control] = []
    for unit in order.done:
        moved += [control.moved(str, len(found) - unit.start) for control in unit.controls]
        found += unit.calls
    return tuple(found), tuple(moved)


@dataclass(frozen=True, eq=False)
class _Unit:
    """A call, or those of an outermost loop or branch, from number *start* on."""

    start: int
    calls: tuple[Call, ...]
    controls: tuple[Control, ...]

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        handled = (name for control in self.controls for name in control.handled)
        return (*(name for call in self.calls for name in call.outputs), *handled)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        return tuple(name for call in self.calls for name in call.inputs)

    @cached_property
    def dims(self) -> tuple[Dim, ...]:
        """What its shapes, elements and numbers of iterations depend on."""
        loops = (control for control in self.controls if isinstance(control, Loop))
        trips = [loop.trips for loop in loops if loop.trips is not None]
        return (*(dim for call in self.calls for dim in call.dag.dims), *dims_of(trips))


def _units(calls: Sequence[Call], controls: Sequence[Control]) -> Iterator[_Unit]:
    for part in nested(len(calls), controls):
        if isinstance(part, int):
            yield _Unit(part, (calls[part],), ())
        else:
            start, stop = part.control.start, part.control.stop
            inside = tuple(c for c in controls if start <= c.start and c.stop <= stop)
            yield _Unit(start, tuple(calls[start:stop]), inside)


class _Order:
    def __init__(self, counts: Sequence[Counted], subviews: Mapping[str, Subview]) -> None:
        self.subviews = subviews
        self.unknown = {counted.dim for counted in counts}
        self.told: dict[str, list[Counted]] = {}
        for counted in counts:
            self.told.setdefault(self._root(counted.name), []).append(counted)
        self.done: list[_Unit] = []
        self.waiting: list[_Unit] = []

    def add(self, unit: _Unit) -> None:
        """Append *unit*, or let it wait; if it counts a size, append the units that waited."""
        if not self._is_ready(unit):
            self.waiting.append(unit)
            return
        self.done.append(unit)
        found = [c.dim for name in unit.outputs for c in self.told.get(self._root(name), ())]
        if found:
            self.unknown -= set(found)
            waiting, self.waiting = self.waiting, []
            for other in waiting:
                self.add(other)

    def _is_ready(self, unit: _Unit) -> bool:
        names = (*unit.inputs, *unit.outputs)
        offsets = [self.subviews[name].offset_bytes for name in names if name in self.subviews]
        if not self.unknown.isdisjoint((*unit.dims, *dims_of(offsets))):
            return False
        touched = {self._root(name) for name in names}
        behind = {self._root(name) for other in self.waiting for name in other.outputs}
        read = {self._root(name) for other in self.waiting for name in other.inputs}
        return not touched & behind and not {self._root(n) for n in unit.outputs} & read

    def _root(self, name: str) -> str:
        return self.subviews[name].of if name in self.subviews else name
