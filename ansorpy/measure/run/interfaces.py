"""What runners can do, as interfaces: measuring, and what only some of them offer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.result import MeasureResult
from ansorpy.measure.trial_end import TrialEnd
from ansorpy.schedule.state import State

__all__ = [
    "BuildService", "Building", "Comparing", "Expecting", "Keeping", "Machines", "Observer",
    "Retimer", "Runner", "Sharing", "Starting", "Streaming",
]  # fmt: skip


class Observer(Protocol):
    """Notified of each candidate right before it runs and right after."""

    def started(self, state: State) -> MeasureResult | None:
        """*state* is about to run; if this returns a result, that is used instead."""

    def ended(self, end: TrialEnd) -> None:
        """A candidate has a result; not called if :meth:`started` returned one."""


class BuildService(Protocol):
    """Turns schedules into object code, on this machine or on others."""

    def build(self, task: Task, states: Sequence[State]) -> list[Built | MeasureResult]:
        """Build each of *states*, in order: object code, or the result that explains a failure."""

    def close(self) -> None:
        """Release all resources."""


class Runner(Protocol):
    """Turns candidates into results.

    Candidates without a result when the deadline (:mod:`ansorpy.deadline`) passes are CUT.
    """

    def measure(
        self,
        task: Task,
        candidates: Sequence[State],
        *,
        incumbent_s: float | None,
        observer: Observer | None = None,
    ) -> list[MeasureResult]:
        """Return one result per candidate, in order; *incumbent_s*: best known time of *task*."""


@runtime_checkable
class Building(Protocol):
    """A runner that knows when its workers built."""

    def take_build_times(self) -> list[tuple[float, float]]:
        """When each build since the last call began and ended, by ``time.perf_counter``."""


@runtime_checkable
class Starting(Protocol):
    """A runner with workers that take a while to start."""

    def start(self, threads: int) -> None:
        """Start those for tasks with *threads* threads that do not run; returns at once."""


@runtime_checkable
class Expecting(Protocol):
    """A runner that can prepare candidates in the background."""

    def expect(self, task: Task, candidates: Sequence[State]) -> None:
        """Announce that *candidates* of *task* will be built or measured; returns at once."""


@runtime_checkable
class Retimer(Protocol):
    """A runner that can time finished programs again, alternating between them."""

    def retime(self, task: Task, candidates: Sequence[State]) -> list[MeasureResult] | None:
        """One result per candidate, in order; None if no machine can compare them."""


@runtime_checkable
class Streaming(Protocol):
    """A build service that hands over each result as soon as it is there."""

    def build_each(
        self, task: Task, states: Sequence[State]
    ) -> Iterator[tuple[int, Built | MeasureResult]]:
        """The numbers of *states* in the order in which they are finished, and their results."""


@runtime_checkable
class Sharing(Protocol):
    """A runner whose timing is disturbed by other computation."""

    def computing(self) -> AbstractContextManager[None]:
        """A context held while this process computes; entering it waits for others' timing runs."""

    def time_after(self, work: Future[Any]) -> None:
        """Time nothing until *work* has ended, which computes beside builds; returns at once."""


@runtime_checkable
class Comparing(Protocol):
    """A runner that times programs of a task in turns with one whose time is known."""

    def compare_with(self, task: Task, known: Callable[[], tuple[Built, float] | None]) -> None:
        """Unless there is such a program of *task*, use that of *known*, with its seconds."""


@runtime_checkable
class Keeping(Protocol):
    """A runner that keeps the code it timed for a while."""

    def built(self, object_digest: str) -> Built | None:
        """Return recently timed code by its digest."""


class Machines(Runner, Retimer, Keeping, Protocol):
    """A runner that can also re-time finalists and return the code it timed."""

    def build(self, task: Task, candidates: Sequence[State]) -> list[Built | MeasureResult]:
        """Build each candidate: object code, or the result that explains the failure."""
