"""A runner whose user may want to stop the search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.result import MeasureResult
from ansorpy.measure.run.interfaces import (
    Building,
    Comparing,
    Machines,
    Observer,
    Sharing,
    Starting,
)
from ansorpy.measure.workers.locks import share_cores
from ansorpy.schedule.state import State

__all__ = ["StoppableRunner"]


@dataclass(frozen=True)
class StoppableRunner:
    """A runner that checks before each batch whether the user wants to stop."""

    runner: Machines
    stop: Callable[[], None]

    def computing(self) -> AbstractContextManager[None]:
        """Hold the cores shared while computing: another process may time on them."""
        return self.runner.computing() if isinstance(self.runner, Sharing) else share_cores()

    def time_after(self, work: Future[Any]) -> None:
        """Time nothing until *work* has ended, if the runner times on this machine."""
        if isinstance(self.runner, Sharing):
            self.runner.time_after(work)

    def start(self, threads: int) -> None:
        """Start the workers for tasks with *threads* threads, if the runner has some to start."""
        if isinstance(self.runner, Starting):
            self.runner.start(threads)

    def take_build_times(self) -> list[tuple[float, float]]:
        """When each build since the last call began and ended, if the runner knows."""
        return self.runner.take_build_times() if isinstance(self.runner, Building) else []

    def compare_with(self, task: Task, known: Callable[[], tuple[Built, float] | None]) -> None:
        """Time programs of *task* in turns with that of *known*, if the runner does such."""
        if isinstance(self.runner, Comparing):
            self.runner.compare_with(task, known)

    def measure(
        self,
        task: Task,
        candidates: Sequence[State],
        *,
        incumbent_s: float | None,
        observer: Observer | None = None,
    ) -> list[MeasureResult]:
        self.stop()
        return self.runner.measure(task, candidates, incumbent_s=incumbent_s, observer=observer)

    def retime(self, task: Task, candidates: Sequence[State]) -> list[MeasureResult] | None:
        self.stop()
        return self.runner.retime(task, candidates)

    def built(self, object_digest: str) -> Built | None:
        """Return recently timed code by its digest."""
        return self.runner.built(object_digest)
