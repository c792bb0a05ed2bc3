"""The order of calls where some of them count sizes that others need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansorpy.graph.control import Control, Inside, Loop, nested
from ansorpy.graph.network import Call, Counted, Subview
from ansorpy.ir.extents import dims_of
from ansorpy.ir.symbols import Dim

__all__ = ["in_order"]


def in_order(
    calls: Sequence[Call],
    counts: Sequence[Counted],
    subviews: Mapping[str, Subview],
    controls: Sequence[Control],
) -> tuple[tuple[Call, ...], tuple[Control, ...]]:
    """*calls*, each after those that count its dimensions, otherwise in the given order.

    A call that depends on a dimension may read nothing that depends on the call that counts it:
    positions, for example, follow from the size alone.  The calls of a loop or branch are kept
    together.
    *controls* are returned, too, as ranges of the new order.
    """
    dims = {counted.dim for counted in counts}
    if not dims:
        return tuple(calls), tuple(controls)
    order = _Order(counts, subviews)
    for part in nested(len(calls), controls):
        order.add(_block(part, calls, controls))
    assert not order.waiting, "a call waits for its own result"
    found: list[Call] = []
    moved: list[Control] = []
    for block in order.done:
        by = len(found) - block.start
        moved += [control.moved(lambda name: name, by) for control in block.controls]
        found += block.calls
    return tuple(found), tuple(moved)


@dataclass(frozen=True)
class _Block:
    """Calls from number ``start`` on that stay together: one, or those of a loop or branch."""

    start: int
    calls: Sequence[Call]
    controls: Sequence[Control]

    @property
    def reads(self) -> set[str]:
        called = {name for call in self.calls for name in call.inputs}
        return called.union(*(control.reads for control in self.controls))

    @property
    def writes(self) -> set[str]:
        called = {name for call in self.calls for name in call.outputs}
        return called.union(*(control.writes for control in self.controls))

    @property
    def dims(self) -> set[Dim]:
        trips = [c.trips for c in self.controls if isinstance(c, Loop) and c.trips is not None]
        return {dim for call in self.calls for dim in call.dag.dims}.union(dims_of(trips))


def _block(
    part: int | Inside[Control], calls: Sequence[Call], controls: Sequence[Control]
) -> _Block:
    if isinstance(part, int):
        return _Block(part, calls[part : part + 1], ())
    start, stop = part.control.start, part.control.stop
    inside = [c for c in controls if start <= c.start and c.stop <= stop]
    return _Block(start, calls[start:stop], inside)


class _Order:
    def __init__(self, counts: Sequence[Counted], subviews: Mapping[str, Subview]) -> None:
        self.subviews = subviews
        self.unknown = {counted.dim for counted in counts}
        self.told: dict[str, list[Counted]] = {}
        for counted in counts:
            self.told.setdefault(self._root(counted.name), []).append(counted)
        self.done: list[_Block] = []
        self.waiting: list[_Block] = []

    def add(self, block: _Block) -> None:
        """Append *block*, or let it wait; if it counts a size, append what waited."""
        if not self._is_ready(block):
            self.waiting.append(block)
            return
        self.done.append(block)
        found = [c.dim for name in block.writes for c in self.told.get(self._root(name), ())]
        if found:
            self.unknown -= set(found)
            waiting, self.waiting = self.waiting, []
            for other in waiting:
                self.add(other)

    def _is_ready(self, block: _Block) -> bool:
        names = block.reads | block.writes
        offsets = [self.subviews[name].offset_bytes for name in names if name in self.subviews]
        if not self.unknown.isdisjoint({*block.dims, *dims_of(offsets)}):
            return False
        touched = set(map(self._root, names))
        behind = {self._root(name) for other in self.waiting for name in other.writes}
        read = {self._root(name) for other in self.waiting for name in other.reads}
        return not touched & behind and not set(map(self._root, block.writes)) & read

    def _root(self, name: str) -> str:
        return self.subviews[name].of if name in self.subviews else name
