"""A machine that gives less than it did is noticed, and after a while taken as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, repeat

import numpy as np
import pytest

from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.codegen.llvm.objects.timing import bench
from ansorpy.measure.probe.disturbance import CoreProbe, Watch
from ansorpy.measure.probe.loops import RELAY_LAPS, team_kernel


def taking(*times: Sequence[float], then: float = 1.0) -> Callable[[], float]:
    """Times of loops in order, and one for all further loops."""
    remaining = chain(*times, repeat(then))
    return lambda: next(remaining)


def test_a_first_look_finds_the_calmest_of_several_loops():
    watch = Watch(taking([9.0, 3.0, 1.0], then=2.0), limit=1.7)
    assert not watch.is_slow()
    assert watch.is_slow(), "every loop now takes twice the calmest of the first look"


def test_one_calm_loop_is_enough():
    looks = [[1.0] * 12, [5.0, 5.0, 1.6], [5.0] * 12, [1.0]]
    watch = Watch(taking(*looks), limit=1.7)
    assert [watch.is_slow() for _ in looks] == [False, False, True, False]


def test_who_is_slow_for_long_has_become_so():
    watch = Watch(taking([1.0] * 12, then=2.0), limit=1.7)
    looks = [watch.is_slow() for _ in range(100)]
    assert looks[0] is False and all(looks[1:64]) and not any(looks[64:])


def test_one_slow_loop_is_enough_and_all_of_them_are_remembered():
    busy = Watch(taking([1.0] * 12), limit=1.7)
    far = Watch(taking([1.0] * 12, [5.0] * 12), limit=2.5)
    cores = CoreProbe(2, [far, busy])
    assert [cores.is_disturbed() for _ in range(3)] == [False, True, False]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_loops_run_on_all_threads(threads: int):
    assert CoreProbe(threads).is_disturbed() in (True, False)


def test_threads_hand_the_token_around_or_give_up():
    token = aligned_empty((1,), np.int64)
    token[...] = 5
    for _ in range(20):
        before = int(token[0])
        status, _ = bench(
            team_kernel("relay"), [[0]], token.ctypes.data, threads=2, warmup=0, count=1
        )  # fmt: skip
        assert status == 0 and 0 < token[0] - before <= 2 * RELAY_LAPS
