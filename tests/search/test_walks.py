"""The strategies that walk on neighbours: what each promises."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

from ansorpy.arrays import Floats, Masks
from ansorpy.cost.metrics import rank_correlation
from ansorpy.cost.programs import Programs
from ansorpy.cost.random import RandomModel
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.decisions import moves
from ansorpy.search.population import Candidate
from ansorpy.search.strategies.chameleon import Chameleon
from ansorpy.search.strategies.flextensor import FlexTensor
from ansorpy.search.strategies.harl import Harl
from ansorpy.search.strategies.random import RandomSearch
from ansorpy.search.strategies.rl import ReinforcedSearch
from ansorpy.search.strategy import Context
from ansorpy.search.walks.q_learning import QLearner, Transition
from ansorpy.search.walks.walk import Walk
from tests.search.asking import (
    BowlModel,
    basin,
    context,
    distance_measured,
    finds_the_best,
    measured,
    one_sketch,
)
from tests.search.tasks import dense_relu


def is_step(child: Candidate, parent: Candidate) -> bool:
    """Whether *child* is one step of one decision from *parent*."""
    if child.sketch is not parent.sketch:
        return False
    space = child.sketch.space
    before, after = space.encode(np.array([parent.row, child.row]))
    [*changed] = np.flatnonzero(before != after)
    if len(changed) != 1:
        return False
    [k] = changed
    return bool((moves(space.decisions[k].domain)[:, before[k]] == after[k]).any())


def test_flextensor_measures_single_steps_from_what_it_measured() -> None:
    at, strategy = context(n=48, model=RandomModel()), FlexTensor()
    known = measured(strategy, at, basin, rounds=2)
    for _ in range(6):
        tried = measured(strategy, at, basin, rounds=1)
        assert len(tried) == 8
        assert all(any(is_step(c, parent) for parent in known) for c in tried)
        known += tried


def test_flextensor_finds_better_programs_than_drawing_at_random() -> None:
    """With a model that knows nothing."""
    ratios = [
        distance_measured(FlexTensor, seed) / distance_measured(RandomSearch, seed)
        for seed in range(3)
    ]
    assert np.mean(ratios) < 0.85


def test_flextensor_trains_networks_that_saw_a_new_step(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[QLearner] = Counter()
    trained: list[int] = []
    remember, learn = QLearner.remember, QLearner.learn

    def counting(learner: QLearner, transition: Transition) -> None:
        seen[learner] += 1
        remember(learner, transition)

    def noting(learner: QLearner) -> list[float]:
        trained.append(seen.pop(learner, 0))
        return learn(learner)

    monkeypatch.setattr(QLearner, "remember", counting)
    monkeypatch.setattr(QLearner, "learn", noting)
    measured(FlexTensor(), context(n=48, model=RandomModel()), basin, rounds=10)
    assert len(trained) > 3 and min(trained) > 0 and sum(seen.values()) < FlexTensor.every


def test_rl_finds_the_best_of_ten_thousand_programs() -> None:
    assert finds_the_best(ReinforcedSearch(chains=64, steps=8), rounds=60)


def test_chameleon_learns_where_scores_are_high() -> None:
    """The mean score of the places visited rises from round to round, from the same starts."""
    at = context(n=48, model=BowlModel())
    walker = NotingScores(sketches=1, renewed=0, chains=128, kept=0.0)
    means = []
    for _ in range(15):
        walker.scores.clear()
        walker.ask(at, 8)
        means.append(np.mean(walker.scores))
    assert np.mean(means[-3:]) > 1.1 * means[0]


def test_chameleon_goes_on_where_its_starts_all_score_the_same() -> None:
    at = one_sketch(48, 0, Waking())
    strategy = Chameleon(sketches=1, chains=32, steps=4)
    for _ in range(2):
        assert strategy.ask(at, 8).best


class Waking(BowlModel):
    """Scores the first programs that it is asked for all the same."""

    asleep = True

    def predict(self, task: Task, programs: Programs) -> Floats:
        scores = super().predict(task, programs)
        if self.asleep:
            scores[:] = 0.5
        self.asleep = False
        return scores


class NotingScores(Chameleon):
    """Chameleon that notes the scores of the places it visits."""

    scores: list[float] = []

    def rewards(self, walk: Walk, after: Floats, valid: Masks) -> Floats:
        self.scores += after.tolist()
        return super().rewards(walk, after, valid)


def test_harl_halves_its_tracks_until_64_are_left() -> None:
    calls: list[int] = []
    at = context(n=48, model=BowlModel(calls=calls))
    Harl(sketches=1).ask(at, 8)
    assert calls == [256, *[256] * 20, *[128] * 20, *[64] * 20]


def test_harl_walks_on_the_sketch_whose_programs_are_fast() -> None:
    task = dense_relu(24, 36, 48)
    source = SketchSampler(task)
    at = Context(task, source, BowlModel(), np.random.default_rng(0))
    strategy = Harl(sketches=1, chains=16, least=8, steps=2)
    liked = source.pairs[-1]

    def seconds(candidate: Candidate) -> float:
        return 1.0 if candidate.sketch.pair == liked else 3.0

    tried = measured(strategy, at, seconds, rounds=4 * len(source.pairs), n=2)
    counts = Counter(c.sketch.pair for c in tried)
    assert set(counts) == set(source.pairs), "each is tried"
    assert counts[liked] > 0.5 * len(tried)


def test_harls_values_tell_which_tracks_will_gain() -> None:
    at = one_sketch(48, 0, BowlModel())
    strategy = Noting(sketches=1, chains=64, least=64)
    for _ in range(12):
        strategy.values.clear()
        strategy.gains.clear()
        strategy.ask(at, 8)
    gains = np.zeros(64)
    for gain in reversed(strategy.gains):
        gains = gain + strategy.policy.discount * gains
    assert rank_correlation(strategy.values[0], gains) > 0.2


class Noting(Harl):
    """HARL that notes, for each step, what the critic expects of each track and what it gains."""

    values: list[Floats] = []
    gains: list[Floats] = []

    def rewards(self, walk: Walk, after: Floats, valid: Masks) -> Floats:
        self.values.append(walk.policy.values(walk.states))
        self.gains.append(super().rewards(walk, after, valid))
        return self.gains[-1]


def test_dropping_tracks_pays_at_equal_model_calls() -> None:
    """256, 128 and 64 tracks for 20 steps each, or 149 tracks for 60."""

    def best(strategy: Harl, seed: int) -> tuple[float, int]:
        calls: list[int] = []
        at = one_sketch(384, seed, BowlModel(calls=calls))
        found = [max(c.score for c in strategy.ask(at, 8).best) for _ in range(3)]
        return float(np.mean(found)), sum(calls)

    ratios = []
    for seed in range(3):
        adaptive, calls = best(Harl(sketches=1), seed)
        fixed, as_many = best(Harl(sketches=1, chains=149, least=149, steps=60), seed)
        assert abs(calls / as_many - 1) < 0.03
        ratios.append(adaptive / fixed)
    assert np.mean(ratios) > 1.0
