"""Programs chosen without measuring: the model that ships has the last word, if there is one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.programs import Programs
from ansorpy.ir.task import Task
from ansorpy.search.strategies.evolution import PredictOptions
from ansorpy.target import Target
from ansorpy.tasks import predict
from ansorpy.tasks.predict import predicted_best
from tests.search.tasks import matmul, sampler

pytestmark = pytest.mark.whole_search

TASK = matmul(48, 64, 40)
OPTIONS = PredictOptions(sketches=3, population=96, generations=1)


class Contrary(AnalyticModel):
    """Prefers what the analytic model takes for slow; counts what it scores."""

    seen = 0

    def predict(self, task: Task, programs: Programs) -> Floats:
        self.seen += len(programs)
        return -super().predict(task, programs)


class Correction(Contrary):
    """Corrects the analytic model."""

    corrected = AnalyticModel()

    def alone(self) -> Correction:
        return self


def _best(options: PredictOptions) -> tuple[str, float]:
    state = next(iter(predicted_best(TASK, sampler(TASK), options=options)))
    [score] = AnalyticModel().predict(TASK, Programs.of(state))
    return str(state.history), float(score)


def test_the_model_that_ships_chooses_among_the_analytic_models_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Target] = []
    model = Correction()

    def shipped(target: Target) -> Correction:
        asked.append(target)
        return model

    monkeypatch.setattr(predict, "shipped_model", lambda target: None)
    analytic = _best(OPTIONS)
    monkeypatch.setattr(predict, "shipped_model", shipped)
    chosen = _best(OPTIONS)
    assert asked == [TASK.target]
    assert 1 < model.seen <= 4 * OPTIONS.drafts
    assert chosen[1] < analytic[1]
    assert _best(replace(OPTIONS, pretrained=False)) == analytic


def test_it_is_not_asked_if_another_model_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict, "shipped_model", lambda target: pytest.fail("asked"))
    given = Contrary()
    states = list(predicted_best(TASK, sampler(TASK), model=given, options=OPTIONS))
    scores = [float(AnalyticModel().predict(TASK, Programs.of(state))[0]) for state in states[:-1]]
    assert given.seen and scores == sorted(scores)
    assert np.isfinite(scores).all()
