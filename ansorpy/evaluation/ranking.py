"""Tables of how well cost models ranked held-out programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np

from ansorpy.cost.holdout import Judged, Knowing
from ansorpy.cost.metrics import Ranking
from ansorpy.evaluation.tables import Table

__all__ = ["Evaluated", "figures", "models_table", "overall_table"]

_HEADING = ("correlation", "recall of 5", "speed of 1", "speed of 5")


@dataclass(frozen=True)
class Evaluated:
    """How well the model called *model* ranks those *programs* of *task* that were held out."""

    model: str
    task: str
    programs: int
    figures: Ranking

    def to_dict(self) -> dict[str, object]:
        """Every metric, JSON-serializable; undefined values are null."""
        return {
            "model": self.model,
            "task": self.task,
            "programs": self.programs,
            **_numbers(self.figures),
        }


def models_table(found: Sequence[Evaluated], title: str) -> Table:
    """Means over the tasks, one row per model."""
    rows = []
    for model in dict.fromkeys(each.model for each in found):
        these = [each for each in found if each.model == model]
        counts = str(len(these)), str(sum(each.programs for each in these))
        rows.append((model, *counts, *_means([each.figures for each in these])))
    heading = ("tasks", "programs", *_HEADING, "pairs", "RMSE")
    return Table(title, ("model", *heading), tuple(rows), frozenset(heading))


def overall_table(found: Sequence[Judged]) -> Table:
    """Means over tasks; the rows of one level cover the same tasks for all models."""
    rows = []
    for level in sorted({j.known for j in found if j.known}):
        names = {j.task for j in found if j.known == level}
        for knowing in Knowing:
            these = [
                j.figures
                for j in found
                if j.task in names and j.knowing is knowing and j.known in (0, level)
            ]
            if these:
                label = knowing.value.format(level)
                rows.append((f"{len(names)} tasks", label, *_means(these)[: len(_HEADING)]))
    return Table("means over tasks", ("", "model", *_HEADING), tuple(rows), frozenset(_HEADING))


def _means(figures: Sequence[Ranking]) -> tuple[str, ...]:
    columns = np.array([astuple(f) for f in figures], dtype=np.float64).T
    return tuple("-" if np.isnan(c).all() else f"{np.nanmean(c):.3f}" for c in columns)


def figures(found: Sequence[Judged]) -> list[dict[str, object]]:
    """Every metric of every task, JSON-serializable; undefined values are null."""
    return [
        {
            "task": j.task,
            "model": j.knowing.value.format(j.known),
            "known": j.known,
            "held_out": j.held_out,
            **_numbers(j.figures),
        }
        for j in found
    ]


def _numbers(ranked: Ranking) -> dict[str, float | None]:
    return {f.name: _number(getattr(ranked, f.name)) for f in fields(Ranking)}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value
