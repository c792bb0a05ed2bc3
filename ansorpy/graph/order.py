"""The order of calls where some of them count sizes that others need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansorpy.graph.network import Call, Counted, Subview
from ansorpy.ir.extents import dims_of

__all__ = ["in_order"]


def in_order(
    calls: Sequence[Call], counts: Sequence[Counted], subviews: Mapping[str, Subview]
) -> list[Call]:
    """*calls*, each after the calls that count its dimensions, otherwise in the given order.

    A call that depends on a dimension may read nothing that depends on the call that counts it:
    positions, for example, follow from the size alone.
    """
    dims = {counted.dim for counted in counts}
    if not dims:
        return list(calls)
    order = _Order(counts, subviews)
    for call in calls:
        order.add(call)
    assert not order.waiting, f"{order.waiting[0].name} waits for its own result"
    return order.done


class _Order:
    def __init__(self, counts: Sequence[Counted], subviews: Mapping[str, Subview]) -> None:
        self.subviews = subviews
        self.unknown = {counted.dim for counted in counts}
        self.told: dict[str, list[Counted]] = {}
        for counted in counts:
            self.told.setdefault(self._root(counted.name), []).append(counted)
        self.done: list[Call] = []
        self.waiting: list[Call] = []

    def add(self, call: Call) -> None:
        """Append *call*, or let it wait; if it counts a size, append the calls that waited."""
        if not self._is_ready(call):
            self.waiting.append(call)
            return
        self.done.append(call)
        found = [c.dim for name in call.outputs for c in self.told.get(self._root(name), ())]
        if found:
            self.unknown -= set(found)
            waiting, self.waiting = self.waiting, []
            for other in waiting:
                self.add(other)

    def _is_ready(self, call: Call) -> bool:
        names = (*call.inputs, *call.outputs)
        offsets = [self.subviews[name].offset_bytes for name in names if name in self.subviews]
        if not self.unknown.isdisjoint((*call.dag.dims, *dims_of(offsets))):
            return False
        touched = {self._root(name) for name in names}
        behind = {self._root(name) for other in self.waiting for name in other.outputs}
        read = {self._root(name) for other in self.waiting for name in other.inputs}
        return not touched & behind and not {self._root(n) for n in call.outputs} & read

    def _root(self, name: str) -> str:
        return self.subviews[name].of if name in self.subviews else name
