"""The learned model: ranks, repeats itself, survives saving, and takes failures."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.cost.boosted import BoostedTrees
from ansorpy.cost.dataset import Dataset
from ansorpy.cost.view import Floats
from ansorpy.errors import ForeignFile
from ansorpy.schedule.nest import Nest
from ansorpy.schedule.size import Column
from tests.cost.nests import tiled_matmul
from tests.cost.tasks import matmul_task

SHAPE = (64, 64, 64)


def population(n: int, seed: int) -> tuple[Nest, dict[str, Column]]:
    rng = np.random.default_rng(seed)

    def pick(*values: int) -> Column:
        return Column(rng.choice(values, n))

    columns = {name: pick(1, 2, 4, 8) for name in ("i1", "i2", "j1", "k1")}
    columns |= {"j2": pick(1, 4, 8), "vector": pick(0, 1), "max_unroll": pick(0, 16, 512)}
    return tiled_matmul(*SHAPE, **columns), columns


def true_seconds(columns: dict[str, Column]) -> Floats:
    """A machine unlike the closed-form one: likes tall tiles and short inner reductions."""
    i2, k1, vector = (columns[c].values for c in ("i2", "k1", "vector"))
    seconds: Floats = 1e-3 * (1 + 8 / i2) * (1 + 0.3 * k1) * (1 + 2 * (vector == 0))
    return seconds


def trained(seed: int = 0) -> BoostedTrees:
    model = BoostedTrees()
    nest, columns = population(128, seed)
    seconds = true_seconds(columns)
    seconds[::9] = np.inf
    model.learn(matmul_task(*SHAPE), nest, seconds)
    model.refit()
    return model


def rank_correlation(score: Floats, seconds: Floats) -> float:
    ranks = [np.argsort(np.argsort(x)).astype(float) for x in (score, -seconds)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def test_ranks_programs_it_has_not_seen() -> None:
    nest, columns = population(200, 5)
    score = trained().predict(matmul_task(*SHAPE), nest, 200)
    before = BoostedTrees().predict(matmul_task(*SHAPE), nest, 200)
    seconds = true_seconds(columns)
    assert rank_correlation(score, seconds) > rank_correlation(before, seconds) + 0.1
    assert seconds[np.argsort(-score)[:10]].min() == seconds.min()
    assert np.median(seconds[np.argsort(-score)[:20]]) < np.quantile(seconds, 0.2)


def test_equal_records_give_equal_scores() -> None:
    nest, _ = population(50, 6)
    task = matmul_task(*SHAPE)
    np.testing.assert_array_equal(
        trained().predict(task, nest, 50), trained().predict(task, nest, 50)
    )


def test_saved_model_predicts_the_same_without_the_records() -> None:
    model = trained()
    other = BoostedTrees.load(model.save())
    nest, _ = population(50, 7)
    np.testing.assert_allclose(
        other.predict(matmul_task(*SHAPE), nest, 50), model.predict(matmul_task(*SHAPE), nest, 50)
    )


def test_a_few_new_programs_beside_many_recalled_ones_are_learnt() -> None:
    task, other = matmul_task(*SHAPE), matmul_task(64, 64, 64)
    nest, columns = population(400, 3)
    recalled = BoostedTrees().learn(other, nest, true_seconds(columns))
    model = BoostedTrees()
    model.recall({other.key: recalled})
    model.refit()
    nest, columns = population(16, 4)
    before = model.predict(task, nest, 16)
    model.learn(task, nest, true_seconds(columns)[::-1].copy())
    model.refit()
    assert (model.predict(task, nest, 16) != before).any()
    after = model.predict(task, nest, 16)
    nest, columns = population(2, 8)
    model.learn(task, nest, true_seconds(columns))
    model.refit()
    nest, _ = population(16, 4)
    np.testing.assert_array_equal(model.predict(task, nest, 16), after)


@pytest.mark.parametrize("text", ["", "hello", '{"format": "other"}\n', "[1]\n"])
def test_foreign_text_is_refused(text: str) -> None:
    with pytest.raises(ForeignFile, match="not a cost model"):
        BoostedTrees.load(text)


def test_damaged_trees_are_refused() -> None:
    head = BoostedTrees().save()
    with pytest.raises(ForeignFile, match="cannot be read"):
        BoostedTrees.load(head + "garbage")


def test_too_few_programs_leave_the_prior_alone() -> None:
    model, (nest, columns) = BoostedTrees(), population(4, 1)
    model.learn(matmul_task(*SHAPE), nest, true_seconds(columns))
    model.refit()
    prior_s = 1 / model.prior.predict(matmul_task(*SHAPE), nest, 4)
    score = model.predict(matmul_task(*SHAPE), nest, 4)
    assert (np.argsort(score, kind="stable") == np.argsort(-prior_s, kind="stable")).all()


def test_a_task_of_failures_is_labelled_zero() -> None:
    data = Dataset()
    data.add("t", np.zeros((3, 2, 5)), np.ones(3), np.full(3, np.inf))
    assert (data.training().label == 0).all()


def test_nothing_but_failures_teaches_nothing() -> None:
    model, (nest, _) = BoostedTrees(), population(20, 2)
    model.learn(matmul_task(*SHAPE), nest, np.full(20, np.inf))
    model.refit()
    task = matmul_task(*SHAPE)
    np.testing.assert_allclose(model.predict(task, nest, 20), model.prior.predict(task, nest, 20))


def test_labels_are_relative_throughput_and_failures_zero() -> None:
    data = Dataset()
    data.add("t", np.zeros((3, 1, 5)), np.ones(3), np.array([2.0, 1.0, np.inf]))
    data.add("u", np.zeros((1, 4, 5)), np.ones(1), np.array([7.0]))
    training = data.training()
    assert training.label.tolist() == [0.5, 1.0, 0.0, 1.0]
    assert training.program.tolist() == [0, 1, 2, 3, 3, 3, 3]
    assert training.tasks == (0, 3) and training.starts.tolist() == [0, 1, 2, 3]
