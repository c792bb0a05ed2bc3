"""What a run knows about nodes beyond one batch: which served, which were set aside and why."""

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
    """The usable nodes of *fleet*."""

    fleet: Fleet
    patience: Patience
    deadlines: Deadlines
    aside: dict[str, str] = field(default_factory=dict)
    """Nodes that get no more work in this run, with the reason."""
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
        """Send *node* no more work in this run."""
        self.aside[node] = reason
        _LOG.warning("node %s is set aside: %s", self.fleet.place(node), reason)

    def wait(self, task: Task, excluded: Collection[str] = ()) -> list[str]:
        """Return the nodes, except *excluded*, that may time *task*, waiting if there is none.

        The wait for lost nodes or replacements is limited by ``rejoin_s`` and by the deadline, and
        does not happen if every node that ever served is present but excluded.
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
        """Error for a task that no node will time; *said* lists the failures of nodes tried."""
        aside = [f"{self.fleet.place(node)}: {reason}" for node, reason in self.aside.items()]
        lines = [
            f"no node can time {kind_of(task.target)} with {task.threads} threads; offered: "
            f"{self.fleet.offers()}",
            *aside,
            *said,
        ]
        hint = "`ansorpy doctor` on a node says what it may offer; see docs/guides/workers.md"
        return MissingDependency("\n".join(lines), hint=hint)
