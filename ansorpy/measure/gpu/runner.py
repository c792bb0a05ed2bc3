"""Measuring candidates on the GPUs of this machine: as many at once as there are GPUs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType

from ansorpy.config import available_cores
from ansorpy.deadline import OutOfTime, left_s, until
from ansorpy.ir.task import Task
from ansorpy.measure.built import Built
from ansorpy.measure.check import extra_error
from ansorpy.measure.locks import lock_gpus
from ansorpy.measure.recent import Recent
from ansorpy.measure.result import MeasureResult, out_of_time
from ansorpy.measure.run_client import RunClient
from ansorpy.measure.runner import BuildService, LocalRunner, MeasureOptions, Observer
from ansorpy.phases import Part, phase
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["Gpu", "GpuRunner"]

_WARM_S = 0.01
"""Seconds of untimed calls at least: an idle GPU runs at a low clock."""


@dataclass(frozen=True)
class Gpu:
    """A GPU of this machine: its number as CUDA counts, and what its lock is called."""

    number: int
    place: str


class GpuRunner:
    """Builds cubins in workers that need no GPU, then runs them in one worker a GPU.

    The reference that results are compared with is computed on the CPU.  Timing holds the
    machine-wide lock of its GPUs.  A context manager: leaving it ends all workers.

    Args:
        gpus: GPUs of one kind.
        module: Where the run workers' handlers are.
        builder: Replaces the build workers.
    """

    def __init__(
        self,
        gpus: Sequence[Gpu],
        options: MeasureOptions | None = None,
        builder: BuildService | None = None,
        *,
        module: str = "ansorpy.measure.gpu.job",
    ) -> None:
        self.options = options or MeasureOptions()
        self.gpus = tuple(gpus)
        self._host = LocalRunner(self.options, builder)
        policy = self.options.policy
        self._clients = [
            RunClient(
                None,
                seed=self.options.seed,
                policy=replace(policy, warm_s=max(policy.warm_s, _WARM_S)),
                check_points=0,
                run_timeout_s=self.options.run_timeout_s,
                reference_timeout_s=self.options.reference_timeout_s,
                module=module,
                environment={"ANSORPY_DEVICE": str(gpu.number)},
                patience=0.0,  # a worker that waits for its GPU uses no processor
            )
            for gpu in self.gpus
        ]
        self._threads = ThreadPoolExecutor(len(self.gpus), thread_name_prefix="ansorpy-gpu")
        self._kept = Recent[str, Built](self.options.kept_builds)

    def __enter__(self) -> GpuRunner:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all workers."""
        self._threads.shutdown(cancel_futures=True)
        self._host.close()
        for client in self._clients:
            client.close()

    def build(self, task: Task, candidates: Sequence[State]) -> list[Built | MeasureResult]:
        """Cubin and launch plan of each candidate, or the result that says why there is none."""
        return self._host.build(task, candidates)

    def built(self, object_digest: str) -> Built | None:
        """Code that was measured lately, by :attr:`MeasureResult.object_digest`."""
        return self._kept.get(object_digest)

    def measure(
        self,
        task: Task,
        candidates: Sequence[State],
        *,
        incumbent_s: float | None,
        observer: Observer | None = None,
    ) -> list[MeasureResult]:
        """Check and time *candidates*, each on the next GPU that is free.

        Raises:
            VerificationFailed: The reference itself is wrong.
        """
        builds = self.build(task, candidates)
        if not self._prepare(task, builds):
            builds = [out_of_time()] * len(builds)
        batch = _Batch(self, task, candidates, builds, incumbent_s, observer)
        with self._locked(), phase(Part.RUN):
            return batch.run(self._clients)

    def retime(
        self, task: Task, candidates: Sequence[State], *, rounds: int = 9
    ) -> list[MeasureResult]:
        """Time finalists in turns, on the first GPU."""
        builds = self.build(task, candidates)
        if not self._prepare(task, builds):
            return [out_of_time()] * len(builds)
        good = [build for build in builds if isinstance(build, Built)]
        with self._locked():
            timed = iter(self._clients[0].retime(task, good, rounds) if good else [])
        return [next(timed) if isinstance(build, Built) else build for build in builds]

    def submit(
        self, client: RunClient, task: Task, built: Built, incumbent_s: float | None, lost: float
    ) -> Future[MeasureResult]:
        """The result of *built* on *client*'s GPU, before the deadline that holds here."""
        self._kept.put(built.digest, built)
        moment = time.monotonic() + left_s()

        def measured() -> MeasureResult:
            with until(moment):
                result = client.measure(task, built, incumbent_s, lost)
            return replace(result, build_s=built.build_s, object_digest=built.digest)

        return self._threads.submit(measured)

    def _prepare(self, task: Task, builds: Sequence[Built | MeasureResult]) -> bool:
        """Give every worker the reference of *task*; False when there was no time for it."""
        if all(client.has_reference(task) for client in self._clients):
            return True
        if not any(isinstance(build, Built) for build in builds):
            return True
        try:
            outputs = self._host.reference(_on_host(task))
        except OutOfTime:
            return False
        for client in self._clients:
            client.take_reference(task, outputs)
        return True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with lock_gpus([gpu.place for gpu in self.gpus], self.options.lock_folder):
            yield


class _Batch:
    """Candidates being shared out to GPUs; the observer is told in the caller's thread."""

    def __init__(
        self,
        runner: GpuRunner,
        task: Task,
        candidates: Sequence[State],
        builds: Sequence[Built | MeasureResult],
        incumbent_s: float | None,
        observer: Observer | None,
    ) -> None:
        self.runner = runner
        self.task = task
        self.candidates = candidates
        self.builds = builds
        self.incumbent_s = incumbent_s
        self.observer = observer
        self.results: dict[int, MeasureResult] = {}

    def run(self, clients: Sequence[RunClient]) -> list[MeasureResult]:
        """All results, in the candidates' order."""
        waiting = deque(range(len(self.builds)))
        free = list(clients)
        busy: dict[Future[MeasureResult], tuple[int, RunClient]] = {}
        while waiting or busy:
            while waiting and free:
                index = waiting.popleft()
                future = self._start(index, free[0])
                if future is not None:
                    busy[future] = (index, free.pop(0))
            done = wait(busy, return_when=FIRST_COMPLETED).done if busy else ()
            for future in done:
                index, client = busy.pop(future)
                free.append(client)
                self._finish(index, future.result())
        return [self.results[index] for index in range(len(self.builds))]

    def _start(self, index: int, client: RunClient) -> Future[MeasureResult] | None:
        """Candidate *index* on its way; None when its result is known without running it."""
        known = None if self.observer is None else self.observer.started(index)
        if known is not None:
            self.results[index] = known
            return None
        build = self.builds[index]
        if isinstance(build, MeasureResult):
            self._finish(index, build)
            return None
        lost = extra_error(self.task.dag, self.candidates[index].base)
        return self.runner.submit(client, self.task, build, self.incumbent_s, lost)

    def _finish(self, index: int, result: MeasureResult) -> None:
        self.results[index] = result
        if result.ok:
            self.incumbent_s = min(result.median_s, self.incumbent_s or result.median_s)
        if self.observer is not None:
            build = self.builds[index]
            self.observer.finished(index, result, build if isinstance(build, Built) else None)


def _on_host(task: Task) -> Task:
    """The same definition for this machine's CPU."""
    return Task(task.dag, Target.host(), available_cores(), task.precision, name=task.name)
