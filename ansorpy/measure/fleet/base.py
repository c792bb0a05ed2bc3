"""Interface between a fleet and its runner: nodes that answer calls and may be lost."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol

from ansorpy.ir.task import Task
from ansorpy.target import Target

__all__ = [
    "BUILDER", "PREFIX", "Fleet", "NodeHung", "NodeLost", "NodeUnfit", "Ticket", "kind_of", "offer",
]  # fmt: skip

Ticket = Hashable
"""Handle of a pending call."""

PREFIX = "ansorpy_"
"""Of the names of all resources that nodes offer."""

BUILDER = f"{PREFIX}builder"
"""Resource of nodes that build for others and time nothing; its amount has no meaning."""


class NodeLost(Exception):
    """The node or the service on it is gone; its pending call will get no answer."""


class NodeHung(NodeLost):
    """The node is connected, but its answer is overdue."""


class NodeUnfit(Exception):
    """The node answers, but cannot do the work, whatever the candidate."""


class Fleet(Protocol):
    """Machines that each run a :class:`~ansorpy.measure.fleet.node.NodeService`.

    Every method raises :class:`~ansorpy.errors.MissingDependency` when the fleet as a whole is
    unreachable, except :meth:`drop` and :meth:`close`, which then have nothing left to end.
    """

    def nodes(self, task: Task) -> list[str]:
        """The live nodes that offer to time *task*, in a fixed order."""

    def builders(self, task: Task) -> list[str]:
        """The live nodes that offer to build and do not time *task*, in a fixed order."""

    def call(self, node: str, method: str, *message: bytes) -> Ticket:
        """Call *method* of the service on *node*, starting it if needed; does not wait."""

    def wait(self, tickets: Sequence[Ticket], timeout_s: float) -> list[Ticket]:
        """Wait at most *timeout_s*; returns those of *tickets* that are done, possibly none."""

    def take(self, ticket: Ticket) -> bytes:
        """Return the answer to a finished *ticket*; raises :class:`NodeLost`."""

    def drop(self, node: str) -> None:
        """Kill the service on *node*, whatever it is doing; the next call starts another."""

    def place(self, node: str) -> str:
        """Human-readable name of the machine of *node*."""

    def offers(self) -> str:
        """Human-readable list of what live nodes offer."""

    def close(self) -> None:
        """End all services."""


def kind_of(target: Target) -> str:
    """Name of the resource offered by nodes that time code for *target*.

    Its amount is the most threads a task may have.  The host is identified by its processor.
    """
    return PREFIX + (target.cpu if target.name == "host" else target.name)


def offer(threads: int) -> dict[str, int]:
    """Resources this machine may offer when tasks may use *threads* of its cores."""
    return {kind_of(Target.host()): threads}
