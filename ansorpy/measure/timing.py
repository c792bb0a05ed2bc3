"""How long and how often a candidate is timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from time import perf_counter
from typing import TypeVar

__all__ = ["Burst", "Timing", "TimingPolicy", "time_calls", "time_interleaved", "undisturbed"]

T = TypeVar("T")

Burst = Callable[[int], float]
"""Runs a kernel that many times in a row inside compiled code; returns the seconds it took."""


@dataclass(frozen=True)
class TimingPolicy:
    """Repeat until the samples suffice; stop early for clearly slower candidates.

    Args:
        warm_s: Seconds of untimed calls before the first sample.
        pause_s: Possible extra time of the first call: waking the threads takes
            milliseconds after 100 ms idle, and so does another process
            that occupies a core for a few ticks.
        touch_s_per_byte: Possible extra time of the first call for each byte not touched before:
            the system finds and clears the pages then.
        sample_s: Minimum length of one sample, relative to clock and call overhead.
        total_s: Samples are taken until they add up to this.
        min_samples: Minimum number of samples, however long they take.
        max_samples: Maximum number of samples, however short they are.
        slow_factor: Stop a candidate whose first timed call takes this times the incumbent.
        spread: If set, ``total_s`` is a maximum, and sampling ends as soon as the standard error of
            the mean is at most this fraction of it.  Source: AdaTune (NeurIPS 2020), which stops at
            a coefficient of variation and drops the extremes of five samples or more.
        worse_factor: With a spread, sampling also ends when the mean exceeds this times the
            incumbent by two standard errors: a loser's time need not be known well.
        patience_s: Timing under disturbance is repeated for at most this long.
    """

    warm_s: float = 0.002
    pause_s: float = 0.02
    touch_s_per_byte: float = 1e-9
    sample_s: float = 0.0005
    total_s: float = 0.018
    min_samples: int = 3
    max_samples: int = 60
    slow_factor: float = 3.0
    spread: float | None = None
    worse_factor: float = 1.25
    patience_s: float = 2.0

    def more(self, samples: Sequence[float], spent_s: float, incumbent_s: float | None) -> bool:
        """Whether to take another sample after these, which took *spent_s* in all."""
        if len(samples) < self.min_samples:
            return True
        if len(samples) >= self.max_samples or spent_s >= self.total_s:
            return False
        if self.spread is None:
            return True
        mean, error = _mean_and_error(samples)
        if incumbent_s is not None and mean - 2 * error > self.worse_factor * incumbent_s:
            return False
        return error > self.spread * mean

    def cold_s(self, fresh_bytes: int) -> float:
        """Seconds by which a first call may exceed the others when *fresh_bytes* are untouched."""
        return self.pause_s + self.touch_s_per_byte * fresh_bytes


@dataclass(frozen=True)
class Timing:
    """Seconds per call, one number per sample; ``is_slow`` if it was stopped after one call."""

    seconds: tuple[float, ...]
    is_slow: bool = False


def time_calls(
    burst: Burst,
    policy: TimingPolicy,
    incumbent_s: float | None = None,
    fresh_bytes: int = 0,
) -> Timing:
    """Time a kernel by *policy*; *incumbent_s* is the best known time, None at the start.

    *fresh_bytes* of its memory are untouched before its first call.
    """
    first = burst(1)
    limit = float("inf") if incumbent_s is None else policy.slow_factor * incumbent_s
    doubt_s = limit + 2 * policy.cold_s(fresh_bytes)
    spent = first
    while first > limit and spent <= doubt_s:
        # Perhaps only the cold start was slow, or another process had a core meanwhile.
        seconds = burst(1)
        spent += seconds
        first = min(first, seconds)
    if first > limit:
        return Timing((first,), is_slow=True)
    number = _calls_per_sample(burst, first, policy)
    samples: list[float] = []
    spent = 0.0
    while policy.more(samples, spent, incumbent_s):
        seconds = burst(number)
        spent += seconds
        samples.append(seconds / number)
    return Timing(tuple(samples))


def time_interleaved(
    bursts: Sequence[Burst],
    policy: TimingPolicy,
    rounds: int = 9,
    is_disturbed: Callable[[], bool] = lambda: False,
) -> list[Timing]:
    """Time several kernels in turns, one sample each, so that drift affects all alike.

    A round disturbed according to *is_disturbed* is repeated, within *policy*'s total patience.
    """
    numbers = [_calls_per_sample(burst, burst(1), policy) for burst in bursts]

    def taken() -> list[float]:
        samples = []
        for burst, number in zip(bursts, numbers, strict=True):
            # Warm the caches, which hold the previous kernel's data.
            burst(1)
            samples.append(burst(number) / number)
        return samples

    patience_s = policy.patience_s / max(1, rounds)
    turns = [undisturbed(taken, is_disturbed, patience_s) for _ in range(rounds)]
    return [Timing(tuple(samples)) for samples in zip(*turns, strict=True)]


def undisturbed(timed: Callable[[], T], is_disturbed: Callable[[], bool], patience_s: float) -> T:
    """Return *timed*'s result, repeating it while *is_disturbed* before or after it.

    Once *patience_s* have passed, the last result counts.
    """
    end = perf_counter() + patience_s
    before = is_disturbed()
    while True:
        found = timed()
        after = is_disturbed()
        if not (before or after) or perf_counter() >= end:
            return found
        before = after


def _mean_and_error(samples: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error; from five samples on, without the smallest and the largest."""
    kept = sorted(samples)[1:-1] if len(samples) >= 5 else samples
    mean = fmean(kept)
    return mean, stdev(kept, mean) / sqrt(len(kept)) if len(kept) > 1 else 0.0


def _calls_per_sample(burst: Burst, first: float, policy: TimingPolicy) -> int:
    """Warm up untimed, and return the number of calls per sample."""
    fastest, spent, calls = first, 0.0, 1
    while spent < policy.warm_s and first <= policy.pause_s:
        seconds = burst(calls)
        spent += seconds
        fastest = min(fastest, seconds / calls)
        calls *= 2
    return max(1, round(policy.sample_s / max(fastest, 1e-9)))
