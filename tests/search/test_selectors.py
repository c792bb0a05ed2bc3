"""Selectors: from small pools whose scores are known."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from ansorpy.errors import UsageError
from ansorpy.rules.placed_sketch import PlacedSketch
from ansorpy.search.population import Candidate, Pool
from ansorpy.search.selectors import SELECTORS
from ansorpy.search.selectors.diversity import Diversity
from ansorpy.search.selectors.epsilon_greedy import EpsilonGreedy
from ansorpy.search.selectors.expected_improvement import (
    ExpectedImprovement,
    expected_improvement,
)
from ansorpy.search.selectors.kmeans import KMeans
from ansorpy.search.selectors.submodular import Submodular
from tests.search.tasks import matmul, sampler


def pool(best: int, random: int = 0) -> Pool:
    """Candidates of falling score."""
    rng = np.random.default_rng(2)
    [sketch, *_] = sampler(matmul(24, 24, 24)).draw(1, rng)
    table = np.unique(sketch.sample(200, rng), axis=0)
    rng.shuffle(table)
    rows = enumerate(table[: best + random])
    made = [Candidate(sketch, row, -float(n), deviation=1.0) for n, row in rows]
    return Pool(tuple(made[:best]), tuple(made[best:]))


@pytest.mark.parametrize("name", SELECTORS.names)
def test_selectors_fill_up_from_what_there_is(name: str) -> None:
    offered, selector = pool(3, 4), SELECTORS.one(name)
    for wanted, given in ((6, 6), (60, 7), (1, 1)):
        picked = selector.pick(offered, wanted, np.random.default_rng(0))
        assert len({c.key for c in picked}) == len(picked) == given
    assert selector.pick(Pool(()), 5, np.random.default_rng(0)) == []


def test_epsilon_greedy_mixes_in_random_candidates() -> None:
    offered = pool(40, 20)
    picked = EpsilonGreedy(0.25).pick(offered, 20, np.random.default_rng(0))
    keys = {c.key for c in offered.random}
    assert len(picked) == len({c.key for c in picked}) == 20
    assert sum(c.key in keys for c in picked) == 5
    assert [c.key for c in picked[:15]] == [c.key for c in offered.best[:15]]


def decided(candidates: list[Candidate]) -> int:
    """How many different decisions they make in all."""
    return len({t for c in candidates for t in c.sketch.space.tokens(c.row)})


def test_without_weight_submodular_takes_the_highest_scores() -> None:
    offered = pool(40)
    picked = Submodular(0.0).pick(offered, 10, np.random.default_rng(0))
    assert [c.key for c in picked] == [c.key for c in offered.best[:10]]


def test_the_heavier_the_weight_the_more_different_decisions() -> None:
    offered = pool(60)
    kinds = [
        decided(Submodular(w).pick(offered, 12, np.random.default_rng(0))) for w in (0.0, 1.0, 1e6)
    ]
    assert kinds[0] < kinds[1] <= kinds[2]
    assert Submodular(1.0).pick(offered, 12, np.random.default_rng(0))[0] is offered.best[0]


def test_a_twin_of_what_was_taken_comes_last() -> None:
    [one, *_, last] = pool(30).best
    twin = Candidate(one.sketch, one.row.copy(), one.score)
    near = one.row.copy()
    near[0] = last.row[0]
    close = Candidate(one.sketch, near, one.score - 0.1)
    far = Candidate(one.sketch, last.row, one.score - 1.0)
    picked = Submodular(10.0).pick(Pool((one, twin, close, far)), 4, np.random.default_rng(0))
    assert [c.key for c in picked] == [one.key, far.key, close.key]


def test_diversity_takes_one_of_a_group_of_similar_programs_first() -> None:
    [one, *_, last] = pool(30).best
    one, last = replace(one, score=1.0), replace(last, score=0.9)
    near = one.row.copy()
    near[0] = last.row[0]
    close = Candidate(one.sketch, near, 0.95)
    picked = Diversity(0.5).pick(Pool((one, close, last)), 3, np.random.default_rng(0))
    assert [c.key for c in picked] == [one.key, last.key, close.key]
    greedy = Diversity(0.0).pick(Pool((one, close, last)), 3, np.random.default_rng(0))
    assert [c.key for c in greedy] == [one.key, close.key, last.key]


def doubtful(*judged: tuple[float, float]) -> list[Candidate]:
    """Candidates with these scores and deviations."""
    made = pool(len(judged)).best
    return [
        replace(c, score=mean, deviation=deviation)
        for c, (mean, deviation) in zip(made, judged, strict=True)
    ]


def test_expected_improvement_is_the_mean_of_what_exceeds_the_best(
    rng: np.random.Generator,
) -> None:
    for mean, deviation, best in ((1.0, 0.5, 1.2), (2.0, 0.1, 1.0), (0.0, 1.0, 2.0)):
        drawn = np.maximum(rng.normal(mean, deviation, 200_000) - best, 0).mean()
        assert expected_improvement(mean, deviation, best) == pytest.approx(drawn, abs=5e-3)
    assert expected_improvement(3.0, 0.0, 1.0) == 2.0
    assert expected_improvement(1.0, 0.0, 3.0) == 0.0


def test_ei_prefers_what_may_exceed_the_best_to_what_is_surely_no_better() -> None:
    sure, likely, unsure, hopeless = doubtful((1.0, 0.01), (0.9, 0.3), (0.6, 0.5), (0.1, 0.1))
    best = replace(sure, score=1.0)
    offered = Pool((sure, likely, hopeless), (unsure,), fastest=best)
    picked = ExpectedImprovement().pick(offered, 4, np.random.default_rng(0))
    assert [c.score for c in picked] == [0.9, 0.6, 1.0, 0.1]
    before = replace(offered, fastest=None)
    assert ExpectedImprovement().pick(before, 1, np.random.default_rng(0)) == [sure]


@pytest.mark.parametrize("selector", [ExpectedImprovement(), EpsilonGreedy(contextual=True)])
def test_selectors_that_need_uncertainty_say_so(
    selector: ExpectedImprovement | EpsilonGreedy,
) -> None:
    offered = pool(4, 4)
    best, random = (
        tuple(replace(c, deviation=None) for c in part) for part in (offered.best, offered.random)
    )
    with pytest.raises(UsageError, match="needs a cost model that knows the uncertainty") as error:
        selector.pick(Pool(best, random), 3, np.random.default_rng(0))
    assert error.value.hint == "use the cost model rf, or another selector"


def test_contextual_epsilon_falls_as_the_model_grows_certain() -> None:
    offered = pool(40, 40)
    random = {c.key for c in offered.random}
    shares = []
    for deviation in (0.8, 0.3, 0.0):
        unsure = tuple(replace(c, score=1.0, deviation=deviation) for c in offered.random)
        best = replace(offered.best[0], score=2.0)
        at = Pool(offered.best, unsure, fastest=best)
        picked = EpsilonGreedy(contextual=True).pick(at, 20, np.random.default_rng(1))
        shares.append(sum(c.key in random for c in picked))
    assert shares == [8, 3, 0]


@cache
def clustered() -> tuple[PlacedSketch, list[list[Candidate]]]:
    """Candidates that differ in their decisions with few values, around five tiles."""
    rng = np.random.default_rng(3)
    sketch = sampler(matmul(512, 512, 512)).place(0, rng)
    space = sketch.space
    wide = sorted(space.decisions, key=lambda d: -len(d.domain.rows))[:2]
    groups: list[list[Candidate]] = []
    while len(groups) < 5:
        [centre] = sketch.sample(1, rng)
        table = np.tile(centre, (400, 1))
        for decision in (d for d in space.decisions if d not in wide):
            rows = decision.domain.rows
            table[:, space.slices[decision.name]] = rows[rng.integers(len(rows), size=len(table))]
        table = np.unique(table[sketch.valid(table)], axis=0)
        if len(table) >= 60:
            rows = rng.permutation(table)[:30]
            groups.append([Candidate(sketch, row, float(-len(groups))) for row in rows])
    return sketch, groups


def tile(candidate: Candidate) -> tuple[int, ...]:
    space = candidate.sketch.space
    wide = sorted(space.decisions, key=lambda d: -len(d.domain.rows))[:2]
    return tuple(v for d in wide for v in candidate.row[space.slices[d.name]].tolist())


def test_kmeans_picks_from_every_cluster_in_steps_of_eight(rng: np.random.Generator) -> None:
    sketch, groups = clustered()
    offered = Pool(tuple(c for group in groups for c in group))
    picked = KMeans().pick(offered, 64, rng)
    assert len(picked) == len({c.key for c in picked}) == 16, "the knee: eight more lower no loss"
    assert {tile(c) for c in picked} == {tile(group[0]) for group in groups}
    table = np.array([c.row for c in picked])
    assert sketch.valid(table).all() and sketch.space.within(table).all()
    assert len(KMeans().pick(offered, 5, rng)) == 5
    assert len(KMeans().pick(offered, 23, rng)) in (8, 16)


def test_kmeans_synthesises_programs_unless_they_were_measured(rng: np.random.Generator) -> None:
    _, groups = clustered()
    offered = Pool(tuple(c for group in groups for c in group))
    known = {c.key for c in offered.best}
    made = [c for c in KMeans().pick(offered, 5, np.random.default_rng(0)) if c.key not in known]
    assert made
    again = replace(offered, measured={c.key for c in made})
    assert {c.key for c in KMeans().pick(again, 5, np.random.default_rng(0))} <= known


def test_kmeans_reaches_a_cluster_that_the_model_underrates_in_fewer_trials() -> None:
    _, groups = clustered()
    needed = {}
    for name in ("kmeans", "top_k"):
        selector, left, trials = SELECTORS.one(name), [c for g in groups for c in g], 0
        wanted, found = tile(groups[-1][0]), False
        while not found:
            picked = selector.pick(Pool(tuple(left)), 16, np.random.default_rng(0))
            taken = {c.key for c in picked}
            left = [c for c in left if c.key not in taken]
            trials += len(picked)
            found = wanted in map(tile, picked)
        needed[name] = trials
    assert needed["kmeans"] <= 16 and needed["top_k"] > 100
