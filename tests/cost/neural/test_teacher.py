"""Momentum: a student begins as its teacher, which moves a little after it was trained."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.neural.teacher import Teacher
from ansorpy.cost.neural.tenset import TenSet
from ansorpy.cost.neural.training import Fitting
from ansorpy.cost.protocol import CostModel
from ansorpy.errors import UsageError
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.known_trials import KnownTrials
from ansorpy.search.strategy import Context
from ansorpy.search.transfers import TRANSFERS
from tests.cost.neural.spaces import learned, task_of


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
    def told(model: CostModel) -> None:
        with Database() as database:
            context = Context(task_of(), None, model, np.random.default_rng(0))  # type: ignore[arg-type]
            assert TRANSFERS.one("momentum").first(context, KnownTrials(database)) == ()

    model = learned(TenSet(hidden=16), 1)
    told(model)
    assert model.teacher is not None and model.teacher.weights
    first = model.teacher
    told(model)
    assert model.teacher is first
    with pytest.raises(UsageError, match="moves the weights of a network"):
        told(AnalyticModel())
