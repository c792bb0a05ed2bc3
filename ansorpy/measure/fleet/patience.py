"""How long nodes are waited for, and how often they are tried."""

from __future__ import annotations

from dataclasses import dataclass, field

from ansorpy.ir.task import Task
from ansorpy.measure.limits import STARVED, run_limit_s
from ansorpy.measure.runner import MeasureOptions

__all__ = ["Deadlines", "Patience"]


@dataclass(frozen=True)
class Patience:
    """How long to wait for nodes, and how often to try.

    Args:
        rejoin_s: Seconds without any node before the search is given up.
        look_s: Seconds between looks for nodes that joined.
        losses: A candidate that was under way on so many nodes when they were lost is a crash.
        failures: A node that failed so often in one batch gets no more of it.
        grace_s: Seconds that an answer may take beyond the limits of what was asked: the way
            there and back, starting workers, waiting for others who time on the node.
        late_s: Seconds after the end of the search until a node without an answer is left out.
        uneven: How much longer one node may take than another to prepare the same task.
    """

    rejoin_s: float = 60.0
    look_s: float = 5.0
    losses: int = 3
    failures: int = 3
    grace_s: float = 60.0
    late_s: float = 10.0
    uneven: float = 4.0


@dataclass
class Deadlines:
    """When a node that has not answered counts as hung.

    The workers of a node have limits of their own, so it always answers in the end; their sum is
    what a question may take.  Most of it is for preparing a task (its inputs and its reference),
    which is known much better once a node has done it.
    """

    options: MeasureOptions
    patience: Patience
    _slowest_s: dict[str, float] = field(default_factory=dict)

    def note(self, task: Task, seconds: float) -> None:
        """A node ran something of *task* and answered after *seconds*."""
        self._slowest_s[task.key] = max(seconds, self._slowest_s.get(task.key, 0.0))

    def greeting_s(self) -> float:
        """Seconds until a node must have greeted."""
        return self.patience.grace_s

    def build_s(self, n: int, builders: int) -> float:
        """Seconds for *n* builds, *builders* at a time."""
        return self.patience.grace_s + -(-n // builders) * self.options.build_timeout_s

    def run_s(self, task: Task, incumbent_s: float | None) -> float:
        """Seconds for one candidate."""
        run_s = run_limit_s(task, self.options.run_timeout_s, incumbent_s)
        return self.patience.grace_s + self._prepare_s(task) + STARVED * run_s

    def retime_s(self, task: Task, n: int) -> float:
        """Seconds for *n* finalists in turns, each of which may have to be built again."""
        each_s = self.options.build_timeout_s + self.options.run_timeout_s
        return self.patience.grace_s + self._prepare_s(task) + n * each_s

    def _prepare_s(self, task: Task) -> float:
        """Build the default schedule and the candidate; open the task twice, run the reference."""
        most = 2 * self.options.build_timeout_s + 3 * self.options.reference_timeout_s
        known = self._slowest_s.get(task.key)
        return most if known is None else min(most, self.patience.uneven * known)
