"""Measure candidates on this machine's GPUs, one candidate at a time on each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from ansorpy.config import available_cores
from ansorpy.deadline import OutOfTime, left_s, until
from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.check.compare import extra_error
from ansorpy.measure.gpu.batch import GpuBatch
from ansorpy.measure.result import MeasureResult, out_of_time
from ansorpy.measure.run.client import RunClient
from ansorpy.measure.run.interfaces import BuildService, Observer
from ansorpy.measure.run.runner import BuildingRunner, LocalRunner, MeasureOptions
from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.measure.workers.locks import lock_gpus
from ansorpy.measure.workers.supervisor import Worker
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["Gpu", "GpuRunner"]

_WARM_S = 0.005
"""Minimum seconds of untimed calls."""
_SETTLED = 0.02
"""Untimed calls go on until two consecutive bursts differ by at most this fraction."""


@dataclass(frozen=True)
class Gpu:
    """A GPU of this machine: its CUDA device number, and the name of its lock."""

    number: int
    place: str


class GpuRunner(BuildingRunner):
    """Builds cubins in workers that need no GPU, then runs them in one worker per GPU.

    The reference that results are compared with is computed on the CPU.  Each candidate is run as
    soon as it is built, under the machine-wide lock of its GPU.  All workers are started at once,
    so their imports overlap.

    Only a lost CUDA context or a timeout ends a worker.  A spare process, whose context is made
    while nothing is timed, then takes over.

    Args:
        gpus: GPUs of one kind.
        module: Module with the run workers' handlers.
        builder: Replaces the build workers.
    """

    def __init__(
        self,
        gpus: Sequence[Gpu],
        options: MeasureOptions | None = None,
        builder: BuildService | None = None,
        *,
        module: str = "ansorpy.measure.gpu.handlers",
    ) -> None:
        super().__init__(options)
        self.gpus = tuple(gpus)
        self._host = LocalRunner(self.options, builder)
        policy = _for_gpus(self.options.policy)
        self._clients = [
            RunClient(
                None,
                seed=self.options.seed,
                policy=policy,
                check_points=0,
                run_timeout_s=self.options.run_timeout_s,
                reference_timeout_s=self.options.reference_timeout_s,
                module=module,
                environment={"ANSORPY_DEVICE": str(gpu.number)},
                patience=0.0,  # waiting for a GPU must not count as waiting for a core
                spare=True,
            )
            for gpu in self.gpus
        ]
        self._host.start(available_cores())
        for client in self._clients:
            client.start()
        self._threads = ThreadPoolExecutor(len(self.gpus), thread_name_prefix="ansorpy-gpu")

    @property
    def workers(self) -> list[Worker]:
        """The workers of the GPUs in order, each followed by its spare, then those that build."""
        mine = [worker for client in self._clients for worker in client.workers]
        return [*mine, *self._host.workers]

    def close(self) -> None:
        """End all workers."""
        self._threads.shutdown(cancel_futures=True)
        self._host.close()
        for client in self._clients:
            client.close()

    def build(self, task: Task, candidates: Sequence[State]) -> list[Built | MeasureResult]:
        """Build each candidate's cubin and launch plan, or the result that explains the failure.

        Meanwhile spare workers start in place of those that took over.
        """
        for client in self._clients:
            client.start()
        return self._host.build(task, candidates)

    def take_build_times(self) -> list[tuple[float, float]]:
        """When each build since the last call began and ended, by ``time.perf_counter``."""
        return self._host.take_build_times()

    def measure(
        self,
        task: Task,
        candidates: Sequence[State],
        *,
        incumbent_s: float | None,
        observer: Observer | None = None,
    ) -> list[MeasureResult]:
        """Build *candidates*, and run each on the next free GPU as soon as it is built."""
        for client in self._clients:
            client.start()

        def submit(
            client: RunClient, state: State, built: Built, incumbent_s: float | None
        ) -> Future[MeasureResult]:
            lost = extra_error(task.dag, state.definition)
            return self._submit(client, task, built, incumbent_s, lost)

        batch = GpuBatch(candidates, submit, incumbent_s, observer)
        try:
            self._prepare(task)
        except OutOfTime:
            return batch.run(self._clients, enumerate([out_of_time()] * len(candidates)))
        return batch.run(self._clients, self._host.build_each(task, candidates))

    def _client(self, task: Task) -> RunClient:
        """The worker of the first GPU."""
        return self._clients[0]

    def _submit(
        self, client: RunClient, task: Task, built: Built, incumbent_s: float | None, lost: float
    ) -> Future[MeasureResult]:
        """Measure *built* on *client*'s GPU in another thread, under this thread's deadline."""
        self.keep(built)
        moment = time.monotonic() + left_s()
        place = self.gpus[self._clients.index(client)].place

        def measured() -> MeasureResult:
            try:
                with until(moment), lock_gpus([place], self.options.lock_folder):
                    result = client.measure(task, built, incumbent_s, lost)
            except OutOfTime:
                return out_of_time()
            return replace(result, build_s=built.build_s, object_digest=built.digest)

        return self._threads.submit(measured)

    def _prepare(self, task: Task) -> None:
        """Send every worker the reference of *task*."""
        for client in self._clients:
            client.await_spare()
        if all(client.has_reference(task) for client in self._clients):
            return
        reference = self._host.reference(_on_host(task))
        for client in self._clients:
            client.take_reference(task, reference)

    def _alone(self, task: Task) -> AbstractContextManager[None]:
        return lock_gpus([gpu.place for gpu in self.gpus], self.options.lock_folder)


def _for_gpus(policy: TimingPolicy) -> TimingPolicy:
    """*policy* with a warm-up that ends when the GPU's clock is steady."""
    return replace(policy, warm_s=max(policy.warm_s, _WARM_S), settled=_SETTLED)


def _on_host(task: Task) -> Task:
    """The same definition as a task for this machine's CPU."""
    return Task(task.dag, Target.host(), available_cores(), task.precision, name=task.name)
