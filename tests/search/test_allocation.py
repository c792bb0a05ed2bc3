"""Sharing trials out among pairs: promise, curiosity, bounds."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest
from hypothesis import given
from hypothesis.strategies import floats, integers, lists, tuples

from ansorpy.cost.bound import least_seconds
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import Pair, SketchSampler
from ansorpy.search.allocation import Allocation
from tests.budget import examples
from tests.rules.algorithms.convolutions import convolution
from tests.search.tasks import TARGET

TASK = Task(ComputeDAG.of(convolution((14, 14), (3, 3), 64, 64, pad=1)), TARGET, 2)
SOURCE = SketchSampler(TASK)
BOUNDS = {d.name: least_seconds(TASK, d.dag) for d in SOURCE.definitions}
DIRECT = [pair for pair in SOURCE.pairs if pair.definition == "direct"]
OTHERS = [pair for pair in SOURCE.pairs if pair.definition != "direct"]
EVEN = dict.fromkeys(SOURCE.pairs, 1.0)


def made() -> Allocation:
    return Allocation(TASK, SOURCE)


def test_equal_promises_are_equal_shares() -> None:
    shares = made().shares(EVEN)
    assert set(shares) == set(SOURCE.pairs)
    assert len(set(shares.values())) == 1


def test_a_pair_without_candidates_gets_nothing() -> None:
    shares = made().shares({DIRECT[0]: 0.5, OTHERS[0]: 1.0})
    assert set(shares) == {DIRECT[0], OTHERS[0]}
    assert shares[OTHERS[0]] > 2 * shares[DIRECT[0]]


def test_what_the_model_thinks_hopeless_is_tried_once_all_the_same() -> None:
    allocation, best = made(), OTHERS[0]
    predicted = {pair: 1.0 if pair == best else 0.01 for pair in SOURCE.pairs}
    trials: Counter[Pair] = Counter()
    for _ in range(4):
        shares = allocation.shares(predicted)
        offers = {pair: [pair] * 8 for pair in shares}
        for pair in islice(allocation.in_turns(offers, shares), 8):
            trials[pair] += 1
            allocation.tell([(pair, 1.0 if pair == best else 3.0)])
    assert set(trials) == set(SOURCE.pairs)
    assert trials[best] > 32 // 2


def test_measurements_overrule_the_model() -> None:
    allocation, predicted = made(), dict(EVEN)
    predicted[DIRECT[0]] = 0.5
    for _ in range(3):
        allocation.tell([(DIRECT[0], 1.0), (OTHERS[0], 2.0)])
    shares = allocation.shares(predicted)
    assert shares[DIRECT[0]] > 2 * shares[OTHERS[0]]


def test_a_definition_that_cannot_win_is_dropped() -> None:
    allocation = made()
    assert max(BOUNDS.values()) == BOUNDS["direct"]
    allocation.tell([(OTHERS[0], 0.7 * BOUNDS["direct"])])
    assert not set(allocation.open()) & set(DIRECT)
    assert OTHERS[0] in allocation.open()
    assert set(allocation.shares(EVEN)) == set(allocation.open())


def test_a_machine_faster_than_described_shifts_all_bounds() -> None:
    allocation = made()
    allocation.tell([(DIRECT[0], 0.5 * BOUNDS["direct"]), (OTHERS[0], 0.3 * BOUNDS["direct"])])
    assert set(DIRECT) & set(allocation.open()) == set()
    allocation.tell([(DIRECT[1], 0.25 * BOUNDS["direct"])])
    assert set(DIRECT) <= set(allocation.open())


@examples(300)
@given(floats(0.01, 1.0))
def test_the_fastest_pair_stays_however_far_below_its_bound(share: float) -> None:
    allocation = made()
    allocation.tell([(DIRECT[0], share * BOUNDS["direct"] / 3)])
    assert DIRECT[0] in allocation.open()


def test_failures_lose_their_share() -> None:
    allocation = made()
    for _ in range(4):
        allocation.tell([(DIRECT[0], float("inf")), (DIRECT[1], 1.0)])
    shares = allocation.shares(EVEN)
    assert shares[DIRECT[0]] < shares[DIRECT[1]] / 20


@examples(50)
@given(
    told=lists(tuples(integers(0, len(SOURCE.pairs) - 1), floats(1e-6, 1.0)), max_size=30),
    scores=lists(floats(-1, 2), min_size=len(SOURCE.pairs), max_size=len(SOURCE.pairs)),
)
def test_shares_are_a_division_and_offers_take_turns(
    told: list[tuple[int, float]], scores: list[float]
) -> None:
    allocation = made()
    allocation.tell((SOURCE.pairs[n], seconds) for n, seconds in told)
    shares = allocation.shares(dict(zip(SOURCE.pairs, scores, strict=True)))
    assert sum(shares.values()) == pytest.approx(1)
    assert min(shares.values()) > 0
    if told:
        fastest = min(told, key=lambda one: one[1])
        assert SOURCE.pairs[fastest[0]] in shares
    offers = {pair: [(pair, n) for n in range(3)] for pair in shares}
    offered = list(allocation.in_turns(offers, shares))
    assert sorted(offered) == sorted(one for some in offers.values() for one in some)
