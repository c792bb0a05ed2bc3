"""How long to wait for nodes, and how often to try them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ansorpy.deadline import left_s
from ansorpy.ir.task import Task
from ansorpy.measure.run.limits import STARVED, run_limit_s
from ansorpy.measure.run.runner import MeasureOptions

__all__ = ["Deadlines", "Patience", "within_s"]


@dataclass(frozen=True)
class Patience:
    """Time limits and numbers of attempts for nodes.

    Args:
        rejoin_s: Seconds without any node before the search gives up.
        look_s: Seconds between checks for nodes that joined.
        losses: A candidate pending on this many nodes when they were lost counts as a crash.
        failures: A node that failed this often in one batch gets no more work from it.
        grace_s: Seconds an answer may take beyond the limits of the work itself: transfer, starting
            workers, waiting for others who time on the node.
        late_s: Seconds after the end of the search until a node that has not answered is dropped.
        uneven: Factor by which one node may be slower than another at preparing the same task.
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

    A node's workers have time limits of their own, so it always answers eventually; a request may
    take the sum of these.  Most of it is for preparing a task (inputs and reference), for which a
    much tighter limit is known once a node has done it.
    """

    options: MeasureOptions
    patience: Patience
    _slowest_s: dict[str, float] = field(default_factory=dict)

    def note(self, task: Task, seconds: float) -> None:
        """Record that a node ran something of *task* and answered after *seconds*."""
        self._slowest_s[task.key] = max(seconds, self._slowest_s.get(task.key, 0.0))

    def build_s(self, n: int, builders: int) -> float:
        """Time limit in seconds of *n* builds, *builders* at a time."""
        return self.patience.grace_s + -(-n // builders) * self.options.build_timeout_s

    def run_s(self, task: Task, incumbent_s: float | None) -> float:
        """Time limit in seconds of running one candidate."""
        run_s = run_limit_s(task, self.options.run_timeout_s, incumbent_s)
        return self.patience.grace_s + self._prepare_s(task) + STARVED * run_s

    def retime_s(self, task: Task, n: int) -> float:
        """Time limit in seconds of timing *n* finalists in turns, including rebuilding each."""
        run_s = run_limit_s(task, self.options.run_timeout_s, None)
        each_s = self.options.build_timeout_s + run_s
        return self.patience.grace_s + self._prepare_s(task) + n * each_s

    def _prepare_s(self, task: Task) -> float:
        """Limit for building reference and candidate, opening the task twice, one reference run."""
        most = 2 * self.options.build_timeout_s + 3 * self.options.reference_timeout_s
        known = self._slowest_s.get(task.key)
        return most if known is None else min(most, self.patience.uneven * known)


def within_s() -> float:
    """Time a node may take; no call is made with less than a millisecond left."""
    return max(left_s(), 1e-3)
