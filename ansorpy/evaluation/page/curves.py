"""How the best times of a run's tasks and networks fell over its trials and its time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import inf

from ansorpy.evaluation.page.recorded_run import Measurement, RecordedRun
from ansorpy.tasks.alternatives import leader_calls
from ansorpy.tasks.objective import TunedNetwork, is_known, latency_s
from ansorpy.tasks.progress import TaskProgress

__all__ = ["NetworkCurve", "Point", "called", "network_curves", "task_curve"]


@dataclass(frozen=True)
class Point:
    """The best seconds after so many trials, which took *at_s* seconds of tuning."""

    at_s: float
    trials: int
    best_s: float


@dataclass(frozen=True)
class NetworkCurve:
    """The latency of a network's kernels wherever it changed, from when all of them had a program.

    ``first_s`` is the sum with the first correct program of each task; None if one has none.
    """

    name: str
    points: tuple[Point, ...]
    first_s: float | None

    @property
    def best_s(self) -> float | None:
        """The latency in the end; None if a task has no correct program."""
        return self.points[-1].best_s if self.points else None


class _Best:
    """The best time of a task so far, where a later result of a program replaces earlier ones."""

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}
        self.first_s = inf
        self.best_s = inf

    def add(self, measurement: Measurement) -> None:
        record = measurement.record
        if record.ok and record.median_s is not None:
            self._seconds[record.id] = record.median_s
            self.first_s = record.median_s if self.first_s == inf else self.first_s
        else:
            self._seconds.pop(record.id, None)
        self.best_s = min(self._seconds.values(), default=inf)


def task_curve(measurements: Sequence[Measurement]) -> tuple[list[Point], float | None]:
    """Where the best time of one task changed, and the time of its first correct program.

    The curve ends with its last trial.
    """
    best, trials = _Best(), 0
    points: list[Point] = []
    for measurement, is_whole in _steps(measurements):
        best.add(measurement)
        trials += not measurement.is_again
        if is_whole and best.best_s < inf and (not points or points[-1].best_s != best.best_s):
            points.append(Point(measurement.at_s, trials, best.best_s))
    if points and points[-1].trials < trials:
        points.append(Point(measurements[-1].at_s, trials, points[-1].best_s))
    return points, None if best.first_s == inf else best.first_s


def network_curves(run: RecordedRun) -> list[NetworkCurve]:
    """The curve of each network of *run*."""
    best = [_Best() for _ in run.tasks]
    curves: list[list[Point]] = [[] for _ in run.networks]
    trials, shown = 0, [inf] * len(best)
    for measurement, is_whole in _steps(run.measurements):
        best[measurement.task].add(measurement)
        trials += not measurement.is_again
        times = [one.best_s for one in best]
        is_last = measurement is run.measurements[-1]
        if not is_last and (not is_whole or times == shown):
            continue
        shown = times
        for points, seconds in zip(curves, _latencies(run, times), strict=True):
            if seconds is not None and (is_last or not points or points[-1].best_s != seconds):
                points.append(Point(measurement.at_s, trials, seconds))
    first = _latencies(run, [one.first_s for one in best])
    return [
        NetworkCurve(network.name, tuple(points), first_s)
        for network, points, first_s in zip(run.networks, curves, first, strict=True)
    ]


def _steps(measurements: Sequence[Measurement]) -> Iterator[tuple[Measurement, bool]]:
    """Each measurement, and whether the best times count after it.

    Finalists are timed again together: only after the last of them can their times be compared.
    """
    for measurement, following in zip_longest(measurements, measurements[1:]):
        yield measurement, following is None or not (measurement.is_again and following.is_again)


def called(run: RecordedRun, network: TunedNetwork, best_s: Sequence[float | None]) -> list[float]:
    """How often *network* calls each task of *run*, in the fastest way to partition it."""
    progress = _progress(run, [inf if seconds is None else seconds for seconds in best_s])
    calls = list(map(float, network.calls))
    for region in network.regions:
        more = leader_calls(region, progress)
        calls = [one + float(other) for one, other in zip(calls, more, strict=True)]
    return calls


def _latencies(run: RecordedRun, best_s: Sequence[float]) -> Iterator[float | None]:
    """The latency of each network; None while a task that it calls has no correct program."""
    progress = _progress(run, best_s)
    for network in run.networks:
        yield latency_s(network, progress) if is_known(network, progress) else None


def _progress(run: RecordedRun, best_s: Sequence[float]) -> list[TaskProgress]:
    return [
        TaskProgress((seconds,), (1,), task.flops, alive=True)
        for task, seconds in zip(run.tasks, best_s, strict=True)
    ]
