"""The runner whose machines are the nodes of a fleet."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ansorpy.deadline import left_s
from ansorpy.errors import MissingDependency, VerificationFailed
from ansorpy.ir.task import Task
from ansorpy.measure.build.builder import Builder
from ansorpy.measure.build.built import Built
from ansorpy.measure.fleet.base import Fleet, NodeHung, NodeLost, NodeUnfit
from ansorpy.measure.fleet.batch import FleetBatch
from ansorpy.measure.fleet.calls import Calls
from ansorpy.measure.fleet.patience import Deadlines, Patience, within_s
from ansorpy.measure.fleet.roster import Roster
from ansorpy.measure.fleet.wire import Work, read_results, write_work
from ansorpy.measure.result import MeasureResult, out_of_time
from ansorpy.measure.run.interfaces import Observer
from ansorpy.measure.run.runner import MeasureOptions, RunnerBase
from ansorpy.schedule.state import State

__all__ = ["FleetRunner"]

_LOG = logging.getLogger(__name__)


class FleetRunner(RunnerBase):
    """Measures on every node of *fleet* that offers a task's kind of machine.

    The driver itself builds only on :meth:`build`, in one worker.
    As a context manager it ends the services on the nodes on exit.
    """

    def __init__(
        self,
        fleet: Fleet,
        options: MeasureOptions | None = None,
        patience: Patience | None = None,
    ) -> None:
        super().__init__(options)
        patience = patience or Patience()
        self._fleet = fleet
        self._roster = Roster(fleet, patience, Deadlines(self.options, patience))
        self._builder = Builder(
            1,
            timeout_s=self.options.build_timeout_s,
            memory_bytes=self.options.build_memory_bytes,
            kept=self.options.kept_builds,
            lock_folder=self.options.lock_folder,
        )
        self._home: dict[str, str | None] = {}

    def close(self) -> None:
        """End the services on the nodes and the workers here."""
        self._builder.close()
        self._fleet.close()

    def build(self, task: Task, candidates: Sequence[State]) -> list[Built | MeasureResult]:
        """Build each candidate here: object code, or the result that says why there is none."""
        return self._builder.build(task, candidates)

    def measure(
        self,
        task: Task,
        candidates: Sequence[State],
        *,
        incumbent_s: float | None,
        observer: Observer | None = None,
    ) -> list[MeasureResult]:
        """Return one result per candidate, in order, even if nodes come and go meanwhile.

        Raises:
            MissingDependency: No node offers what *task* needs, and none joined in time.
            VerificationFailed: A node's reference output is wrong, so nothing can be checked.
        """
        batch = FleetBatch(
            self._roster,
            task,
            candidates,
            incumbent_s,
            observer,
            home=self._home.get(task.key),
            keep=self.keep,
        )
        results = batch.run()
        self._home[task.key] = batch.home
        return results

    def retime(self, task: Task, candidates: Sequence[State]) -> list[MeasureResult] | None:
        """Time finalists in turns on the task's home node, or on the next one if that is lost.

        None if no node is left that can; the first times then stand.
        """
        try:
            return self._retimed(task, candidates)
        except MissingDependency as error:
            _LOG.warning("the finalists are not timed again: %s", error.message)
            return None

    def _retimed(self, task: Task, states: Sequence[State]) -> list[MeasureResult]:
        """Time finalists; raises :class:`MissingDependency` if there is no node."""
        home = self._home.get(task.key)
        said: dict[str, str] = {}
        while nodes := self._roster.wait(task, said):
            node = min(nodes, key=lambda name: name != home)
            try:
                return self._retimed_on(node, task, states)
            except (NodeLost, NodeUnfit, VerificationFailed) as error:
                if left_s() <= 0:
                    return [out_of_time()] * len(states)
                if isinstance(error, NodeHung):
                    self._roster.set_aside(node, str(error))
                said[node] = f"{self._fleet.place(node)}: {error}"
        raise self._roster.refused(task, list(said.values()))

    def _retimed_on(self, node: str, task: Task, states: Sequence[State]) -> list[MeasureResult]:
        """Time finalists on *node*; the deadline ends the wait as it does for a batch."""
        left = within_s()
        limit_s = self._roster.deadlines.retime_s(task, len(states))
        message = write_work(Work(task, states, within_s=left))
        with Calls(self._fleet) as calls:
            late_s = left + self._roster.patience.late_s
            calls.start(node, "retime", message, limit_s=min(limit_s, late_s))
            while not calls.wait(60.0):
                pass
            return read_results(calls.answer(node), len(states))
