"""The interface of cost models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from ansorpy.arrays import Floats
from ansorpy.cost.programs import Beginning, Programs
from ansorpy.ir.task import Task
from ansorpy.measure.records.samples import Samples

__all__ = [
    "Batching", "CostModel", "Divided", "Remembering", "StaticModel", "Uncertain", "Valuing",
    "predictions",
]  # fmt: skip


class CostModel(Protocol):
    """Ranks programs of one task; scores of different tasks are not comparable."""

    @abstractmethod
    def predict(self, task: Task, programs: Programs) -> Floats:
        """Score of each program: positive, finite, and in proportion to its speed."""

    @abstractmethod
    def learn(self, task: Task, programs: Programs, seconds: Floats) -> Samples | None:
        """Remember measured programs, with the seconds of each; infinite ones mean failure.

        Returns the samples, if any, from which a later run can learn the same
        (:class:`Remembering`).
        """

    @abstractmethod
    def refit(self) -> None:
        """Train on everything learned so far."""


class StaticModel:
    """The base of cost models that learn nothing from measurements."""

    def learn(self, task: Task, programs: Programs, seconds: Floats) -> None:
        """Nothing."""

    def refit(self) -> None:
        """Nothing."""


@runtime_checkable
class Batching(Protocol):
    """A model that scores tables of several placed sketches faster together than one at a time."""

    def predict_all(self, task: Task, tables: Sequence[Programs]) -> list[Floats]:
        """The scores that ``predict`` would give if it took all tables at once, split as they are.

        A model that judges each program alone gives exactly those of ``predict``.
        """


@runtime_checkable
class Uncertain(Protocol):
    """A model that knows how uncertain its scores are."""

    def deviations(self, task: Task, programs: Programs) -> Floats | None:
        """Standard deviation of each score of ``predict``.

        None if it is not known, as for a wrapper around a model that does not know it.
        """


@runtime_checkable
class Valuing(Protocol):
    """A model that also scores programs whose last decisions are open."""

    def values(self, task: Task, beginnings: Sequence[Beginning]) -> Floats | None:
        """Score of the best program that begins so; None before the model knows any."""


@runtime_checkable
class Remembering(Protocol):
    """A model that can learn from stored samples of earlier runs."""

    @property
    def remembers(self) -> tuple[str, int]:
        """Version and width of the features it accepts."""

    def recall(self, earlier: Mapping[str, Samples]) -> None:
        """Remember programs measured in earlier runs, by task key.

        A model that learned some of them in a run keeps the larger set of each task.
        """


@runtime_checkable
class Correcting(Protocol):
    """A model that corrects a simpler one, which is less wrong about the programs it likes best."""

    @property
    def corrected(self) -> CostModel | None:
        """The simpler model; None while nothing is known to correct it by."""

    def alone(self) -> CostModel:
        """This model as it orders programs of which none will be measured."""


@runtime_checkable
class Divided(Protocol):
    """A model made of several, each of which learns the trials of some tasks."""

    def model_of(self, task: Task) -> CostModel:
        """The one that learns the trials of *task*."""


def predictions(model: CostModel, task: Task, tables: Sequence[Programs]) -> list[Floats]:
    """*model*'s scores of several tables."""
    if isinstance(model, Batching):
        return model.predict_all(task, tables)
    return [model.predict(task, programs) for programs in tables]
