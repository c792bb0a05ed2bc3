"""Selectors: from small pools whose scores are known."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.search.population import Candidate, Pool
from ansorpy.search.selectors import SELECTORS
from ansorpy.search.selectors.diversity import Diversity
from tests.search.tasks import matmul, sampler


def pool(best: int, random: int = 0) -> Pool:
    """Candidates of falling score."""
    rng = np.random.default_rng(2)
    [sketch, *_] = sampler(matmul(24, 24, 24)).draw(1, rng)
    table = np.unique(sketch.sample(200, rng), axis=0)
    rng.shuffle(table)
    made = [Candidate(sketch, row, -float(n)) for n, row in enumerate(table[: best + random])]
    return Pool(tuple(made[:best]), tuple(made[best:]))


@pytest.mark.parametrize("name", SELECTORS.names)
def test_selectors_fill_up_from_what_there_is(name: str) -> None:
    offered, selector = pool(3, 4), SELECTORS.one(name)
    for wanted, given in ((6, 6), (60, 7), (1, 1)):
        picked = selector.pick(offered, wanted, np.random.default_rng(0))
        assert len({c.key for c in picked}) == len(picked) == given
    assert selector.pick(Pool(()), 5, np.random.default_rng(0)) == []


def test_every_selector_has_a_description() -> None:
    assert all(SELECTORS.descriptions().values())


def decided(candidates: list[Candidate]) -> int:
    """How many different decisions they make in all."""
    return len({t for c in candidates for t in c.sketch.space.tokens(c.row)})


def test_without_weight_diversity_takes_the_highest_scores() -> None:
    offered = pool(40)
    picked = Diversity(0.0).pick(offered, 10, np.random.default_rng(0))
    assert [c.key for c in picked] == [c.key for c in offered.best[:10]]


def test_the_heavier_the_weight_the_more_different_decisions() -> None:
    offered = pool(60)
    kinds = [
        decided(Diversity(w).pick(offered, 12, np.random.default_rng(0))) for w in (0.0, 1.0, 1e6)
    ]
    assert kinds[0] < kinds[1] <= kinds[2]
    assert Diversity(1.0).pick(offered, 12, np.random.default_rng(0))[0] is offered.best[0]


def test_a_twin_of_what_was_taken_comes_last() -> None:
    [one, *_, last] = pool(30).best
    twin = Candidate(one.sketch, one.row.copy(), one.score)
    near = one.row.copy()
    near[0] = last.row[0]
    close = Candidate(one.sketch, near, one.score - 0.1)
    far = Candidate(one.sketch, last.row, one.score - 1.0)
    picked = Diversity(10.0).pick(Pool((one, twin, close, far)), 4, np.random.default_rng(0))
    assert [c.key for c in picked] == [one.key, far.key, close.key]
