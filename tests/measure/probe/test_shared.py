"""A machine that gives less than it did is noticed, and after a while taken as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, repeat

import pytest

from ansorpy.measure.probe.shared import SharedCores


def taking(*times: Sequence[float], then: float = 1.0) -> Callable[[], float]:
    """Times of loops in order, and one for all further loops."""
    remaining = chain(*times, repeat(then))
    return lambda: next(remaining)


def test_a_first_look_finds_the_calmest_of_several_loops():
    cores = SharedCores(2, taking([9.0, 3.0, 1.0], then=2.0))
    assert not cores.look()
    assert cores.look(), "every loop now takes twice the calmest of the first look"


def test_one_calm_loop_is_enough():
    looks = [[1.0] * 12, [5.0, 5.0, 1.6], [5.0] * 12, [1.0]]
    cores = SharedCores(2, taking(*looks, then=1.0))
    assert [cores.look() for _ in looks] == [False, False, True, False]


def test_who_is_slow_for_long_has_become_so():
    cores = SharedCores(2, taking([1.0] * 12, then=2.0))
    looks = [cores.look() for _ in range(100)]
    assert looks[0] is False and all(looks[1:64]) and not any(looks[64:])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_loop_runs_on_all_threads(threads: int):
    assert SharedCores(threads).look() in (True, False)
