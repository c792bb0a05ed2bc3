"""The random forest: ranks, and is uncertain where it has seen little."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import pytest

from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.forest import ForestOptions, RandomForest, program_features
from ansorpy.cost.learner import COLUMNS
from ansorpy.cost.metrics import rank_correlation
from tests.cost.populations import SHAPE, population, true_seconds
from tests.cost.tasks import matmul_task


def trained(n: int = 128, seed: int = 0) -> RandomForest:
    model = RandomForest()
    programs, columns = population(n, seed)
    seconds = true_seconds(columns)
    seconds[::9] = np.inf
    model.learn(matmul_task(*SHAPE), programs, seconds)
    model.refit()
    return model


def test_ranks_programs_it_has_not_seen() -> None:
    programs, columns = population(200, 5)
    task, seconds = matmul_task(*SHAPE), true_seconds(columns)
    before = rank_correlation(AnalyticModel().predict(task, programs), -seconds)
    assert rank_correlation(trained().predict(task, programs), -seconds) > before + 0.1


def test_it_is_the_analytic_model_until_it_has_learnt() -> None:
    programs, _ = population(20, 5)
    task, model = matmul_task(*SHAPE), RandomForest(ForestOptions(min_programs=0))
    model.refit()
    score = model.predict(task, programs)
    np.testing.assert_array_equal(score, AnalyticModel().predict(task, programs))
    np.testing.assert_array_equal(model.deviations(task, programs), model.options.doubt * score)


def test_where_it_is_more_uncertain_it_is_more_wrong() -> None:
    programs, columns = population(1000, 5)
    task, model = matmul_task(*SHAPE), trained(256)
    score, deviation = model.predict(task, programs), model.deviations(task, programs)
    assert (deviation >= 0).all() and (deviation > 0).mean() > 0.9
    wrong = np.log(score * true_seconds(columns))
    wrong = np.abs(wrong - np.median(wrong))
    assert rank_correlation(deviation / score, wrong) > 0.15


def test_equal_records_give_equal_forests() -> None:
    programs, _ = population(50, 6)
    task = matmul_task(*SHAPE)
    for ask in ("predict", "deviations"):
        one, other = (getattr(trained(), ask)(task, programs) for _ in range(2))
        np.testing.assert_array_equal(one, other)


def test_it_grows_anew_when_enough_programs_are_new() -> None:
    task, model = matmul_task(*SHAPE), trained()
    tests, _ = population(50, 6)
    before = model.predict(task, tests)
    for new, changes in ((2, False), (8, True)):
        programs, columns = population(new, 7)
        model.learn(task, programs, true_seconds(columns))
        model.refit()
        assert (model.predict(task, tests) != before).any() == changes


def test_a_split_chooses_among_ten_features_that_vary(monkeypatch: pytest.MonkeyPatch) -> None:
    train, asked = lightgbm.train, []

    def recorded(parameters: dict[str, Any], *rest: Any, **named: Any) -> lightgbm.Booster:
        asked.append(parameters["feature_fraction_bynode"])
        return train(parameters, *rest, **named)

    monkeypatch.setattr(lightgbm, "train", recorded)
    tasks = trained().data.tasks.values()
    rows = np.stack([program_features(part) for samples in tasks for part in samples.features])
    varying = int((rows.max(axis=0) > rows.min(axis=0)).sum())
    assert 10 < varying < len(COLUMNS)
    assert asked == [pytest.approx(10 / varying)]


def test_features_of_a_program_are_totals_over_its_statements(rng: np.random.Generator) -> None:
    counts = rng.integers(0, 1000, size=(7, 3, 5)).astype(float)
    np.testing.assert_allclose(
        program_features(np.log2(1 + counts)), np.log2(1 + counts.sum(axis=1)), atol=1e-9
    )
