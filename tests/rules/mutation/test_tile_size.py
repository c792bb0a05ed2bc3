"""MutateTileSize: one factor moves, the product and the cap hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from ansorpy.rules.mutation.tile_size import MutateTileSize, move_factor
from ansorpy.rules.sketch.multi_level_tiling import MultiLevelTiling
from ansorpy.schedule.decisions import cut, factorizations
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from tests import workloads
from tests.rules.asking import derive


def levels(extent: int, parts: int, cap: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    inner = factorizations(extent, parts, cap)
    return np.column_stack((extent // inner.prod(axis=1), inner))


@pytest.mark.parametrize(
    ("extent", "parts", "cap"), [(360, 3, 64), (97, 2, 64), (97, 1, 128), (2, 1, 64)]
)
def test_every_result_is_a_factorisation_that_differs_in_two_levels(
    extent: int, parts: int, cap: int, rng: np.random.Generator
) -> None:
    before = levels(extent, parts, cap)
    after = move_factor(before, cap, rng)
    assert (after.prod(axis=1) == extent).all()
    assert (after[:, -1] <= cap).all()
    assert (after >= 1).all()
    changed = (after != before).sum(axis=1)
    stuck = changed == 0
    assert set(changed) <= {0, 2}
    assert not (stuck & (before[:, :-1].max(axis=1) > 1) & (parts > 1)).any()


def test_all_levels_one_cannot_change(rng: np.random.Generator) -> None:
    ones = np.ones((7, 4), dtype=np.int64)
    assert np.array_equal(move_factor(ones, 64, rng), ones)


def test_every_neighbour_is_reached(rng: np.random.Generator) -> None:
    start = np.tile(np.array([[6, 1, 1]], dtype=np.int64), (2000, 1))
    reached = {tuple(row) for row in move_factor(start, 64, rng).tolist()}
    assert reached == {
        (3, 2, 1), (2, 3, 1), (1, 6, 1), (3, 1, 2), (2, 1, 3), (1, 1, 6),
    }  # fmt: skip


def test_the_innermost_level_takes_only_what_its_cap_allows(rng: np.random.Generator) -> None:
    start = np.tile(np.array([[30, 4]], dtype=np.int64), (500, 1))
    after = move_factor(start, 12, rng)
    assert {tuple(row) for row in after.tolist()} == {(15, 8), (10, 12), (60, 2), (120, 1)}


def test_rows_stay_in_the_space_and_one_split_changes(rng: np.random.Generator) -> None:
    [(state, _)] = derive(MultiLevelTiling(), workloads.matmul(60, 1, 35), "C")
    space = Space(state)
    table = space.sample(200, rng)
    mutated = MutateTileSize().apply(space, table, rng)
    assert all(space.contains(row) for row in mutated)
    splits = [(mutated[:, at] != table[:, at]).any(axis=1) for at in space.slices.values()]
    assert (np.sum(splits, axis=0) == 1).all(), "each of these can always move a factor"


def test_without_a_split_that_can_change_nothing_happens(rng: np.random.Generator) -> None:
    space = Space(State.initial(workloads.matmul(4, 4, 4)))
    table = space.sample(3, rng)
    assert MutateTileSize().apply(space, table, rng) is table


@pytest.mark.parametrize("tail", ["guard", "shift"])
def test_a_domain_that_was_cut_down_is_not_left(
    tail: Literal["guard", "shift"], rng: np.random.Generator
) -> None:
    state, _ = State.initial(workloads.matmul(36, 36, 36)).split("C", "i", (None, None), tail=tail)
    [decision] = state.decisions
    kept = decision.domain.rows[:: len(decision.domain.rows) // 5]
    small = replace(decision, domain=cut(decision.domain, kept))
    space = Space(replace(state, decisions=(small,)))
    table = space.sample(200, rng)
    mutated = MutateTileSize().apply(space, table, rng)
    assert space.within(mutated).all()
    assert (mutated != table).any(axis=1).all()
    assert len(np.unique(mutated, axis=0)) == len(kept)
