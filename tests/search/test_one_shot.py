"""The strategy that learns nothing while it searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.forest import RandomForest
from ansorpy.cost.programs import Beginning, Programs
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.search.population import sample_valid, score_all, with_deviations
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


def test_a_frozen_model_knows_its_deviations_and_values() -> None:
    at = context(model=RandomForest())
    pool = Annealing(sketches=2, chains=64, steps=1).ask(at, 8)
    plain, frozen = (
        with_deviations(pool, at.task, model, None) for model in (at.model, Frozen(at.model))
    )
    assert [c.deviation for c in frozen.best] == [c.deviation for c in plain.best]
    assert all(c.deviation for c in frozen.best)
    assert with_deviations(pool, at.task, Frozen(AnalyticModel()), None) is pool
    beginnings = [Beginning(c.sketch.space, c.row[:1]) for c in pool.best]
    assert Frozen(at.model).values(at.task, beginnings) is None
    found = Frozen(Valued()).values(at.task, beginnings)
    assert found is not None and found.tolist() == list(range(len(beginnings)))


class Valued(AnalyticModel):
    """Values beginnings by their place."""

    def values(self, task: Task, beginnings: Sequence[Beginning]) -> Floats | None:
        return np.arange(len(beginnings), dtype=np.float64)


def test_a_frozen_model_scores_as_it_did() -> None:
    at = context()
    tables = [(s, sample_valid(s, 20, at.rng)) for s in at.source.draw(2, at.rng)]
    plain = score_all(at.task, at.model, tables)
    frozen = score_all(at.task, Frozen(at.model), tables)
    for one, other in zip(plain, frozen, strict=True):
        np.testing.assert_array_equal(one.scores, other.scores)
