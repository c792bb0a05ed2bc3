"""The policy, driven by kernels whose times are known exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ansorpy.measure.run.policies import POLICIES
from ansorpy.measure.run.timing import (
    TimingPolicy,
    Yardstick,
    interleaved_s,
    time_calls,
    time_interleaved,
)


class Clock:
    """A kernel that takes *seconds* a call, the first *cold* ones more."""

    def __init__(self, seconds: float, *, cold_s: float = 0.0, cold_calls: int = 1) -> None:
        self.seconds, self.cold_s, self.cold_calls = seconds, cold_s, cold_calls
        self.calls = self.bursts = 0
        self.total_s = 0.0

    def __call__(self, number: int) -> float:
        self.bursts += 1
        cold = max(0, min(number, self.cold_calls - self.calls))
        self.calls += number
        seconds = number * self.seconds + cold * self.cold_s
        self.total_s += seconds
        return seconds


@pytest.mark.parametrize("seconds", [2e-7, 3e-6, 1e-4, 7e-4, 5e-3])
def test_samples_are_exact_and_a_candidate_takes_about_twenty_milliseconds(seconds):
    clock = Clock(seconds, cold_s=0.004)
    timing = time_calls(clock, TimingPolicy())
    assert timing.seconds == pytest.approx([seconds] * len(timing.seconds))
    assert len(timing.seconds) >= 3
    assert 0.015 <= clock.total_s <= 0.045


def test_bursts_are_multiples_of_what_a_kernel_needs():
    numbers: list[int] = []

    def burst(number: int) -> float:
        numbers.append(number)
        return number * 3e-6

    assert time_calls(burst, TimingPolicy(), unit=70).seconds[0] == pytest.approx(3e-6)
    assert numbers[0] == 70 and numbers[-1] == 140  # half a millisecond is 167 calls
    slow = time_calls(burst, TimingPolicy(pause_s=0.0), incumbent_s=0.9e-6, unit=70)
    assert slow.is_slow and slow.seconds == pytest.approx((3e-6,))
    numbers.clear()
    time_interleaved([burst, burst], TimingPolicy(rounds=3), units=[70, 11])
    assert all(number % 70 == 0 or number % 11 == 0 for number in numbers)
    assert numbers[-4:] == [70, 140, 11, 165]


def test_a_clock_that_rises_is_waited_for():
    spent = 0.0

    def burst(number: int) -> float:
        nonlocal spent
        seconds = number * 1e-4 * max(1.0, 5.0 - 40 * spent)  # at its best after 100 ms
        spent += seconds
        return seconds

    policy = TimingPolicy(warm_s=0.05, pause_s=0.05, settled=0.02)
    timing = time_calls(burst, policy)
    assert timing.seconds == pytest.approx([1e-4] * len(timing.seconds))
    noisy = Clock(1e-4)
    noisy_times = iter(range(1, 10**6))
    time_calls(lambda n: noisy(n) * (1 + next(noisy_times) % 2), policy)
    assert noisy.total_s < 20 * policy.warm_s  # but not for ever


def test_a_long_kernel_is_called_only_a_few_times():
    clock = Clock(0.5)
    assert len(time_calls(clock, TimingPolicy()).seconds) == 3
    assert clock.calls <= 6


def test_three_times_the_incumbent_stops_after_one_timed_call():
    clock = Clock(0.9)
    timing = time_calls(clock, TimingPolicy(), incumbent_s=0.2)
    assert timing.is_slow
    assert timing.seconds == (0.9,)
    assert clock.calls == 1


def test_a_cold_start_alone_does_not_condemn_a_candidate():
    clock = Clock(1e-4, cold_s=0.008, cold_calls=2)
    timing = time_calls(clock, TimingPolicy(), incumbent_s=1.1e-4)
    assert not timing.is_slow
    assert timing.seconds == pytest.approx([1e-4] * len(timing.seconds))


def test_a_core_shared_for_a_while_does_not_condemn_a_candidate():
    clock = Clock(1.4e-3, cold_s=6e-3, cold_calls=5)
    assert not time_calls(clock, TimingPolicy(), incumbent_s=1.6e-3).is_slow


@pytest.mark.parametrize("seconds", [3e-6, 5e-5, 4e-4])
def test_a_slow_candidate_costs_less_than_a_good_one(seconds):
    slow, good = Clock(seconds, cold_s=0.002), Clock(seconds, cold_s=0.002)
    assert time_calls(slow, TimingPolicy(), incumbent_s=seconds / 5).is_slow
    assert not time_calls(good, TimingPolicy(), incumbent_s=seconds).is_slow
    assert slow.total_s < 0.6 * good.total_s
    assert slow.bursts < 20


class Preempted(Clock):
    """A kernel that loses its core to another process after each 0.3 ms, until *busy_s*."""

    def __init__(self, seconds: float, busy_s: float) -> None:
        super().__init__(seconds)
        self.busy_s = busy_s
        self.rng = np.random.default_rng(0)

    def __call__(self, number: int) -> float:
        seconds = super().__call__(number)
        if self.total_s < self.busy_s:
            lost_s = float(self.rng.uniform(3e-3, 5e-3, 1 + int(seconds / 3e-4)).sum())
            self.total_s += lost_s
            seconds += lost_s
        return seconds


def test_a_core_lost_again_and_again_does_not_condemn_a_short_kernel():
    clock = Preempted(2e-5, busy_s=0.035)
    timing = time_calls(clock, TimingPolicy(), incumbent_s=1.9e-5)
    assert not timing.is_slow
    assert timing.seconds == pytest.approx([2e-5] * len(timing.seconds))


def test_memory_touched_for_the_first_time_is_allowed_for():
    def timed(fresh_bytes: int) -> bool:
        clock = Clock(2e-3, cold_s=0.06)
        return time_calls(clock, TimingPolicy(), 2e-3, fresh_bytes).is_slow

    assert timed(0)
    assert not timed(64 << 20)


def test_just_below_the_limit_is_timed_in_full():
    assert not time_calls(Clock(0.29), TimingPolicy(), incumbent_s=0.1).is_slow
    assert time_calls(Clock(0.31), TimingPolicy(), incumbent_s=0.1).is_slow


class Phases:
    """A machine that is slow for 85 ms of 130 ms, and its kernels."""

    def __init__(self, begin_s: float) -> None:
        self.now_s = begin_s

    def kernel(self, base_s: float) -> Callable[[int], float]:
        def burst(number: int) -> float:
            begin_s = self.now_s
            for _ in range(number):
                self.now_s += base_s * (1.6 if self.now_s % 0.13 < 0.085 else 1.0)
            return self.now_s - begin_s

        return burst


BEGINNINGS = [0.13 * part / 20 for part in range(20)]
"""Moments all over the phases of a machine."""


def medians_of(base_s: float, *, beside_s: float | None = None) -> list[float]:
    """Times of a kernel from each beginning, beside another one if given."""
    found = []
    for begin_s in BEGINNINGS:
        machine = Phases(begin_s)
        beside = None if beside_s is None else Yardstick(machine.kernel(beside_s), beside_s)
        timing = time_calls(machine.kernel(base_s), TimingPolicy(), yardstick=beside)
        found.append(float(np.median(timing.seconds)))
    return found


@pytest.mark.parametrize(("base_s", "beside_s"), [(1e-4, 3e-4), (6e-4, 5e-4), (4e-3, 3e-3)])
def test_times_beside_a_yardstick_are_those_of_a_steady_machine(base_s, beside_s):
    alone, beside = medians_of(base_s), medians_of(base_s, beside_s=beside_s)
    assert max(alone) > 1.5 * min(alone)
    assert beside == pytest.approx([base_s] * len(beside), rel=0.02)


def test_a_pair_takes_about_as_long_as_a_program_alone():
    alone, beside, yardstick = Clock(6e-4), Clock(6e-4), Clock(5e-4)
    time_calls(alone, TimingPolicy())
    time_calls(beside, TimingPolicy(), yardstick=Yardstick(yardstick, 5e-4))
    assert beside.total_s + yardstick.total_s < 1.2 * alone.total_s


def test_a_yardstick_that_takes_most_of_the_time_is_left_out():
    yardstick = Clock(1e-2)
    timing = time_calls(Clock(1e-3), TimingPolicy(), yardstick=Yardstick(yardstick, 1e-2))
    assert not yardstick.calls and np.median(timing.seconds) == pytest.approx(1e-3)


@pytest.mark.parametrize(("base_s", "is_slow"), [(2e-3, False), (3.5e-3, True)])
def test_a_candidate_is_not_slow_because_the_machine_is(base_s, is_slow):
    yardstick = Yardstick(
        Clock(20e-3), 1e-3
    )  # which takes twenty times as long as when it was timed
    assert time_calls(Clock(20 * base_s), TimingPolicy(), incumbent_s=1e-3).is_slow
    timing = time_calls(Clock(20 * base_s), TimingPolicy(), 1e-3, yardstick=yardstick)
    assert timing.is_slow is is_slow and timing.seconds[0] == pytest.approx(base_s)


def test_what_becomes_a_yardstick_has_the_time_of_fast_phases():
    policy = TimingPolicy().of_level()
    found = [time_calls(Phases(begin_s).kernel(5e-4), policy).seconds for begin_s in BEGINNINGS]
    levels = np.array([np.median(seconds) for seconds in found])
    assert np.mean(levels < 1.02 * 5e-4) > 0.7
    assert min(map(len, found)) >= policy.min_samples
    assert len(time_calls(Clock(0.5), policy).seconds) == 3


def test_rounds_of_finalists_are_compared_as_if_the_machine_were_steady():
    for begin_s in BEGINNINGS:
        machine = Phases(begin_s)
        kernels = [machine.kernel(1e-3), machine.kernel(1.05e-3), machine.kernel(2e-3)]
        a, b, c = time_interleaved(kernels, TimingPolicy())
        assert np.median(b.seconds) / np.median(a.seconds) == pytest.approx(1.05, rel=0.03)
        assert np.median(c.seconds) / np.median(a.seconds) == pytest.approx(2.0, rel=0.03)


def test_interleaved_timing_spreads_drift_over_all():
    clock, rng = [0.0], np.random.default_rng(0)

    def kernel(base: float):
        def burst(number: int) -> float:
            seconds = number * base * (1 + clock[0]) * rng.uniform(0.99, 1.01)
            clock[0] += seconds
            return seconds

        return burst

    a, b = time_interleaved([kernel(1e-3), kernel(1.1e-3)], TimingPolicy(rounds=11))
    assert len(a.seconds) == len(b.seconds) == 11
    wins = sum(x < y for x, y in zip(a.seconds, b.seconds, strict=True))
    assert wins == 11


def test_rounds_of_finalists_may_be_taken_again():
    rounds: list[int] = []

    def second_of_two(taken: Callable[[], list[float]]) -> list[float]:
        rounds.append(len(taken()))
        return [round(seconds, 4) for seconds in taken()]

    clocks = [Clock(1e-3), Clock(2e-3)]
    a, b = time_interleaved(clocks, TimingPolicy(rounds=5), second_of_two)
    assert a.seconds == (1e-3,) * 5 and b.seconds == (2e-3,) * 5 and rounds == [2] * 5


@pytest.mark.parametrize(("seconds", "rounds", "calls"), [(2.5e-2, 4, 5), (0.5, 3, 4), (4.0, 3, 4)])
def test_long_kernels_take_few_rounds_and_no_untimed_calls(seconds, rounds, calls):
    clocks = [Clock(seconds) for _ in range(4)]
    timings = time_interleaved(clocks, TimingPolicy())
    assert [len(timing.seconds) for timing in timings] == [rounds] * 4
    assert [clock.calls for clock in clocks] == [calls] * 4
    checks_s = 4 * seconds
    planned_s = interleaved_s([seconds] * 4, TimingPolicy())
    assert planned_s == pytest.approx(sum(clock.total_s for clock in clocks) + checks_s)


def test_short_kernels_take_all_rounds():
    clocks = [Clock(1e-4), Clock(5e-3, cold_s=0.05)]
    timings = time_interleaved(clocks, TimingPolicy())
    assert [len(timing.seconds) for timing in timings] == [9, 9]
    assert clocks[1].calls == 1 + 1 + 8 * 2  # only its first call seemed long
    spent_s = 5e-3 + 1e-4 + sum(clock.total_s for clock in clocks)
    assert interleaved_s([1e-4, 5e-3], TimingPolicy()) < spent_s
    assert interleaved_s([], TimingPolicy()) == 0.0


@pytest.mark.parametrize(("limit_s", "rounds"), [(10.1, 3), (9.9, 2), (7.9, 1), (0.5, 1)])
def test_rounds_that_time_is_left_for_count(limit_s: float, rounds: int) -> None:
    clocks = [Clock(1.0), Clock(1.0)]

    def left_s() -> float:
        return limit_s - sum(clock.total_s for clock in clocks)

    timings = time_interleaved(clocks, TimingPolicy(), left_s=left_s)
    assert [len(timing.seconds) for timing in timings] == [rounds] * 2


class NoisyClock:
    """A kernel of 1 ms whose samples scatter by *noise*, a share of it."""

    def __init__(self, noise: float, seed: int) -> None:
        self.noise, self.rng = noise, np.random.default_rng(seed)
        self.calls = 0

    def __call__(self, number: int) -> float:
        self.calls += number
        return number * 1e-3 * max(1 + self.noise * float(self.rng.normal()), 0.1)


def test_samples_end_when_the_mean_is_known_well_enough():
    policy = POLICIES.one("variance_adaptive")
    quiet = [time_calls(NoisyClock(0.005, seed), policy) for seed in range(200)]
    assert max(len(timing.seconds) for timing in quiet) < 15
    errors = [abs(np.median(timing.seconds) / 1e-3 - 1) for timing in quiet]
    assert np.mean(np.array(errors) < 0.01) > 0.95


def test_scattered_samples_go_on_to_the_limit():
    policy = POLICIES.one("variance_adaptive")
    counts = [len(time_calls(NoisyClock(0.3, seed), policy).seconds) for seed in range(50)]
    assert np.median(counts) > 50
    fixed = [len(time_calls(NoisyClock(0.3, seed), POLICIES.one("fixed")).seconds) for seed in [1]]
    assert fixed[0] < 25


def test_losers_are_timed_roughly():
    policy = POLICIES.one("variance_adaptive")

    def samples(incumbent_s: float | None, noise: float) -> list[int]:
        timings = [time_calls(NoisyClock(noise, s), policy, incumbent_s) for s in range(20)]
        assert not any(timing.is_slow for timing in timings)
        return [len(timing.seconds) for timing in timings]

    assert np.mean(samples(0.6e-3, 0.08)) < 0.3 * np.mean(samples(None, 0.08))
    assert np.mean(samples(0.95e-3, 0.08)) == np.mean(samples(None, 0.08)), "not clearly worse"
