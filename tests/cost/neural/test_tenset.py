"""TenSet's network: what it learns of one task helps with another."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

from ansorpy.cost.boosted import BoostedTrees
from ansorpy.cost.metrics import rank_correlation
from ansorpy.cost.neural.tenset import TenSet
from ansorpy.cost.neural.training import Fitting
from tests.cost.neural.spaces import drawn, seconds_of, task_of


def learned(model: TenSet, n: int, *sizes: int) -> TenSet:
    for size in sizes:
        programs = drawn(task_of(size), n, size)
        model.learn(task_of(size), programs, seconds_of(programs))
    model.refit()
    return model


def test_records_of_other_tasks_beat_a_cold_start() -> None:
    task = task_of(32)
    programs = drawn(task, 150, 2)

    def ranked(model: TenSet) -> float:
        return rank_correlation(model.predict(task, programs), -seconds_of(programs))

    known = learned(TenSet(hidden=64), 100, 16, 64, 128)
    untrained, before = ranked(TenSet()), ranked(known)
    without, together = (
        ranked(learned(TenSet(hidden=64), 64, 32)),
        ranked(learned(known, 64, 32)),
    )
    assert before > untrained and together > without > 0.5


def test_a_few_new_programs_beside_many_recalled_ones_are_learnt() -> None:
    other, model = task_of(32), TenSet(hidden=8, fitting=Fitting(examples=400))
    programs = drawn(other, 400, 1)
    model.recall({other.key: TenSet(hidden=8).learn(other, programs, seconds_of(programs))})
    model.refit()
    recalled = model.weights()["out.weight"]
    few = learned(model, 16, 64).weights()["out.weight"]
    assert (few != recalled).any()
    np.testing.assert_array_equal(learned(model, 2, 64).weights()["out.weight"], few)


def test_it_recalls_the_samples_of_boosted_trees_and_they_its() -> None:
    task = task_of()
    programs = drawn(task, 40, 3)
    network, trees = TenSet(hidden=8), BoostedTrees()
    assert network.remembers == trees.remembers
    by_trees = trees.learn(task, programs, seconds_of(programs))
    by_network = network.learn(task, programs, seconds_of(programs))
    np.testing.assert_allclose(by_network.prior_s, by_trees.prior_s)
    for one, other in zip(by_network.features, by_trees.features, strict=True):
        np.testing.assert_allclose(one, other)
    again = TenSet(hidden=8)
    again.recall({task.key: by_trees})
    for model in (network, again):
        model.refit()
    np.testing.assert_array_equal(network.predict(task, programs), again.predict(task, programs))
