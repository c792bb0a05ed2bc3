"""Record measured programs of networks' operators and of random ones, as data for cost models."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TypeAlias, Unpack

from ansorpy.api.arguments import SizeArguments
from ansorpy.api.project import open_project
from ansorpy.api.request import Request
from ansorpy.evaluation.random_networks import random_network
from ansorpy.ir.task import Task
from ansorpy.measure.machines import LOCAL, open_machines
from ansorpy.measure.probe.calibrate import calibrated
from ansorpy.measure.probe.others import MOST_SHARED, OtherProcesses
from ansorpy.measure.program_dataset import (
    MeasuredTask,
    ProgramDataset,
    read_dataset,
    write_dataset,
)
from ansorpy.measure.run.runner import MeasureOptions
from ansorpy.measure.workers.locks import lock_file
from ansorpy.target import Target
from ansorpy.tasks.record import QUICK, Recorder, RecordOptions, Skipped
from ansorpy.writable import demand_writable

__all__ = ["RecordProgress", "Sources", "network_tasks", "random_tasks", "record_dataset"]

_CHECK_POINTS = 256
"""Points of each task's reference that the interpreter checks; searches check 4096."""

_SAVE_EVERY_S, _SAVE_SHARE = 60.0, 0.03
"""Seconds between two times that the file is saved, and the share of time that it may take."""

Sources: TypeAlias = Iterable[tuple[str, Task]]
"""Tasks with the names of the networks that they are from."""


@dataclass(frozen=True)
class RecordProgress:
    """What was recorded so far: of *task* nothing, for *reason*, if there is one.

    Args:
        programs: Number of programs in the dataset; ``tasks`` is the number of their tasks.
        rate: Programs that were recorded per second of this run.
    """

    task: Task
    source: str
    programs: int
    tasks: int
    rate: float
    reason: str = ""

    def __str__(self) -> str:
        ended = f"nothing: {self.reason}" if self.reason else f"{self.rate:.1f} programs/s"
        return (
            f"{self.tasks} tasks, {self.programs} programs; "
            f"{self.source}: {self.task.name}: {ended}"
        )


def network_tasks(
    networks: Iterable[str | Path], request: Request, **sizes: Unpack[SizeArguments]
) -> Iterator[tuple[str, Task]]:
    """The tasks of the .onnx files *networks* at *sizes*, with the names of the networks."""
    for network in networks:
        project = open_project(network, request, **sizes)
        yield from ((project.name, task) for task in project.all_tasks)


def random_tasks(count: int, request: Request) -> Iterator[tuple[str, Task]]:
    """The tasks of *count* random networks (:func:`.random_network`)."""
    for seed in range(request.seed, request.seed + count):
        project = open_project(random_network(seed), request)
        yield from (("random", task) for task in project.all_tasks)


def record_dataset(
    path: Path,
    sources: Sources,
    target: Target,
    options: RecordOptions | None = None,
    *,
    time_limit_s: float = inf,
    listener: Callable[[RecordProgress], None] = lambda _: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> ProgramDataset:
    """Measure programs of the tasks of *sources* on this machine, and add them to the file *path*.

    Tasks that the file has already are left out, so that a recording goes on where it ended.  It is
    saved every minute, and when it ends, also by an error or a ``KeyboardInterrupt``; killing the
    process loses what was found since it was saved.  Once *is_stopped*, which is asked after each
    task, it ends.  Nothing is kept of tasks whose programs had to share the cores with other
    processes, as the times are wrong; a later call records them.

    Raises:
        ForeignFile: The file exists, but is not a dataset.
        UsageError: It cannot be written, another recording writes it, or *target*'s programs cannot
            run here.
    """
    demand_writable(path)
    with _recording(path) as recording:
        machine = calibrated(target)
        measuring = MeasureOptions(policy=QUICK, check_points=_CHECK_POINTS)
        with open_machines(LOCAL, measuring, machine) as runner:
            recorder, others = Recorder(runner, options), OtherProcesses()
            fresh = _fresh(sources, machine, recording.dataset, is_stopped)
            for found in recorder.record(fresh):
                # A skipped task may come between the halves of another one, whose window goes on.
                if isinstance(found, MeasuredTask):
                    found = _undisturbed(found, others)
                listener(recording.take(found))
                if is_stopped() or time.monotonic() - recording.began_at > time_limit_s:
                    break
    return recording.dataset


def _undisturbed(found: MeasuredTask, others: OtherProcesses) -> MeasuredTask | Skipped:
    """*found*, unless *others* ran meanwhile on cores that its programs need."""
    shared = others.shared_cores(found.task.threads)
    if shared <= MOST_SHARED:
        return found
    reason = f"its programs shared {shared:.1f} cores with other processes"
    return Skipped(found.task, found.source, reason)


@dataclass
class _Recording:
    """A dataset that grows, and its file."""

    path: Path
    dataset: ProgramDataset
    began_at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._before = self._saved = len(self.dataset)
        self._save_at = self.began_at + _SAVE_EVERY_S

    def take(self, found: MeasuredTask | Skipped) -> RecordProgress:
        """Add what was *found*; saves the file if a minute has passed since the last time."""
        if isinstance(found, MeasuredTask):
            self.dataset.add(found)
            if time.monotonic() > self._save_at:
                self.save()
        programs = len(self.dataset)
        rate = (programs - self._before) / (time.monotonic() - self.began_at)
        reason = found.reason if isinstance(found, Skipped) else ""
        return RecordProgress(
            found.task, found.source, programs, len(self.dataset.tasks), rate, reason
        )

    def save(self) -> None:
        """Write the file if there are programs that it lacks."""
        begin = time.monotonic()
        if len(self.dataset) > self._saved:
            write_dataset(self.dataset, self.path)
            self._saved = len(self.dataset)
        end = time.monotonic()
        self._save_at = end + max(_SAVE_EVERY_S, (end - begin) / _SAVE_SHARE)


@contextmanager
def _recording(path: Path) -> Iterator[_Recording]:
    """The recording in *path*, which no other process changes and which is saved at the end."""
    with lock_file(path):
        recording = _Recording(path, read_dataset(path) if path.exists() else ProgramDataset())
        try:
            yield recording
        finally:
            recording.save()


def _fresh(
    sources: Sources, machine: Target, dataset: ProgramDataset, is_stopped: Callable[[], bool]
) -> Iterator[tuple[str, Task]]:
    """The tasks of *sources* for *machine* that *dataset* lacks, each once, until *is_stopped*."""
    seen = set(dataset.tasks)
    for source, task in sources:
        if is_stopped():
            return
        own = replace(task.static, target=machine)
        if own.key not in seen and not own.dag.dims:
            seen.add(own.key)
            yield source, own
