"""The strategy that learns nothing while it searches."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.programs import Programs
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.search.population import sample_valid, score_all
from ansorpy.search.strategies.annealing import Annealing
from ansorpy.search.strategies.one_shot import Frozen, OneShot
from ansorpy.search.task_search import SearchOptions, TaskSearch
from ansorpy.search.trials import MeasuredTrials
from tests.search.asking import context
from tests.search.runners import FormulaRunner
from tests.search.tasks import matmul, sampler


@dataclass(frozen=True)
class Trained(AnalyticModel):
    """Counts what it is asked to learn."""

    learned: list[str] = field(default_factory=list)

    def learn(self, task: Task, programs: Programs, seconds: Floats) -> None:
        self.learned.append("learn")

    def refit(self) -> None:
        self.learned.append("refit")


def test_one_search_of_the_model_decides_what_is_measured_and_nothing_is_learned() -> None:
    task, model, runner = matmul(24, 24, 24), Trained(), FormulaRunner()
    strategy = OneShot(12, Annealing(sketches=2, chains=64, steps=3))
    options = SearchOptions(lambda: strategy)
    search = TaskSearch(task, sampler(task), model, MeasuredTrials(runner, Database()), options)
    while not search.exhausted:
        search.step(8)
    assert model.learned == []
    assert 12 <= search.history.trials <= 13, "the best twelve, and the default schedule"
    assert search.history.best is not None


def test_the_best_by_the_model_are_offered_first_and_only_once() -> None:
    at, strategy = context(), OneShot(10, Annealing(sketches=2, chains=64, steps=3))
    first = strategy.ask(at, 4).best
    scores = [c.score for c in first]
    assert len(first) == 10 and scores == sorted(scores, reverse=True)
    at.note(first[:4])
    assert strategy.ask(at, 4).best == first[4:]
    at.note(first)
    assert strategy.ask(at, 4).best == ()


def test_a_frozen_model_scores_as_it_did() -> None:
    at = context()
    tables = [(s, sample_valid(s, 20, at.rng)) for s in at.source.draw(2, at.rng)]
    plain = score_all(at.task, at.model, tables)
    frozen = score_all(at.task, Frozen(at.model), tables)
    for one, other in zip(plain, frozen, strict=True):
        np.testing.assert_array_equal(one.scores, other.scores)
