"""Choose programs without measuring, as ``--effort none`` does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.nest_view import view_nest
from ansorpy.cost.pretrained import shipped_model
from ansorpy.cost.protocol import CostModel
from ansorpy.errors import AnsorpyError
from ansorpy.ir.task import Task
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.nest import build_nest
from ansorpy.search.population import SketchSource
from ansorpy.search.selectors.top_k import TopK
from ansorpy.search.strategies.evolution import PredictOptions, unmeasured
from ansorpy.search.strategy import Context

__all__ = ["predicted_best", "predicted_seconds"]


def predicted_best(
    task: Task,
    source: SketchSource,
    *,
    model: CostModel | None = None,
    options: PredictOptions | None = None,
) -> Iterator[State]:
    """Yield programs, starting with the one predicted fastest and ending with the default schedule.

    Nothing is measured; the caller should take the first that builds and gives correct results.

    Without a *model*, it is the one that ships for the machine, or else the analytic one.
    """
    chosen = options or PredictOptions()
    shipped = shipped_model(task.target) if model is None and chosen.pretrained else None
    rng = np.random.default_rng(chosen.seed)
    context = Context(task, source, model or shipped or AnalyticModel(), rng)
    for candidate in TopK().pick(unmeasured(context, chosen), chosen.answers, rng):
        try:
            state = candidate.state()
        except AnsorpyError:
            continue  # no program exists for this row; the next one is nearly as good
        yield state
    yield State.initial(task.dag)


def predicted_seconds(task: Task, state: State) -> float:
    """Seconds that the analytic model predicts for *state*, a program of *task*."""
    [seconds] = AnalyticModel().seconds(task, view_nest(build_nest(state, {}), 1))
    return float(seconds)
