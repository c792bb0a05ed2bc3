"""How well the cost model ranked the programs that a run measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from ansorpy.cost.metrics import rank_correlation
from ansorpy.errors import ForeignFile
from ansorpy.evaluation.page.recorded_run import RecordedRun
from ansorpy.measure.records.rows import EventRow

__all__ = ["Predicted", "RankedRound", "ranked_rounds"]

_Score = Annotated[float, Field(ge=0, lt=1e30)]
_SCORES = TypeAdapter(list[tuple[int, _Score]])
_LEAST = 1e-30
"""A program with a lower score, a speed, was not ranked."""


@dataclass(frozen=True)
class Predicted:
    """A program's predicted seconds, by the scale of the model, and its measured ones."""

    predicted_s: float
    measured_s: float


@dataclass(frozen=True)
class RankedRound:
    """The programs of a round that ran.

    ``correlation`` is Spearman's rank correlation of predicted with measured times, from -1 to 1;
    None for fewer than three programs, or where the model scored all of them equally.
    """

    task: int
    at_s: float
    programs: tuple[Predicted, ...]
    correlation: float | None


def ranked_rounds(run: RecordedRun) -> list[RankedRound]:
    """The rounds of *run* in order, without programs that were not scored.

    Empty if the run was recorded before scores were.
    """
    results = {m.record.number: m for m in run.measurements}
    numbers = {task.key: number for number, task in enumerate(run.tasks)}
    found = []
    for task, scores in _scored(run.events):
        scored = [(results[n], score) for n, score in scores if n in results and score > _LEAST]
        programs = [
            Predicted(1.0 / score, m.record.measured.median_s) for m, score in scored if m.record.ok
        ]
        if programs and task in numbers:
            at_s = max(m.at_s for m, _ in scored)
            found.append(RankedRound(numbers[task], at_s, tuple(programs), _correlation(programs)))
    return found


def _scored(events: tuple[EventRow, ...]) -> Iterator[tuple[str, list[tuple[int, float]]]]:
    for event in events:
        if event.kind == "refit" and "scores" in event.body:
            try:
                scores = _SCORES.validate_python(event.body["scores"])
            except ValidationError as error:
                said = error.errors()[0]["msg"]
                raise ForeignFile(f"event {event.id} has no scores of programs: {said}") from None
            yield str(event.body.get("task")), scores


def _correlation(programs: list[Predicted]) -> float | None:
    predicted = np.array([p.predicted_s for p in programs])
    measured = np.array([p.measured_s for p in programs])
    found = rank_correlation(predicted, measured)
    return None if np.isnan(found) else found
