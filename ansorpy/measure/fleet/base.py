"""What a fleet is to the runner: nodes that can be asked, and may be lost."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol

from ansorpy.ir.task import Task
from ansorpy.target import Target

__all__ = ["BUILDER", "Fleet", "NodeLost", "Ticket", "kind_of", "offer"]

Ticket = Hashable
"""A question that is under way."""

_PREFIX = "ansorpy_"

BUILDER = f"{_PREFIX}builder"
"""The resource of nodes that build for others and time nothing; its amount says nothing."""


class NodeLost(Exception):
    """The node is gone, or what served there is; whatever it was asked has no answer."""


class Fleet(Protocol):
    """Machines that serve with a :class:`~ansorpy.measure.fleet.node.NodeService` each.

    Every method raises :class:`~ansorpy.errors.MissingDependency` when the fleet as a whole is out
    of reach, but for :meth:`drop` and :meth:`close`, which then have nothing left to end.
    """

    def nodes(self, task: Task) -> list[str]:
        """The nodes, in a fixed order, that are alive and offer to time *task*."""

    def builders(self, task: Task) -> list[str]:
        """The nodes, in a fixed order, that are alive, offer to build and do not time *task*."""

    def ask(self, node: str, frame: bytes) -> Ticket:
        """Send *frame* to *node*, whose service is started if needed; does not wait."""

    def wait(self, tickets: Sequence[Ticket], timeout_s: float) -> list[Ticket]:
        """Those of *tickets* that have an outcome, after at most *timeout_s*; perhaps none."""

    def take(self, ticket: Ticket) -> bytes:
        """The answer to a finished *ticket*; raises :class:`NodeLost`."""

    def drop(self, node: str) -> None:
        """End the service on *node* with whatever it does; asking again starts another."""

    def place(self, node: str) -> str:
        """Which machine *node* is, for people."""

    def offers(self) -> str:
        """What living nodes offer, for people."""

    def close(self) -> None:
        """End all services."""


def kind_of(target: Target) -> str:
    """Name of the resource that nodes which time code for *target* offer.

    Its amount is the most threads a task may have.  The host is known by its processor.
    """
    return _PREFIX + (target.cpu if target.name == "host" else target.name)


def offer(threads: int) -> dict[str, int]:
    """What this machine may offer when tasks may use *threads* of its cores."""
    return {kind_of(Target.host()): threads}
