"""Choose programs without measuring, as ``--effort none`` does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.nest_view import view_nest
from ansorpy.cost.pretrained import shipped_model
from ansorpy.cost.protocol import CostModel
from ansorpy.errors import AnsorpyError
from ansorpy.ir.task import Task
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.nest import build_nest
from ansorpy.search.population import Pool, SketchSource, scored_again
from ansorpy.search.selectors.top_k import TopK
from ansorpy.search.strategies.evolution import Evolution
from ansorpy.search.strategy import Context

__all__ = ["PredictOptions", "predicted_best", "predicted_seconds"]


@dataclass(frozen=True)
class PredictOptions:
    """Search effort: placed sketches sampled, rows per generation, generations, programs returned.

    The children of the first generation come from the best ``survivors`` placed sketches, those of
    the next from half as many.  Two survivors instead of three take a seventh less time, for
    programs that the model rates alike (geometric mean 0.999, between 0.94 and 1.05, over 119
    predictions of resnet50, densenet121, MobileNetV2 and Inception v2).  A single generation takes
    another twentieth less, but convolutions with several definitions are up to 1.16 times as slow.
    Eight sketches instead of six take 1.3 times the time, for programs that the model rates alike
    (geometric mean 0.998, between 0.96 and 1.02, over 41 tasks of resnet50 and BERT); with four,
    some are up to 2.8 times as slow.
    """

    sketches: int = 6
    survivors: int = 2
    population: int = 1024
    generations: int = 2
    answers: int = 2
    seed: int = 0
    pretrained: bool = True
    """If a model ships for the machine's family, it chooses among the analytic model's best."""
    drafts: int = 32
    """The search offers 32 times as many candidates for that choice as are answered, of each
    definition and sketch at most twice as many.  Measured on 102 tasks of five networks that the
    model never saw (one of trees of 63 leaves): its first choices are 1.08, 1.09 and 1.10 times as
    fast as the analytic model's with 4, 16 and 32, and no faster with 64 or 200."""


def predicted_best(
    task: Task,
    source: SketchSource,
    *,
    model: CostModel | None = None,
    options: PredictOptions | None = None,
) -> Iterator[State]:
    """Yield programs, starting with the one predicted fastest and ending with the default schedule.

    Nothing is measured; the caller should take the first that builds and gives correct results.

    Without a *model*, the analytic one leads the search, and the one that ships, if there is one,
    orders what was found.  Paper: Pruner (ASPLOS 2025), whose draft model is a formula, too.  A
    search led by the trees finds programs about which they are most wrong: of one of five
    networks, slower ones than the analytic model's by a quarter.
    """
    chosen = options or PredictOptions()
    rng = np.random.default_rng(chosen.seed)
    shipped = None if model or not chosen.pretrained else shipped_model(task.target)
    context = Context(task, source, model or AnalyticModel(), rng)
    search = Evolution(
        scouts=chosen.sketches,
        population=chosen.population,
        generations=chosen.generations,
        survivors=chosen.survivors,
        doubt=0.0 if shipped is None else Evolution.doubt,
    )
    if shipped is None:
        pool = search.ask(context, chosen.answers)
    else:
        drafts = search.ask(context, chosen.drafts)
        pool = Pool(tuple(scored_again(drafts.best, task, shipped)))
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
