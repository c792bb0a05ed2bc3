"""Traversal of spaces by strategies: all rows in order, neighbours, tokens."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.schedule.decisions import Factors, OneOf, moves
from ansorpy.schedule.space import Constraint, Space, Table
from ansorpy.schedule.state import State
from ansorpy.search.population import sample_valid
from tests.search.tasks import matmul, scale

RNG = np.random.default_rng(0)


def sketch(n: int = 6, m: int = 7, k: int = 5) -> PlacedSketch:
    [drawn, *_] = SketchSampler(matmul(n, m, k)).draw(1, np.random.default_rng(0))
    return drawn


def test_every_row_is_walked_once() -> None:
    [drawn, *_] = SketchSampler(scale(7)).draw(1, np.random.default_rng(0))
    space = drawn.space
    table = space.rows(0, space.size)
    assert len(table) == space.size == len(np.unique(table, axis=0))
    sampled = space.sample(500, RNG)
    assert {tuple(r) for r in sampled.tolist()} <= {tuple(r) for r in table.tolist()}


def test_a_walk_may_stop_and_go_on_anywhere() -> None:
    space = sketch().space
    for start in (0, 1, 977, space.size - 3):
        whole = space.rows(start, 50)
        parts = [space.rows(start + at, 7) for at in range(0, 50, 7)]
        np.testing.assert_array_equal(np.concatenate(parts)[: len(whole)], whole[:50])
    assert len(space.rows(space.size - 3, 50)) == 3
    assert len(space.rows(space.size, 50)) == 0


def test_neighbours_differ_in_one_decision_and_stay_in_its_domain() -> None:
    space = sketch().space
    row = space.sample(1, RNG)[0]
    for decision in space.decisions:
        at = space.slices[decision.name]
        found = space.neighbours(row, decision.name)
        others = np.delete(np.arange(len(row)), np.arange(at.start, at.stop))
        assert (found[:, others] == row[others]).all()
        assert all((decision.domain.rows == part).all(axis=1).any() for part in found[:, at])
        assert not (found == row).all(axis=1).any()


def test_rows_are_numbered_by_decision() -> None:
    space = sketch().space
    table = space.sample(200, RNG)
    numbers = space.encode(table)
    assert numbers.shape == (200, len(space.decisions)) and (numbers >= 0).all()
    np.testing.assert_array_equal(space.decode(numbers), table)
    table[0, 0] = 1000
    assert (space.encode(table)[0] < 0).sum() == 1


@pytest.mark.parametrize("extent", [1, 7, 12, 64])
def test_steps_reach_the_whole_domain_and_lead_back(extent: int) -> None:
    """No value is out of reach, so a descent can end at the optimum wherever it starts."""
    steps = moves(Factors(extent, 2, tail="shift"))
    reached, border = {0}, [0]
    while border:
        found = set(steps[:, border.pop()].tolist()) - reached
        border += found
        reached |= found
    every = np.arange(steps.shape[1])
    assert reached == set(every)
    for there, back in zip(steps[::2], steps[1::2], strict=True):
        assert ((back[there] == every) | (there == every)).all()


def test_a_step_takes_the_next_value_or_moves_a_factor() -> None:
    domain = Factors(8, 2)
    known = [tuple(row) for row in domain.rows.tolist()]
    steps = moves(domain)

    def after(row: tuple[int, int], times: int) -> set[tuple[int, ...]]:
        at = steps[:, known.index(row)]
        for _ in range(times - 1):
            at = steps[np.arange(len(steps)), at]
        return {known[n] for n in at} - {row}

    assert after((2, 2), 1) == {(1, 2), (4, 2), (2, 1), (2, 4), (1, 4), (4, 1)}
    assert after((2, 1), 2) >= {(8, 1)}
    assert moves(OneOf((0, 16, 4))).tolist() == [[0, 2, 0], [2, 1, 1]], "by value, not by place"


def test_two_steps_are_a_step_after_a_step_in_the_same_direction() -> None:
    space = sketch(n=8).space
    row = space.sample(1, RNG)[0]
    for decision in space.decisions:
        once = {tuple(r) for r in space.neighbours(row, decision.name, 1).tolist()}
        again = {
            tuple(r) for o in once for r in space.neighbours(np.array(o), decision.name, 1).tolist()
        }
        twice = {tuple(r) for r in space.neighbours(row, decision.name, 2).tolist()}
        assert twice <= again - {tuple(row.tolist())}


def test_equal_parts_are_equal_tokens() -> None:
    space = sketch().space
    one, other = space.sample(2, RNG)
    equal = sum((one[at] == other[at]).all() for at in space.slices.values())
    assert len(set(space.tokens(one)) & set(space.tokens(other))) == equal


def test_domains_are_turned_into_sets_once(monkeypatch: pytest.MonkeyPatch) -> None:
    space, asked = sketch().space, list[int]()
    rows = space.sample(20, RNG)
    inside = space.within(rows)
    monkeypatch.setattr(Factors, "rows", property(lambda self: asked.append(1)))
    np.testing.assert_array_equal(space.within(rows), inside)
    assert inside.all() and not space.within(rows + 1000).any()
    assert not asked


def all_valid(drawn: PlacedSketch) -> Table:
    table = drawn.space.rows(0, drawn.space.size)
    return table[drawn.valid(table)]


def test_propagation_keeps_every_row_of_every_valid_program() -> None:
    for drawn in SketchSampler(matmul(4, 16, 3)).draw(3, np.random.default_rng(1)):
        space, valid = drawn.space, all_valid(drawn)
        kept = space.propagate(space.domains)
        for rows, at in zip(kept, space.slices.values(), strict=True):
            used = {tuple(part) for part in valid[:, at].tolist()}
            assert used <= {tuple(row) for row in rows.tolist()}


def test_propagation_drops_what_a_partial_choice_rules_out() -> None:
    space = sketch(64, 64, 64).space
    fixed = list(space.propagate(space.domains))
    wide = max(range(len(fixed)), key=lambda n: len(fixed[n]))
    fixed[wide] = fixed[wide][fixed[wide].prod(axis=1).argmax()][None]
    left = space.propagate(tuple(fixed))
    assert sum(map(len, left)) < sum(map(len, fixed))
    assert all(len(rows) for rows in left)


def test_propagation_of_impossible_choices_leaves_nothing() -> None:
    space = sketch().space
    none = tuple(rows[:0] for rows in space.domains)
    assert not any(map(len, space.propagate(none)))
    refused = Constraint("never", lambda bounds: 0)
    assert not any(map(len, Space(space.state, (refused,)).propagate(space.domains)))


def test_a_space_without_decisions_has_one_row_or_none() -> None:
    state = State.initial(matmul(6, 7, 5).dag)
    assert Space(state).propagate(()) == ()
    assert len(Space(state).complete([], RNG)) == 0
    assert Space(state).valid(np.zeros((1, 0), dtype=np.int64)).all()


def test_possible_is_exact_for_single_rows() -> None:
    drawn = sketch(48, 40, 36)
    table = drawn.sample(300, RNG)
    np.testing.assert_array_equal(drawn.space.possible(table, table), drawn.valid(table))


def test_completed_rows_are_valid_and_among_their_choices() -> None:
    drawn = sketch(48, 40, 36)
    space = drawn.space
    parents = sample_valid(drawn, 200, RNG).reshape(100, 2, -1)
    choices = [parents[:, :, at] for at in space.slices.values()]
    choices[0] = np.broadcast_to(space.domains[0], (100, *space.domains[0].shape))
    found = space.complete(choices, RNG)
    assert len(found) > 90 and space.valid(found).all()
    for decision, at in enumerate(space.slices.values()):
        every = {tuple(row) for row in choices[decision].reshape(-1, at.stop - at.start).tolist()}
        assert {tuple(row) for row in found[:, at].tolist()} <= every
