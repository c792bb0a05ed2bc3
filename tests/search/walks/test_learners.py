"""Learners: PPO finds the rewarded choices, Q-learning values what leads to a reward."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

from ansorpy.cost.neural.library import on_threads
from ansorpy.search.walks.ppo import Ppo, PpoOptions, Trail
from ansorpy.search.walks.q_learning import QLearner, QOptions, Transition


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    with on_threads(1, 0):
        yield


def test_ppo_learns_each_heads_rewarded_choice_from_the_state(rng: np.random.Generator) -> None:
    """Head 0 shall do what the state says; head 1 shall do 2; choice 3 is illegal."""
    policy = Ppo(2, 2, 4, PpoOptions(temperature=1.0, actor_rate=1e-2, entropy=0.01))
    legal = np.ones((5, 64, 2, 4), dtype=np.bool_)
    legal[..., 3] = False
    for _ in range(40):
        states = rng.integers(0, 2, size=(6, 64, 2)).astype(np.float64)
        acted = [policy.act(s, mask) for s, mask in zip(states, legal, strict=False)]
        choices = np.array([c for c, _ in acted])
        assert (choices < 3).all()
        wanted = np.stack([states[:-1, :, 0], np.full((5, 64), 2.0)], axis=-1)
        rewards = (choices == wanted).mean(axis=-1)
        ends = np.ones((5, 64), dtype=np.bool_)
        logs = np.array([log for _, log in acted])
        policy.learn(Trail(states, legal, choices, logs, rewards, ends))
    assert rewards.mean() > 0.9
    assert abs(policy.values(states[0]).mean() - rewards.mean()) < 0.2


def test_advantages_are_discounted_surprises(rng: np.random.Generator) -> None:
    policy = Ppo(3, 1, 2, PpoOptions(discount=0.5, smoothing=0.5))
    states, rewards = rng.normal(size=(4, 2, 3)), rng.normal(size=(3, 2))
    ends = np.zeros((3, 2), dtype=np.bool_)
    ends[1, 1] = True
    legal = np.ones((3, 2, 1, 2), dtype=np.bool_)
    trail = Trail(
        states, legal, np.zeros((3, 2, 1), dtype=np.int64), np.zeros((3, 2)), rewards, ends
    )
    values = np.array([policy.values(s) for s in states])
    surprise = rewards + 0.5 * values[1:] - values[:-1]
    found = policy.advantages(trail)
    np.testing.assert_allclose(
        found[:, 0],
        [
            surprise[0, 0] + 0.25 * surprise[1, 0] + 0.0625 * surprise[2, 0],
            surprise[1, 0] + 0.25 * surprise[2, 0],
            surprise[2, 0],
        ],
        rtol=1e-5,
    )
    ended = rewards[1, 1] - values[1, 1]
    np.testing.assert_allclose(found[:2, 1], [surprise[0, 1] + 0.25 * ended, ended])


def test_q_learning_values_the_way_to_a_reward() -> None:
    """Five places in a row; going right from the fourth is rewarded, and ends."""
    learner = QLearner(5, 1, 2, QOptions(hidden=(16, 16), rate=1.0))
    places = np.eye(5)
    for place in range(4):
        for choice, to in ((0, max(place - 1, 0)), (1, place + 1)):
            legal = np.array([to < 4, to < 4])
            reward = float(to == 4)
            for _ in range(8):
                learner.remember(Transition(places[place], 0, choice, reward, places[to], legal))
    errors = [learner.learn() for _ in range(12)]
    assert errors[0][-1] < errors[0][0], "the loss falls"
    values = learner.values(places)[:4, 0]
    assert (values[1:, 1] > values[1:, 0]).all()
    assert values[3, 1] > values[2, 1] > values[1, 1]
    assert abs(values[3, 1] - 1) < 0.2 and abs(values[2, 1] - 0.9) < 0.2


def test_nothing_remembered_nothing_learned() -> None:
    assert QLearner(2, 1, 2, QOptions()).learn() == []
