"""Actions: legal ones change what their head is for and stay in the domains."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ansorpy.rules.placed_sketch import PlacedSketch
from ansorpy.schedule.decisions import Factors
from ansorpy.schedule.space import Space, Table
from ansorpy.search.walks.actions import (
    Actions,
    directions,
    factor_moves,
    observed,
    one_knob,
    per_knob,
)
from tests.search.tasks import matmul, sampler, scale

MAKERS = pytest.mark.parametrize("make", [per_knob, one_knob, directions, factor_moves])


def sketch(n: int = 48) -> PlacedSketch:
    [drawn, *_] = sampler(matmul(n, n, n)).draw(1, np.random.default_rng(0))
    return drawn


def rows(space: Space, n: int, rng: np.random.Generator) -> Table:
    return space.encode(space.sample(n, rng))


@MAKERS
def test_legal_choices_change_one_decision_of_their_head(
    make: Callable[[Space], Actions], rng: np.random.Generator
) -> None:
    space = sketch().space
    actions, numbers = make(space), rows(space, 40, rng)
    legal = actions.legal(numbers)
    assert legal.shape == (40, *actions.heads.shape) and legal.any()
    for head, choice in zip(*np.nonzero(legal.any(axis=0)), strict=True):
        after = actions.step(numbers, head, np.full(40, choice))
        changed = (after != numbers).sum(axis=1)
        staying = actions.heads[head, choice] == 0
        expected = np.where(legal[:, head, choice] & ~staying, 1, 0)
        np.testing.assert_array_equal(changed, expected)
        assert space.within(space.decode(after)).all()


@MAKERS
def test_all_heads_act_together(make: Callable[[Space], Actions], rng: np.random.Generator) -> None:
    space = sketch().space
    actions, numbers = make(space), rows(space, 60, rng)
    chances = rng.random((60, *actions.heads.shape))
    choices = np.where(actions.legal(numbers), chances, -1.0).argmax(axis=2)
    one_by_one = numbers
    for head in range(len(actions.heads)):
        one_by_one = actions.step(one_by_one, head, choices[:, head])
    np.testing.assert_array_equal(actions.apply(numbers, choices), one_by_one)
    still = actions.apply(numbers, np.zeros_like(choices))
    if make is not directions:
        np.testing.assert_array_equal(still, numbers)
        assert actions.staying(np.zeros_like(choices), 1.0).all()
        assert not actions.staying(np.ones_like(choices), 0.1).any()


def test_a_knob_goes_to_the_rows_beside_its_own(rng: np.random.Generator) -> None:
    space = sketch().space
    actions, numbers = per_knob(space), rows(space, 30, rng)
    ups = actions.apply(numbers, np.full((30, len(actions.heads)), 2))
    sizes = np.array([len(d.domain.rows) for d in space.decisions])
    np.testing.assert_array_equal(ups, np.minimum(numbers + 1, sizes - 1))


def test_a_factor_moves_between_two_levels(rng: np.random.Generator) -> None:
    space = sketch().space
    actions, numbers = factor_moves(space), rows(space, 200, rng)
    splits = [k for k, d in enumerate(space.decisions) if isinstance(d.domain, Factors)]
    chances = rng.random((200, *actions.heads.shape))
    choices = np.where(actions.legal(numbers), chances, -1.0).argmax(axis=2)
    before, after = space.decode(numbers), space.decode(actions.step(numbers, 0, choices[:, 0]))
    differing = (before != after).sum(axis=1)
    assert set(differing.tolist()) <= {0, 1, 2} and differing.any()
    for k in splits:
        at = space.slices[space.decisions[k].name]
        both = (before[:, at] != after[:, at]).sum(axis=1) == 2
        np.testing.assert_array_equal(before[both, at].prod(axis=1), after[both, at].prod(axis=1))


def test_where_a_row_stands_is_a_share_of_each_column(rng: np.random.Generator) -> None:
    space = sketch().space
    shares = observed(space, rows(space, 500, rng))
    assert shares.shape == (500, len(space.columns))
    assert (shares >= 0).all() and (shares <= 1).all() and shares.std(axis=0).max() > 0.1


@MAKERS
def test_a_space_without_choices_has_no_heads(make: Callable[[Space], Actions]) -> None:
    [drawn, *_] = sampler(scale(60)).draw(1, np.random.default_rng(0))
    bound = Space(drawn.resolve(drawn.sample(1, np.random.default_rng(0))[0]))
    actions, none = make(bound), np.zeros((3, 0), dtype=np.int64)
    assert len(actions.heads) == 0 and not bound.decisions
    np.testing.assert_array_equal(actions.apply(none, none), none)
