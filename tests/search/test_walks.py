"""The strategies that walk on neighbours, and the genetic algorithm: what each promises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from ansorpy.cost.random import RandomModel
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.schedule.decisions import moves
from ansorpy.search.population import Candidate
from ansorpy.search.strategies.chameleon import Chameleon
from ansorpy.search.strategies.flextensor import FlexTensor
from ansorpy.search.strategies.ga import Genetic
from ansorpy.search.strategies.harl import Harl
from ansorpy.search.strategies.random import RandomSearch
from ansorpy.search.strategies.rl import ReinforcedSearch
from ansorpy.search.strategy import Context, Strategy
from tests.search.asking import BowlModel, context, measured
from tests.search.tasks import dense_relu, matmul


def basin(candidate: Candidate) -> float:
    """Seconds of the bowl that :class:`BowlModel` knows."""
    return float(1 + np.abs(np.log2(candidate.row + 1.0) - BowlModel.goal).sum())


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


@pytest.mark.parametrize(
    ("make", "rounds"), [(FlexTensor, 12), (Genetic, 12)], ids=["flextensor", "ga"]
)
def test_measuring_alone_leads_down(make: Callable[[], Strategy], rounds: int) -> None:
    """With a model that knows nothing, better programs are found than by drawing at random."""

    def best(strategy: Strategy, seed: int) -> float:
        at = context(seed, n=48, model=RandomModel(seed))
        return min(map(basin, measured(strategy, at, basin, rounds)))

    ratios = [best(make(), seed) / best(RandomSearch(), seed) for seed in range(4)]
    assert np.mean(ratios) < 0.9


def small_space() -> tuple[SketchSampler, PlacedSketch]:
    """A sampler whose sketches have some ten thousand programs each."""
    source = SketchSampler(matmul(8, 6, 4))
    return source, source.draw(1, np.random.default_rng(0))[0]


@pytest.mark.parametrize("make", [Genetic, ReinforcedSearch], ids=["ga", "rl"])
def test_the_best_of_ten_thousand_programs_is_found(make: Callable[[], Strategy]) -> None:
    source, _ = small_space()
    at = context(source=source, model=BowlModel())
    best = np.inf
    for sketch in source.every():
        table = sketch.space.rows(0, sketch.space.size)
        table = table[sketch.valid(table)]
        distance = np.abs(np.log2(table + 1.0) - BowlModel.goal).sum(axis=1)
        best = min(best, float(1 + distance.min()))
    found = measured(make(), at, basin, rounds=60)
    assert min(map(basin, found)) == pytest.approx(best)


def test_the_genetic_algorithm_asks_no_model() -> None:
    calls: list[int] = []
    at = context(model=BowlModel(calls=calls))
    measured(Genetic(), at, basin, rounds=8)
    assert not calls


def test_chameleon_learns_where_scores_are_high() -> None:
    """The mean score of the places visited rises from round to round, from the same starts."""
    at = context(n=48, model=BowlModel())
    walker = Redrawn(sketches=1, renewed=0, chains=128)
    means = []
    for _ in range(15):
        walker.scores.clear()
        walker.ask(at, 8)
        means.append(np.mean(walker.scores))
    assert np.mean(means[-3:]) > 1.1 * means[0]


class Redrawn(Chameleon):
    """Chameleon whose chains start at random in each round; notes the scores."""

    scores: list[float] = []

    def rewards(self, walk, after, valid):
        self.scores += after.tolist()
        return super().rewards(walk, after, valid)

    def _starts(self, walk, n, context):
        return super(Chameleon, self)._starts(walk, n, context)


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
