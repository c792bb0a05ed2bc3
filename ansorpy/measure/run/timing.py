"""Timing policy: how long and how often a candidate is timed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, sqrt
from statistics import fmean, geometric_mean, median, stdev

__all__ = [
    "Burst", "Timing", "TimingPolicy", "Yardstick", "interleaved_s", "time_calls",
    "time_interleaved",
]  # fmt: skip

Burst = Callable[[int], float]
"""Runs a kernel a given number of times in a row from compiled code; returns the total seconds."""


_AGREEING = 8
"""This many consecutive bursts that agree within :data:`_AGREE` mark a program as slow."""

_AGREE = 1.1
"""Bursts agree if the longest takes at most this many times as long as the shortest."""

_FAR = 4.0
"""A yardstick that takes more than this many times as long as a candidate would take most of its
turns."""

_BRIEF = 4.0
"""Programs whose call takes at most this many samples' time suffer from caches that another one
filled."""


@dataclass(frozen=True)
class TimingPolicy:
    """Repeat until the samples suffice; stop early for clearly slower candidates.

    Args:
        warm_s: Untimed calls before the first sample.
        settled: If set, untimed calls continue until two consecutive bursts differ by at most this
            fraction, or for ten times ``warm_s``: the clock of a GPU rises step by step.
        pause_s: How much longer the first call may take: waking the threads takes milliseconds
            after 100 ms of idling, and another process may have a core for a few ticks.
        touch_s_per_byte: How much longer the first call may take for each byte that no call has
            touched yet, because the system allocates and clears the pages then.
        sample_s: Minimum length of one sample, to amortize the overhead of the clock and the call.
        total_s: Samples are taken until they add up to this.
        min_samples: Minimum number of samples, however long they take.
        max_samples: Maximum number of samples, however short they are.
        slow_factor: Stop a candidate whose first timed call takes this times the incumbent's time.
        spread: If set, ``total_s`` is a maximum, and sampling ends as soon as the standard error of
            the mean is at most this fraction of it.  Source: AdaTune (NeurIPS 2020), which stops at
            a coefficient of variation and drops the extremes of five samples or more.
        turns_s: Timing in turns ends when each kernel's samples add up to this on average.
        rounds: Maximum number of rounds of timing in turns, with a sample of each kernel.
        worse_factor: If ``spread`` is set, sampling also ends when the mean exceeds this times the
            incumbent's time by two standard errors: a loser's time need not be precise.
        level_s: What ``total_s`` is for a program that becomes a :class:`Yardstick`.
        fastest: The share of the samples that count, the fastest ones; at least
            ``min_samples`` do.
    """

    warm_s: float = 0.002
    settled: float | None = None
    pause_s: float = 0.02
    touch_s_per_byte: float = 1e-9
    sample_s: float = 0.0005
    total_s: float = 0.018
    min_samples: int = 3
    max_samples: int = 60
    slow_factor: float = 3.0
    spread: float | None = None
    turns_s: float = 0.1
    rounds: int = 9
    worse_factor: float = 1.25
    level_s: float = 0.072
    fastest: float = 1.0

    def of_level(self) -> TimingPolicy:
        """The policy for a program that becomes a :class:`Yardstick`.

        It samples for longer than a virtual machine's slow phases take, and the samples of fast
        ones count.
        """
        most = max(self.max_samples, round(self.level_s / self.sample_s))
        return replace(self, total_s=self.level_s, max_samples=most, spread=None, fastest=0.3)

    def more(self, samples: Sequence[float], spent_s: float, incumbent_s: float | None) -> bool:
        """Whether to take another sample after *samples*, which took *spent_s* in all."""
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

    def warm(self, spent_s: float, before: float, last: float) -> bool:
        """Whether the kernel is warm after *spent_s* of untimed calls.

        The last two bursts took *before* and *last* seconds.
        """
        if spent_s < self.warm_s:
            return False
        if self.settled is None or spent_s >= 10 * self.warm_s:
            return True
        return abs(last - before) <= self.settled * before

    def cold_s(self, fresh_bytes: int) -> float:
        """Seconds by which a first call may exceed later ones if *fresh_bytes* are untouched."""
        return self.pause_s + self.touch_s_per_byte * fresh_bytes


@dataclass(frozen=True)
class Yardstick:
    """A program of known time, in turns with which others of its task are timed.

    A virtual machine's cores may be slower for a twentieth to a tenth of a second at a time, which
    is longer than a candidate is timed.  Measured on a shared host, where slow phases take 1.6
    times as long: the times of one candidate by itself differ by 29 % (standard deviation), those
    relative to a yardstick by 4 %.

    Args:
        seconds: What a call of it counts as.
        unit: The number of its calls is a multiple of this.
    """

    burst: Burst
    seconds: float
    unit: int = 1


@dataclass(frozen=True)
class Timing:
    """Seconds per call, one number per sample; ``is_slow`` if timing was stopped early."""

    seconds: tuple[float, ...]
    is_slow: bool = False


def time_calls(
    burst: Burst,
    policy: TimingPolicy,
    incumbent_s: float | None = None,
    fresh_bytes: int = 0,
    unit: int = 1,
    yardstick: Yardstick | None = None,
) -> Timing:
    """Time a kernel by *policy*; *incumbent_s* is the best known time, None at the start.

    *fresh_bytes* of its memory are untouched at its first call.  The number of calls is always a
    multiple of *unit*.  With a *yardstick* the two take turns, and the times are relative to it.
    """
    limit_s = inf if incumbent_s is None else unit * policy.slow_factor * incumbent_s
    first = _first(burst, policy, limit_s, limit_s + 2 * policy.cold_s(fresh_bytes), unit)
    if first > limit_s and yardstick is not None:  # the machine may be what is slow
        first = min(first, _beside(yardstick, burst, unit, unit, first, policy)[0])
    if first > limit_s:
        return Timing((first / unit,), is_slow=True)
    number = _calls_per_sample(burst, first, policy, unit)
    if yardstick is not None and yardstick.seconds > _FAR * first / unit:
        yardstick, policy = None, policy.of_level()
    samples: list[float] = []
    spent = 0.0
    while policy.more(samples, spent, incumbent_s):
        if yardstick is None:
            seconds = took_s = burst(number)
        else:
            seconds, took_s = _beside(yardstick, burst, number, unit, first, policy)
        spent += took_s
        samples.append(seconds / number)
    if policy.fastest < 1.0:
        kept = max(policy.min_samples, ceil(policy.fastest * len(samples)))
        samples = sorted(samples)[:kept]
    return Timing(tuple(samples))


def _beside(
    yardstick: Yardstick, burst: Burst, number: int, unit: int, first: float, policy: TimingPolicy
) -> tuple[float, float]:
    """Seconds of *number* calls as the *yardstick* has them, and what the two really took.

    *unit* calls took *first* seconds.  Programs that are brief are called untimed before, as the
    other one's data are in the caches.
    """
    own, other = (burst, unit), (yardstick.burst, yardstick.unit)
    is_brief = max(first, yardstick.seconds * yardstick.unit) <= _BRIEF * policy.sample_s
    calls = max(1, round(policy.sample_s / (yardstick.seconds * yardstick.unit))) * yardstick.unit
    timed = []
    untimed_s = 0.0
    for (run, least), count in ((own, number), (other, calls)):
        untimed_s += run(least) if is_brief else 0.0
        timed.append(run(count))
    return timed[0] * yardstick.seconds * calls / timed[1], sum(timed) + untimed_s


def time_interleaved(
    bursts: Sequence[Burst],
    policy: TimingPolicy,
    undisturbed: Callable[[Callable[[], list[float]]], list[float]] = lambda taken: taken(),
    units: Sequence[int] | None = None,
    left_s: Callable[[], float] = lambda: inf,
) -> list[Timing]:
    """Time several kernels in turns, one sample each, so that drift affects all alike.

    The number of calls of each kernel is a multiple of its entry in *units* (default 1).  There are
    fewer rounds than *policy* allows if the kernels take long, and after the first one none that
    might not end within *left_s*.  Every round goes through *undisturbed*, which may repeat it.
    """
    least = units or [1] * len(bursts)
    known = [burst(unit) for burst, unit in zip(bursts, least, strict=True)]
    numbers = [
        _calls_per_sample(burst, first, policy, unit)
        for burst, first, unit in zip(bursts, known, least, strict=True)
    ]

    def taken() -> list[float]:
        samples = []
        for at, (burst, number, unit) in enumerate(zip(bursts, numbers, least, strict=True)):
            if known[at] <= policy.pause_s:
                # The first call after another kernel's turn finds that kernel's data in the caches.
                burst(unit)
            samples.append(burst(number) / number)
            known[at] = min(known[at], samples[-1] * unit)
        return samples

    turns: list[list[float]] = []
    spent_s = longest_s = 0.0
    while len(turns) < policy.rounds:
        turns.append(undisturbed(taken))
        round_s = sum(number * s for number, s in zip(numbers, turns[-1], strict=True))
        spent_s, longest_s = spent_s + round_s, max(longest_s, round_s)
        is_enough = len(turns) >= policy.min_samples and spent_s >= policy.turns_s * len(known)
        # Untimed calls may take as long as the timed ones, or the next round may be repeated.
        if is_enough or left_s() <= 2 * longest_s:
            break
    return [Timing(tuple(samples)) for samples in zip(*_levelled(turns), strict=True)]


def _levelled(turns: Sequence[Sequence[float]]) -> Sequence[Sequence[float]]:
    """The samples of each round as if the machine had been as fast as in the usual one."""
    if len(turns[0]) < 2:
        return turns
    levels = [geometric_mean(turn) for turn in turns]
    usual = median(levels)
    return [[s * usual / level for s in turn] for turn, level in zip(turns, levels, strict=True)]


def interleaved_s(seconds: Sequence[float], policy: TimingPolicy) -> float:
    """Estimated seconds of timing kernels in turns, checks included.

    *seconds* has the time of one call of each.  The calls that warm up short kernels are left out.
    """
    if not seconds:
        return 0.0
    timed_s = sum(max(each, policy.sample_s) for each in seconds)
    untimed_s = sum(each for each in seconds if each <= policy.pause_s)
    enough = max(policy.min_samples, ceil(policy.turns_s * len(seconds) / timed_s))
    return 2 * sum(seconds) + min(policy.rounds, enough) * (timed_s + untimed_s)


def _first(burst: Burst, policy: TimingPolicy, limit_s: float, doubt_s: float, unit: int) -> float:
    """Seconds of the first *unit* calls; if they exceed *limit_s*, the minimum of several tries.

    Perhaps only the cold start was slow, or another process had a core meanwhile.  The tries
    therefore continue for *doubt_s*, or until consecutive bursts agree: disturbances vary.
    """
    first = spent = burst(unit)
    calls, recent = unit, deque[float](maxlen=_AGREEING)
    while first > limit_s and spent <= doubt_s and not _agree(recent, policy):
        seconds = burst(calls)
        spent += seconds
        first = min(first, seconds * unit / calls)
        if seconds < policy.sample_s:
            calls *= 2
            recent.clear()
        else:
            recent.append(seconds)
    return first


def _agree(recent: Sequence[float], policy: TimingPolicy) -> bool:
    """Whether *recent*, bursts with equal numbers of calls, suffice to call a program slow."""
    if len(recent) < _AGREEING or sum(recent) < 2 * policy.warm_s:
        return False
    return max(recent) <= _AGREE * min(recent)


def _mean_and_error(samples: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error; with five or more samples, without the two extremes."""
    kept = sorted(samples)[1:-1] if len(samples) >= 5 else samples
    mean = fmean(kept)
    return mean, stdev(kept, mean) / sqrt(len(kept)) if len(kept) > 1 else 0.0


def _calls_per_sample(burst: Burst, first: float, policy: TimingPolicy, unit: int) -> int:
    """Warm up untimed, and return the number of calls of one sample, a multiple of *unit*.

    *first* is the time of *unit* calls in seconds.
    """
    before = last = fastest = first / unit
    spent, calls = 0.0, unit
    while first <= policy.pause_s and not policy.warm(spent, before, last):
        seconds = burst(calls)
        spent += seconds
        before, last = last, seconds / calls
        fastest = min(fastest, last)
        calls *= 2
    return unit * max(1, round(policy.sample_s / max(fastest * unit, 1e-9)))
