"""Momentum: a student begins as its teacher, which moves a little after it was trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.models import MODELS
from ansorpy.cost.neural.teacher import Teacher
from ansorpy.cost.neural.tenset import TenSet
from ansorpy.cost.neural.training import Fitting
from ansorpy.errors import UsageError
from ansorpy.search.task_search import SearchOptions
from ansorpy.search.transfers.momentum import Momentum
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.tune import TuneOptions
from tests.cost.neural.spaces import learned
from tests.search.runners import FormulaRunner
from tests.search.small import SAMPLING, TREES
from tests.tasks.test_replay import tune


def test_the_teacher_moves_by_what_momentum_leaves() -> None:
    model = learned(TenSet(hidden=16), 1)
    model.teacher = Teacher(momentum=0.9, every=2, weights=model.weights())
    m = np.float32(0.9)
    for turn in range(4):
        before, student = dict(model.teacher.weights), model.weights()
        learned(model, 2 + turn)
        for name, array in model.teacher.weights.items():
            moved = m * before[name] + (1 - m) * model.weights()[name]
            np.testing.assert_array_equal(array, before[name] if turn % 2 else moved)
        assert any((array != student[name]).any() for name, array in model.weights().items())


def test_a_student_begins_as_its_teacher() -> None:
    model = learned(TenSet(hidden=16), 1)
    start = model.weights()
    learned(model, 2)
    model.teacher = Teacher(every=1, weights=start)
    model.fitting = Fitting(rate=0.0)
    learned(model, 3)
    for name in start.keys() - {"line"}:
        np.testing.assert_array_equal(model.weights()[name], start[name])


def test_a_model_without_weights_has_no_teacher() -> None:
    momentum = Momentum()
    model = learned(TenSet(hidden=16), 1)
    momentum.begin(model)
    assert model.teacher is not None and model.teacher.weights
    first = model.teacher
    momentum.begin(model)
    assert model.teacher is first
    with pytest.raises(UsageError, match="moves the weights of a network"):
        momentum.begin(AnalyticModel())


def test_the_teacher_is_what_was_loaded_and_not_what_earlier_trials_made_of_it(
    tmp_path: Path,
) -> None:
    model = learned(TenSet(hidden=16), 1)
    loaded = model.weights()
    before = TuneOptions(SearchOptions(SAMPLING), model=TREES)
    after = TuneOptions(SearchOptions(SAMPLING, transfer=Momentum()), model=MODELS.shared(model))
    for options in (before, after):
        tune(tmp_path / "a.db", Budget(trials=40), FormulaRunner(), options)
    assert model.teacher is not None
    m, trained = np.float32(0.99), model.weights()
    for name, array in model.teacher.weights.items():
        np.testing.assert_array_equal(array, m * loaded[name] + (1 - m) * trained[name])
    assert any((array != loaded[name]).any() for name, array in trained.items())
