"""Cost models by name."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.cost.models import MODELS
from ansorpy.cost.programs import Programs
from ansorpy.errors import MissingDependency, UsageError
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from tests.cost.tasks import matmul_task

SHAPE = (64, 64, 64)


def programs(n: int) -> Programs:
    state = State.initial(matmul_task(*SHAPE).dag)
    state, _ = state.split("C", "i", (OneOf((1, 2, 4, 8)),))
    state, _ = state.split("C", "j", (OneOf((8, 16)),))
    space = Space(state)
    return Programs(space, space.sample(n, np.random.default_rng(0)))


@pytest.mark.parametrize("name", MODELS.names)
def test_every_model_scores_learns_and_scores_again(name: str) -> None:
    try:
        model = MODELS.one(name)
    except MissingDependency as error:
        pytest.skip(error.message)
    task = matmul_task(*SHAPE)
    for _ in range(2):
        score = model.predict(task, programs(3))
        assert score.shape == (3,) and np.isfinite(score).all()
        model.learn(task, programs(3), np.array([1e-3, 2e-3, np.inf]))
        model.refit()


def test_random_scores_differ_and_repeat_with_the_seed() -> None:
    task = matmul_task(*SHAPE)
    scores = [MODELS.one("random").predict(task, programs(50)) for _ in range(2)]
    assert len(set(scores[0])) == 50
    np.testing.assert_array_equal(scores[0], scores[1])


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match='unknown cost model "forest"'):
        MODELS.one("forest")
