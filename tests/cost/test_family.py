"""Models by family: which tasks share one, and what that is worth."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.boosted import BoostedOptions, BoostedTrees
from ansorpy.cost.family import FAMILIES, FamilyKind, FamilyModel
from ansorpy.cost.forest import RandomForest
from ansorpy.cost.metrics import rank_correlation
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import CostModel
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.search.population import sample_valid
from ansorpy.search.task_search import SearchOptions, TaskSearch
from ansorpy.search.trials import MeasuredTrials
from ansorpy.target import Target
from tests import workloads
from tests.cost.populations import SHAPE, population, true_seconds
from tests.cost.tasks import matmul_task
from tests.search.runners import FormulaRunner
from tests.search.small import SAMPLING
from tests.search.tasks import matmul, sampler


def trees() -> BoostedTrees:
    return BoostedTrees(BoostedOptions(12))


def conv(size: int, kernel: int) -> Task:
    dag = ComputeDAG.of(workloads.conv2d_bn_relu(1, size, size, 8, 16, kernel))
    return Task(dag, Target.parse("x86-64-v4"), 2)


@pytest.mark.parametrize(
    ("by", "alike"),
    [("anchor", (True, True, False)), ("class", (True, False, False)),
     ("individual", (False, False, False))],
)  # fmt: skip
def test_what_makes_a_family(by: FamilyKind, alike: tuple[bool, ...]) -> None:
    key = FAMILIES[by]
    pairs = (
        (conv(8, 3), conv(16, 3)),
        (conv(8, 3), conv(8, 5)),
        (conv(8, 3), matmul_task(8, 8, 8)),
    )
    assert tuple(key(one) == key(other) for one, other in pairs) == alike
    assert key(conv(8, 3)) == key(conv(8, 3))


def test_families_of_opposite_effects_are_ranked_better_apart() -> None:
    tasks = matmul_task(*SHAPE), conv(8, 3)
    together, apart = trees(), FamilyModel(trees)
    for model in (together, apart):
        for number, task in enumerate(tasks):
            programs, columns = population(128, number)
            seconds = true_seconds(columns)
            model.learn(task, programs, 1e-6 / seconds if number else seconds)
        model.refit()
    programs, columns = population(200, 5)
    seconds = true_seconds(columns)
    for task, truth in zip(tasks, (seconds, 1 / seconds), strict=True):
        one, each = (
            rank_correlation(model.predict(task, programs), -truth) for model in (together, apart)
        )
        assert each > one


def searched(task: Task, model: CostModel, database: Database) -> TaskSearch:
    trials = MeasuredTrials(FormulaRunner(), database)
    return TaskSearch(task, sampler(task), model, trials, SearchOptions(SAMPLING))


def test_a_resumed_family_learns_the_trials_of_all_its_tasks(rng: np.random.Generator) -> None:
    tasks = matmul(24, 40, 36), matmul(64, 32, 16)
    family, together = FamilyModel(trees), trees()
    with Database() as database:
        for task in tasks:
            searched(task, trees(), database).step(16)
        for model in (family, together):
            for task in tasks:
                searched(task, model, database).resume()
            model.refit()
    for task in tasks:
        [sketch] = sampler(task).draw(1, rng)
        programs = Programs(sketch.space, sample_valid(sketch, 20, rng))
        expected = together.predict(task, programs)
        assert (expected != AnalyticModel().predict(task, programs)).any()
        np.testing.assert_array_equal(family.predict(task, programs), expected)


def test_it_knows_what_its_models_know() -> None:
    task = matmul_task(*SHAPE)
    programs, _ = population(5, 1)
    assert FamilyModel().deviations(task, programs) is None
    forest = FamilyModel(RandomForest).deviations(task, programs)
    np.testing.assert_array_equal(forest, RandomForest().deviations(task, programs))
