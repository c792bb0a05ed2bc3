"""Models by family: which tasks share one, and what that is worth."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.cost.boosted import BoostedOptions, BoostedTrees
from ansorpy.cost.family import FAMILIES, FamilyKind, FamilyModel
from ansorpy.cost.forest import RandomForest
from ansorpy.cost.metrics import rank_correlation
from ansorpy.cost.random import RandomModel
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.target import Target
from tests import workloads
from tests.cost.populations import SHAPE, population, true_seconds
from tests.cost.tasks import matmul_task


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


def test_earlier_trials_of_the_run_s_tasks_are_learnt() -> None:
    task = matmul_task(*SHAPE)
    programs, columns = population(64, 1)
    teacher = trees()
    samples = teacher.learn(task, programs, true_seconds(columns))
    teacher.refit()
    model = FamilyModel(trees)
    assert model.remembers == teacher.remembers
    model.recall({task.key: samples, "another": samples})
    np.testing.assert_array_equal(model.predict(task, programs), teacher.predict(task, programs))


def test_it_knows_what_its_models_know() -> None:
    task = matmul_task(*SHAPE)
    programs, _ = population(5, 1)
    assert FamilyModel().deviations(task, programs) is None
    forest = FamilyModel(RandomForest).deviations(task, programs)
    np.testing.assert_array_equal(forest, RandomForest().deviations(task, programs))
    assert FamilyModel(RandomModel).remembers == ("", 0)
