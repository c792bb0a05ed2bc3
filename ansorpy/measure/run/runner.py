"""Measure candidates on this machine: build a batch, then run it, one candidate at a time."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cachetools import LRUCache

from ansorpy.config import available_cores
from ansorpy.deadline import OutOfTime, left_s, until
from ansorpy.errors import AnsorpyError, UsageError, VerificationFailed
from ansorpy.ir.task import Task
from ansorpy.measure.build.builder import BUILD_MEMORY_BYTES, Builder
from ansorpy.measure.build.built import Built
from ansorpy.measure.check.compare import extra_error
from ansorpy.measure.check.reference import reference_state
from ansorpy.measure.probe.others import SharedCores
from ansorpy.measure.result import MeasureResult, TrialKind, out_of_time
from ansorpy.measure.run.client import ReferenceOutputs, RunClient
from ansorpy.measure.run.interfaces import BuildService, Observer, Streaming
from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.measure.trial_end import TrialEnd
from ansorpy.measure.workers.locks import lock_cores, share_cores
from ansorpy.measure.workers.processes import usable_cores
from ansorpy.measure.workers.supervisor import Worker
from ansorpy.profiler import Activity, profiled
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["BuildingRunner", "LocalRunner", "MeasureOptions", "RunnerBase"]


@dataclass(frozen=True)
class MeasureOptions:
    """Options of runners.

    Args:
        seed: Seed of the input values.
        build_timeout_s: Seconds one build may take (TVM: 15).
        run_timeout_s: Seconds one candidate may take in all before any time is known (TVM: 10).
        reference_timeout_s: Seconds that making the reference may take.
        check_points: Points of the reference checked against the interpreter, once per task.
        builders: Build workers; None: one per core.
        build_memory_bytes: Memory each build worker may take; a build that needs more fails.
        cores: Cores to time on; None: the first ``task.threads`` this process may use.
        kept_builds: Built candidates kept in memory for re-timing and for the database.
        policy: How long and how often candidates are timed.
        lock_folder: Folder of the machine-wide core locks; None: the temporary folder.
    """

    seed: int = 0
    build_timeout_s: float = 15.0
    run_timeout_s: float = 10.0
    reference_timeout_s: float = 300.0
    check_points: int = 4096
    builders: int | None = None
    build_memory_bytes: int = BUILD_MEMORY_BYTES
    cores: tuple[int, ...] | None = None
    kept_builds: int = 256
    policy: TimingPolicy = field(default_factory=TimingPolicy)
    lock_folder: Path | None = None


class RunnerBase(ABC):
    """Base of all runners: options, recently timed code, and the workers it owns.

    As a context manager it ends all workers on exit.
    """

    def __init__(self, options: MeasureOptions | None) -> None:
        self.options = options or MeasureOptions()
        self._kept = LRUCache[str, Built](self.options.kept_builds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """End all workers."""

    @abstractmethod
    def build(self, task: Task, candidates: Sequence[State]) -> list[Built | MeasureResult]:
        """Build each candidate: object code, or the result that explains the failure."""

    def built(self, object_digest: str) -> Built | None:
        """Return recently timed code by its :attr:`MeasureResult.object_digest`."""
        return self._kept.get(object_digest)

    def keep(self, built: Built) -> None:
        """Have :meth:`built` return *built*, which is timed."""
        self._kept[built.digest] = built


class BuildingRunner(RunnerBase):
    """A runner on this machine: builds a batch, then waits for its turn to run it."""

    def retime(self, task: Task, candidates: Sequence[State]) -> list[MeasureResult]:
        """Time finalists (including the incumbent) in turns, so that drift affects all alike."""
        with self._turn(task, candidates) as builds:
            good = [build for build in builds if isinstance(build, Built)]
            for build in good:
                self.keep(build)
            timed = iter(self._client(task).retime(task, good) if good else [])
            return [next(timed) if isinstance(build, Built) else build for build in builds]

    @contextmanager
    def _turn(
        self, task: Task, candidates: Sequence[State]
    ) -> Iterator[Sequence[Built | MeasureResult]]:
        """Build *candidates* and hold the devices to run them.

        Those built are CUT if time is up first; if none is, there is nothing to hold them for.
        """
        builds = self._build_turn(task, candidates)
        with ExitStack() as held:
            try:
                if any(isinstance(build, Built) for build in builds):
                    self._prepare(task)
                    held.enter_context(self._alone(task))
            except OutOfTime:
                builds = [out_of_time() if isinstance(b, Built) else b for b in builds]
            yield builds

    def _build_turn(
        self, task: Task, candidates: Sequence[State]
    ) -> Sequence[Built | MeasureResult]:
        """Build *candidates*, and what else running them needs."""
        return self.build(task, candidates)

    @abstractmethod
    def _prepare(self, task: Task) -> None:
        """Make the reference of *task* unless it is known; raises :class:`OutOfTime`."""

    @abstractmethod
    def _alone(self, task: Task) -> AbstractContextManager[None]:
        """Hold the devices of *task* alone for timing; raises :class:`OutOfTime` as locks do."""

    @abstractmethod
    def _client(self, task: Task) -> RunClient:
        """The worker that times *task* (one of them)."""


class LocalRunner(BuildingRunner):
    """Builds in parallel workers, then runs one candidate at a time in a pinned worker.

    Builds and runs never overlap.  Timing holds the machine-wide lock of its cores, so searches and
    builds of other processes wait.  Processes that know no such lock are told of in a warning.

    Args:
        builder: Replaces the local build workers.
        module: Module with the run workers' handlers, which load the code.
    """

    def __init__(
        self,
        options: MeasureOptions | None = None,
        builder: BuildService | None = None,
        *,
        module: str = "ansorpy.measure.run.handlers",
    ) -> None:
        super().__init__(options)
        self._module = module
        self.builders = self.options.builders or available_cores()
        """How many programs are built at a time."""
        self._builder: BuildService = builder or Builder(
            self.builders,
            timeout_s=self.options.build_timeout_s,
            memory_bytes=self.options.build_memory_bytes,
            kept=self.options.kept_builds,
            lock_folder=self.options.lock_folder,
        )
        self._clients: dict[tuple[int, ...], RunClient] = {}
        self._background = ThreadPoolExecutor(1, thread_name_prefix="ansorpy-expect")
        self._expected: list[Future[None]] = []
        self._computing: list[Future[Any]] = []
        self._shared = SharedCores()
        self.is_closing = False

    @property
    def workers(self) -> list[Worker]:
        """The run workers, one for each set of cores, and the build workers, if there are any."""
        builders = self._builder.workers if isinstance(self._builder, Builder) else []
        return [*(client.worker for client in self._clients.values()), *builders]

    def start(self, threads: int) -> None:
        """Start the workers for tasks with *threads* threads, in parallel; returns at once."""
        if isinstance(self._builder, Builder):
            self._builder.start()
        self._client_on(self.cores(threads)).worker.start()

    def close(self) -> None:
        """End all workers; background preparation is abandoned."""
        self.is_closing = True
        self._background.shutdown(cancel_futures=True)
        self._builder.close()
        for client in self._clients.values():
            client.close()

    def computing(self) -> AbstractContextManager[None]:
        """Hold the cores shared while computing, so that nobody times on them meanwhile."""
        return share_cores(self.options.lock_folder)

    def time_after(self, work: Future[Any]) -> None:
        """Time nothing until *work* has ended, which computes beside builds; returns at once."""
        self._computing.append(work)

    def expect(self, task: Task, candidates: Sequence[State]) -> None:
        """Build *candidates* of *task* and make its reference in the background.

        It ends with the caller's deadline.  Failures are retried, and reported, when the results
        are requested.
        """
        moment = time.monotonic() + left_s()  # threads do not inherit it
        job = self._background.submit(self._get_ready, task, tuple(candidates), moment)
        self._expected.append(job)

    def _get_ready(self, task: Task, candidates: Sequence[State], moment: float) -> None:
        runs_here = task.target.runs_on_host()
        wanted = [*candidates, reference_state(task.dag)] if runs_here else candidates
        with until(moment), suppress(AnsorpyError, OutOfTime):
            for _ in self._built_each(task, wanted):
                if self.is_closing:
                    return
            if runs_here and not self.is_closing:
                self._prepare(task)

    def _settle(self) -> None:
        """Wait until all background preparation is done, so that none runs during timing."""
        with profiled(Activity.BUILD):
            wait(self._expected)
        self._expected.clear()

    def build(self, task: Task, candidates: Sequence[State]) -> list[Built | MeasureResult]:
        """Build each candidate: object code, or the result that explains the failure."""
        self._settle()
        with profiled(Activity.BUILD):
            return self._builder.build(task, candidates)

    def build_each(
        self, task: Task, candidates: Sequence[State]
    ) -> Iterator[tuple[int, Built | MeasureResult]]:
        """Build each candidate; the results follow with their numbers as soon as they are there."""
        self._settle()
        return self._built_each(task, candidates)

    def _built_each(
        self, task: Task, candidates: Sequence[State]
    ) -> Iterator[tuple[int, Built | MeasureResult]]:
        if isinstance(self._builder, Streaming):
            return self._builder.build_each(task, candidates)
        return enumerate(self._builder.build(task, candidates))

    def take_build_times(self) -> list[tuple[float, float]]:
        """When each build since the last call began and ended, by ``time.perf_counter``."""
        return self._builder.take_times() if isinstance(self._builder, Builder) else []

    def remember(self, task: Task, state: State, built: Built) -> None:
        """Take *built*, made elsewhere, for the result of building *state*."""
        if isinstance(self._builder, Builder):
            self._builder.remember(task, state, built)

    def measure(
        self,
        task: Task,
        candidates: Sequence[State],
        *,
        incumbent_s: float | None,
        observer: Observer | None = None,
    ) -> list[MeasureResult]:
        """Build, check and time *candidates*; a candidate's failure becomes its result.

        Under a deadline, with no program known, one candidate for each builder comes first: there
        is a result even if time is too short for the others.

        Raises:
            UsageError: The task's target is a machine whose code cannot run here.
            VerificationFailed: The reference itself is wrong, so nothing can be
                checked: a defect of ansorpy or of the definition, not of a candidate.
        """
        _refuse_foreign(task)
        first = self.builders if incumbent_s is None and left_s() < inf else 0
        found: list[MeasureResult] = []
        for part in (candidates[:first], candidates[first:]):
            if part:
                with self._turn(task, part) as builds:
                    found += self._run(task, part, builds, incumbent_s, observer)
                incumbent_s = min((r.median_s for r in found if r.ok), default=incumbent_s)
        return found

    def _run(
        self,
        task: Task,
        candidates: Sequence[State],
        builds: Sequence[Built | MeasureResult],
        incumbent_s: float | None,
        observer: Observer | None,
    ) -> list[MeasureResult]:
        results = []
        for state, build in zip(candidates, builds, strict=True):
            result = None if observer is None else observer.started(state)
            if result is None:
                built = build if isinstance(build, Built) else None
                if isinstance(build, MeasureResult):
                    result = build
                else:
                    result = self._measured(task, state, build, incumbent_s)
                if observer is not None:
                    observer.ended(TrialEnd(state, result, built))
            if result.ok:
                incumbent_s = min(result.median_s, incumbent_s or result.median_s)
            results.append(result)
        return results

    def _measured(
        self, task: Task, state: State, built: Built, incumbent_s: float | None
    ) -> MeasureResult:
        """Check and time one candidate, whose code is kept."""
        lost = extra_error(task.dag, state.definition)
        with profiled(Activity.RUN):
            result = self._client(task).measure(task, built, incumbent_s, lost)
        self.keep(built)
        return replace(result, build_s=built.build_s, object_digest=built.digest)

    def compare_with(self, task: Task, known: Callable[[], tuple[Built, float] | None]) -> None:
        """Unless a program of *task* is timed beside the others, use that of *known*."""
        self._client(task).compare_with(task, known)

    def reference(self, task: Task) -> ReferenceOutputs:
        """The reference of *task*, which is made and checked unless it is known.

        Raises:
            VerificationFailed: Its outputs are wrong, or there are none.
            OutOfTime: The deadline passed first.
        """
        self._settle()
        self._prepare(task)
        return self._client(task).reference(task)

    def _build_turn(
        self, task: Task, candidates: Sequence[State]
    ) -> Sequence[Built | MeasureResult]:
        """Build *candidates*, and beside them a reference that is not known yet."""
        needed = () if self._client(task).has_reference(task) else (reference_state(task.dag),)
        return self.build(task, [*candidates, *needed])[: len(candidates)]

    def _prepare(self, task: Task) -> None:
        """Make the reference of *task* unless it is known; raises :class:`OutOfTime`."""
        client = self._client(task)
        if client.has_reference(task):
            return
        with profiled(Activity.BUILD):
            (built,) = self._builder.build(task, [reference_state(task.dag)])
        if isinstance(built, MeasureResult):
            if built.kind is TrialKind.CUT:
                raise OutOfTime
            raise VerificationFailed(
                f"the reference of {task.name or task.key} cannot be built, so no "
                f"candidate can be checked: {built.reason}"
            )
        with self.computing(), profiled(Activity.CHECK):
            client.make_reference(task, built)

    @contextmanager
    def _alone(self, task: Task) -> Iterator[None]:
        self._finish_computing()
        with (
            lock_cores(self._client(task).cores or (), self.options.lock_folder),
            self._shared.observed(task.threads),
        ):
            yield

    def _finish_computing(self) -> None:
        """Wait for what computes beside builds; raises :class:`OutOfTime`."""
        limit_s = left_s()
        with profiled(Activity.SEARCH):
            _, pending = wait(self._computing, None if limit_s == inf else max(limit_s, 0.0))
        if pending:
            raise OutOfTime
        self._computing.clear()

    def _client(self, task: Task) -> RunClient:
        return self._client_on(self.cores(task.threads))

    def cores(self, threads: int) -> tuple[int, ...]:
        """The cores on which programs with *threads* threads are timed."""
        return self.options.cores or tuple(usable_cores()[:threads])

    def _client_on(self, cores: tuple[int, ...]) -> RunClient:
        if cores not in self._clients:
            self._clients[cores] = RunClient(
                cores,
                seed=self.options.seed,
                policy=self.options.policy,
                check_points=self.options.check_points,
                run_timeout_s=self.options.run_timeout_s,
                reference_timeout_s=self.options.reference_timeout_s,
                module=self._module,
                in_turns=True,
            )
        return self._clients[cores]


def _refuse_foreign(task: Task) -> None:
    """Reject tasks for other machines, whose code cannot be timed here."""
    if not task.target.runs_on_host():
        raise UsageError(
            f"code for {task.target.name} cannot be timed on this machine ({Target.host().cpu})",
            hint="do it on such a machine and copy the file with its results; "
            "ansorpy compile --effort none times nothing",
        )
