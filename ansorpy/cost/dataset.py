"""Measured programs as training data: statement features and measured times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Floats
from ansorpy.measure.records.samples import Samples

__all__ = ["Dataset", "TaskSamples", "Training"]


@dataclass
class TaskSamples:
    """The measured programs of one task.

    Programs of one task may have different numbers of statements, so features are a list.
    """

    features: list[Floats] = field(default_factory=list)
    prior_s: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def first(self, n: int | None) -> TaskSamples:
        """The first *n* programs; all for None."""
        return TaskSamples(self.features[:n], self.prior_s[:n], self.seconds[:n])

    def after(self, n: int) -> TaskSamples:
        """The programs after the first *n*."""
        return TaskSamples(self.features[n:], self.prior_s[n:], self.seconds[n:])

    @property
    def labels(self) -> Floats:
        """Throughput relative to the task's best program, in 0..1; failures are 0.

        Differs: in TVM, each program gets label 1 if all programs of a task failed.
        """
        seconds = np.asarray(self.seconds)
        best = seconds.min(initial=np.inf)
        if not np.isfinite(best):
            return np.zeros(len(seconds))
        labels: Floats = best / seconds
        return labels

    @property
    def prior(self) -> Floats:
        """Logarithm of the prior's throughput relative to the task's best program, which has 0."""
        prior_s = np.asarray(self.prior_s)
        logarithm: Floats = np.log(prior_s.min() / prior_s)
        return logarithm


@dataclass(frozen=True)
class Training:
    """One row per statement; ``program[r]`` is the program that row ``r`` belongs to.

    ``starts`` has the first row of each program, ``tasks`` the first program of each task.
    """

    features: Floats
    program: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    tasks: tuple[int, ...]
    label: Floats
    prior: Floats


@dataclass
class Dataset:
    """All measured programs, by task key; ``own`` are the keys of those not only recalled."""

    tasks: dict[str, TaskSamples] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return sum(len(samples.seconds) for samples in self.tasks.values())

    def add(
        self,
        task: str,
        features: Iterable[Floats],
        prior_s: Iterable[float],
        seconds: Iterable[float],
    ) -> None:
        """Add programs of *task*: their features ``[statements, width]``, seconds (inf: failed)."""
        samples = self.tasks.setdefault(task, TaskSamples())
        samples.features.extend(features)
        samples.prior_s.extend(map(float, prior_s))
        samples.seconds.extend(map(float, seconds))
        self.own.add(task)

    def recall(self, earlier: Mapping[str, Samples]) -> None:
        """Add programs of earlier runs; of each task, the larger set is kept."""
        for task, samples in earlier.items():
            if len(samples) > len(self.tasks.get(task, TaskSamples()).seconds):
                self.tasks[task] = TaskSamples(
                    list(samples.features),
                    list(map(float, samples.prior_s)),
                    list(map(float, samples.seconds)),
                )

    def grew(self, trained_on: int, own_share: float, share: float) -> bool:
        """Whether there are enough programs beside *trained_on* of them to train again.

        Enough are *own_share* of the programs of own tasks, including those of earlier runs, as if
        the run had never stopped, and *share* of all, as recalled ones make training slower.
        """
        own = sum(len(samples.seconds) for key, samples in self.tasks.items() if key in self.own)
        return len(self) - trained_on >= max(own_share * own, share * len(self))

    def training(self) -> Training:
        """All programs as one table, in the order added; labels are per program."""
        tasks = list(self.tasks.values())
        parts = [part for samples in tasks for part in samples.features]
        lengths = np.array([len(part) for part in parts], dtype=np.int64)
        label = np.concatenate([samples.labels for samples in tasks])
        return Training(
            features=np.concatenate(parts),
            program=np.repeat(np.arange(len(parts)), lengths),
            starts=np.cumsum(lengths) - lengths,
            tasks=tuple(np.cumsum([0, *(len(s.seconds) for s in tasks[:-1])]).tolist()),
            label=label,
            prior=np.concatenate([samples.prior for samples in tasks]),
        )
