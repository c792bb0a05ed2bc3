"""The learned model: ranks, repeats itself, and takes failures."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ansorpy.cost.boosted import BoostedOptions, BoostedTrees, WeightedTrees
from ansorpy.cost.dataset import Dataset
from ansorpy.cost.learner import SHARES
from ansorpy.cost.metrics import rank_correlation
from ansorpy.errors import ForeignFile
from tests.cost.populations import SHAPE, population, trained, true_seconds
from tests.cost.tasks import matmul_task


def test_ranks_programs_it_has_not_seen() -> None:
    programs, columns = population(200, 5)
    score = trained().predict(matmul_task(*SHAPE), programs)
    before = BoostedTrees().predict(matmul_task(*SHAPE), programs)
    seconds = true_seconds(columns)
    assert rank_correlation(score, -seconds) > rank_correlation(before, -seconds) + 0.1
    assert seconds[np.argsort(-score)[:10]].min() == seconds.min()
    assert np.median(seconds[np.argsort(-score)[:20]]) < np.quantile(seconds, 0.2)


def test_equal_records_give_equal_scores() -> None:
    programs, _ = population(50, 6)
    task = matmul_task(*SHAPE)
    np.testing.assert_array_equal(
        trained().predict(task, programs), trained().predict(task, programs)
    )


def test_a_few_new_programs_beside_many_recalled_ones_are_learnt() -> None:
    task, other = matmul_task(*SHAPE), matmul_task(32, 64, 64)
    programs, columns = population(400, 3)
    recalled = BoostedTrees().learn(other, programs, true_seconds(columns))
    model = BoostedTrees()
    model.recall({other.key: recalled})
    model.refit()
    programs, columns = population(16, 4)
    before = model.predict(task, programs)
    model.learn(task, programs, true_seconds(columns)[::-1].copy())
    model.refit()
    assert (model.predict(task, programs) != before).any()
    after = model.predict(task, programs)
    programs, columns = population(2, 8)
    model.learn(task, programs, true_seconds(columns))
    model.refit()
    programs, _ = population(16, 4)
    np.testing.assert_array_equal(model.predict(task, programs), after)


def test_a_resumed_run_trains_as_often_as_one_that_never_stopped() -> None:
    task = matmul_task(*SHAPE)
    programs, columns = population(400, 3)
    whole, resumed = BoostedTrees(BoostedOptions(8)), BoostedTrees(BoostedOptions(8))
    resumed.recall({task.key: whole.learn(task, programs, true_seconds(columns))})
    trained: dict[BoostedTrees, list[int]] = {whole: [], resumed: []}
    for size in range(6, 60, 6):
        programs, columns = population(6, size)
        for model, after in trained.items():
            before = model.trees()
            model.learn(task, programs, true_seconds(columns))
            model.refit()
            if model.trees() != before:
                after.append(size)
    assert trained[whole] == trained[resumed] == [6, 30, 54]


@pytest.mark.parametrize("sees_shares", [False, True])
def test_trees_of_a_search_split_by_the_features_alone(sees_shares: bool) -> None:
    task, (programs, columns) = matmul_task(*SHAPE), population(128, 0)
    model = BoostedTrees(BoostedOptions(sees_shares=sees_shares))
    model.learn(task, programs, true_seconds(columns))
    model.refit()
    [trees] = model.trees()
    found = re.findall(r"^split_feature=(.*)$", trees.text, re.MULTILINE)
    splits = {int(column) for line in found for column in line.split()}
    assert min(splits) < SHARES.start
    assert (max(splits) >= SHARES.start) == sees_shares


def test_a_few_programs_of_noise_do_not_turn_the_order_around(rng: np.random.Generator) -> None:
    task, model = matmul_task(*SHAPE), BoostedTrees()
    programs, _ = population(24, 11)
    seconds = 1 / model.prior.predict(task, programs)
    model.learn(task, programs, seconds * rng.lognormal(0, 0.3, 24))
    model.refit()
    programs, _ = population(200, 12)
    prior = model.prior.predict(task, programs)
    score = model.predict(task, programs)
    assert rank_correlation(score, prior) > 0.85
    assert not np.array_equal(score, prior)


def test_new_trees_learn_what_the_earlier_ones_leave() -> None:
    task, base = matmul_task(*SHAPE), trained()
    programs, columns = population(64, 4)
    agreeing, against = BoostedTrees(base=base.trees()), BoostedTrees(base=base.trees())
    agreeing.learn(task, programs, true_seconds(columns))
    against.learn(task, programs, 1 / true_seconds(columns))
    tests, columns = population(100, 9)
    before = np.log(base.predict(task, tests))
    changes = []
    for model in (agreeing, against):
        model.refit()
        [first, _] = model.trees()
        assert (first,) == base.trees()
        changes.append(np.std(np.log(model.predict(task, tests)) - before))
    assert changes[0] < 0.7 * changes[1]
    times = true_seconds(columns)
    right = [rank_correlation(m.predict(task, tests), -times) for m in (base, against)]
    assert right[1] < right[0] - 0.1


def test_trees_that_are_none_are_refused() -> None:
    with pytest.raises(ForeignFile, match="cannot be read"):
        BoostedTrees(base=[WeightedTrees(1.0, "garbage")])


def test_too_few_programs_leave_the_prior_alone() -> None:
    model, (programs, columns) = BoostedTrees(), population(4, 1)
    model.learn(matmul_task(*SHAPE), programs, true_seconds(columns))
    model.refit()
    prior_s = 1 / model.prior.predict(matmul_task(*SHAPE), programs)
    score = model.predict(matmul_task(*SHAPE), programs)
    assert (np.argsort(score, kind="stable") == np.argsort(-prior_s, kind="stable")).all()


def test_a_task_of_failures_is_labelled_zero() -> None:
    data = Dataset()
    data.add("t", np.zeros((3, 2, 5)), np.ones(3), np.full(3, np.inf))
    assert (data.training().label == 0).all()


def test_nothing_but_failures_teaches_nothing() -> None:
    model, (programs, _) = BoostedTrees(), population(20, 2)
    model.learn(matmul_task(*SHAPE), programs, np.full(20, np.inf))
    model.refit()
    task = matmul_task(*SHAPE)
    np.testing.assert_allclose(model.predict(task, programs), model.prior.predict(task, programs))


def test_labels_are_relative_throughput_and_failures_zero() -> None:
    data = Dataset()
    data.add("t", np.zeros((3, 1, 5)), np.ones(3), np.array([2.0, 1.0, np.inf]))
    data.add("u", np.zeros((1, 4, 5)), np.ones(1), np.array([7.0]))
    training = data.training()
    assert training.label.tolist() == [0.5, 1.0, 0.0, 1.0]
    assert training.program.tolist() == [0, 1, 2, 3, 3, 3, 3]
    assert training.tasks == (0, 3) and training.starts.tolist() == [0, 1, 2, 3]
