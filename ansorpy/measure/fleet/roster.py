"""What a run knows of the nodes of a fleet beyond one batch: who served, who is set aside, why."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ansorpy.deadline import left_s
from ansorpy.errors import MissingDependency
from ansorpy.ir.task import Task
from ansorpy.measure.fleet.base import Fleet, kind_of
from ansorpy.measure.fleet.patience import Deadlines, Patience

__all__ = ["Roster"]

_LOG = logging.getLogger(__name__)
_LOOK_S = 0.2


@dataclass
class Roster:
    """The nodes of *fleet* that may be asked."""

    fleet: Fleet
    patience: Patience
    deadlines: Deadlines
    aside: dict[str, str] = field(default_factory=dict)
    """Nodes that get no more work in this run, and why."""
    _served: set[str] = field(default_factory=set)

    def nodes(self, task: Task) -> list[str]:
        """The nodes that may be asked to time *task*."""
        found = self._usable(self.fleet.nodes(task))
        self._served.update(found)
        return found

    def builders(self, task: Task) -> list[str]:
        """The nodes that may be asked to build *task* for others."""
        return self._usable(self.fleet.builders(task))

    def _usable(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name not in self.aside]

    def set_aside(self, node: str, reason: str) -> None:
        """Ask *node* nothing more in this run."""
        self.aside[node] = reason
        _LOG.warning("node %s is set aside: %s", self.fleet.place(node), reason)

    def wait(self, task: Task, excluded: Collection[str] = ()) -> list[str]:
        """The nodes but for *excluded* that may time *task*.

        Without any, those that are gone are waited for, or others in their place: not for ever,
        not when all that ever served are there but excluded, and not beyond the deadline.
        """
        begin = time.monotonic()
        while not (found := [n for n in self.nodes(task) if n not in excluded]):
            if left_s() <= 0:
                break
            gone = self._served - set(self.fleet.nodes(task)) - set(excluded) - self.aside.keys()
            if not gone:
                break
            if time.monotonic() - begin >= self.patience.rejoin_s:
                self._served -= gone
                break
            time.sleep(_LOOK_S)
        return found

    def refused(self, task: Task, said: Sequence[str] = ()) -> MissingDependency:
        """The error for a task that no node will time; *said* is what those tried said."""
        aside = [f"{self.fleet.place(node)}: {reason}" for node, reason in self.aside.items()]
        lines = [
            f"no node can time {kind_of(task.target)} with {task.threads} threads; offered: "
            f"{self.fleet.offers()}",
            *aside,
            *said,
        ]
        hint = "`ansorpy doctor` on a node says what it may offer; see docs/workers.md"
        return MissingDependency("\n".join(lines), hint=hint)
