"""Calls that nodes have not answered yet, with the time at which an answer is overdue."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

from ansorpy.measure.fleet.base import Fleet, NodeHung, Ticket

__all__ = ["Calls"]

_DOES = {
    "hello": "say what it is",
    "build": "build programs",
    "measure": "time a program",
    "retime": "time finalists",
}


@dataclass(frozen=True)
class _Call:
    method: str
    ticket: Ticket
    limit_s: float
    overdue_at: float


class Calls:
    """The pending calls to the nodes of *fleet*, at most one for each.

    Left by an exception, it ends the services that are at work: nobody waits for them any more.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._pending: dict[str, _Call] = {}

    def __enter__(self) -> Calls:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for node in list(self._pending):
                self.drop(node)

    @property
    def busy(self) -> Collection[str]:
        """The nodes that have not answered."""
        return self._pending.keys()

    def doing(self, method: str) -> bool:
        """Whether any node was called for *method*."""
        return any(call.method == method for call in self._pending.values())

    def start(self, node: str, method: str, *message: bytes, limit_s: float) -> None:
        """Call *method* of the service on *node*, which is idle; does not wait."""
        overdue_at = time.monotonic() + limit_s
        ticket = self._fleet.call(node, method, *message)
        self._pending[node] = _Call(method, ticket, limit_s, overdue_at)

    def wait(self, timeout_s: float) -> list[str]:
        """The nodes whose answer is there or overdue, waiting for one at most *timeout_s*."""
        if not self._pending:
            return []
        nodes = {call.ticket: node for node, call in self._pending.items()}
        soonest = min(call.overdue_at for call in self._pending.values())
        least_s = max(0.0, min(timeout_s, soonest - time.monotonic()))
        ready = [nodes[ticket] for ticket in self._fleet.wait(list(nodes), least_s)]
        now = time.monotonic()
        late = [node for node, call in self._pending.items() if call.overdue_at <= now]
        return [*ready, *(node for node in late if node not in ready)]

    def answer(self, node: str) -> bytes:
        """Take the answer of *node*, which :meth:`wait` named; a hung node stays busy.

        Raises:
            NodeHung: There is none, and it is overdue.
            NodeLost: There will be none.
        """
        call = self._pending[node]
        # An answer that came while nobody looked counts, however late.
        if not self._fleet.wait([call.ticket], 0.0):
            does = _DOES[call.method]
            raise NodeHung(f"no answer within {call.limit_s:.3g} s when asked to {does}")
        del self._pending[node]
        return self._fleet.take(call.ticket)

    def drop(self, node: str) -> None:
        """End the service on *node* and forget its call."""
        self._pending.pop(node, None)
        self._fleet.drop(node)
