"""Choose programs without measuring, as ``--effort none`` does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.nest_view import view_nest
from ansorpy.cost.protocol import CostModel
from ansorpy.errors import AnsorpyError
from ansorpy.ir.task import Task
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.nest import build_nest
from ansorpy.search.population import SketchSource
from ansorpy.search.selectors.top_k import TopK
from ansorpy.search.strategies.evolution import Evolution
from ansorpy.search.strategy import Context

__all__ = ["PredictOptions", "predicted_best", "predicted_seconds"]


@dataclass(frozen=True)
class PredictOptions:
    """Search effort: placed sketches sampled, rows per generation, generations, programs returned.

    The children of the first generation come from the best ``survivors`` placed sketches, those of
    the next from half as many.  That takes a twelfth less time than as many each time, for programs
    that the model rates alike (geometric mean 0.997, 20 tasks of resnet50 and BERT).  Eight
    sketches instead of six take 1.3 times the time, for programs that the model rates alike
    (geometric mean 0.998, between 0.96 and 1.02, over 41 tasks of resnet50 and BERT); with four,
    some are up to 2.8 times as slow.
    """

    sketches: int = 6
    survivors: int = 3
    population: int = 1024
    generations: int = 2
    answers: int = 2
    seed: int = 0


def predicted_best(
    task: Task,
    source: SketchSource,
    *,
    model: CostModel | None = None,
    options: PredictOptions | None = None,
) -> Iterator[State]:
    """Yield programs, starting with the one predicted fastest and ending with the default schedule.

    Nothing is measured; the caller should take the first that builds and gives correct results.
    """
    chosen = options or PredictOptions()
    rng = np.random.default_rng(chosen.seed)
    context = Context(task, source, model or AnalyticModel(), rng)
    search = Evolution(
        scouts=chosen.sketches,
        population=chosen.population,
        generations=chosen.generations,
        survivors=chosen.survivors,
    )
    pool = search.ask(context, chosen.answers)
    for candidate in TopK().pick(pool, chosen.answers, rng):
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
