"""Parent process of a comparison: runs the engines' processes in turn, with all others stopped.

An engine's threads may spin between calls, raise the clock or fill the cache.  So every engine has
its own process, all but one are stopped (SIGSTOP), and bursts alternate.  Disturbances of the
machine then affect all engines equally, and disturbed bursts are repeated.  While one is timed, no
tuner on this machine computes or times on its cores and GPUs, if those become free in a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from math import ceil
from statistics import median

from ansorpy.errors import AnsorpyError
from ansorpy.evaluation.bench.processes import Contender, EngineProcess
from ansorpy.measure.run.undisturbed import Undisturbed
from ansorpy.measure.workers.locks import Undisputed

__all__ = ["Policy", "Timing", "compare", "compare_sizes", "unit_of"]

_ENOUGH = 4
"""The least number of bursts that can settle."""


@dataclass(frozen=True)
class Policy:
    """Duration and number of timed bursts.

    Args:
        burst_s: Timed seconds per burst (at least ``least_calls`` calls).
        untimed_s: Seconds of untimed calls before each burst, since after a stop the caches are
            cold, the threads asleep and the clock low.
        rounds: Minimum and maximum number of bursts per engine.
        settled: Medians are settled if the last three rounds moved none of them by more than this
            fraction.
        streams: Concurrent callers, each with an engine of its own.
        long_s: A call that takes as many seconds is a burst by itself.
        behind: An engine with such calls that is as many times slower than another has four bursts.
    """

    burst_s: float = 0.3
    untimed_s: float = 0.1
    least_calls: int = 5
    most_calls: int = 20_000
    rounds: tuple[int, int] = (7, 25)
    settled: float = 0.01
    load_timeout_s: float = 900.0
    streams: int = 1
    long_s: float = 1.0
    behind: float = 20.0


@dataclass
class Timing:
    """All timed calls of one engine, in seconds, and its own version string.

    ``precision`` is that of its arithmetic, if it says so; the calls are those of ``streams``
    concurrent callers.  ``repeated`` counts bursts that were disturbed and repeated; ``settled``
    says whether the median was steady when the bursts ended (:attr:`Policy.settled`), and
    ``undisputed`` whether no tuner was using the machine in any burst.
    """

    version: str = ""
    repeated: int = 0
    bursts_s: list[list[float]] = field(default_factory=list)
    medians_s: list[float] = field(default_factory=list)
    settled: bool = True
    undisputed: bool = True
    precision: str = ""
    streams: int = 1

    @property
    def runs(self) -> int:
        """Number of timed calls."""
        return sum(map(len, self.bursts_s))

    @property
    def median_ms(self) -> float:
        """Median of the bursts' medians, so each burst counts once, however many calls it had."""
        return self.medians_s[-1] * 1e3

    @property
    def bursts_ms(self) -> tuple[float, float]:
        """The smallest and the largest of the bursts' medians."""
        medians = [median(burst) * 1e3 for burst in self.bursts_s]
        return min(medians), max(medians)

    @property
    def min_ms(self) -> float:
        """Fastest timed call."""
        return min(map(min, self.bursts_s)) * 1e3

    @property
    def per_s(self) -> float:
        """Calls a second of all callers: the median of the bursts' rates."""
        return median(self.streams * len(burst) / sum(burst) for burst in self.bursts_s)

    @property
    def spread(self) -> float:
        """Half the range of the bursts' medians, as a fraction of the median."""
        low, high = self.bursts_ms
        return (high - low) / 2 / self.median_ms

    def percentile_ms(self, percent: float) -> float:
        """The time that *percent* of all timed calls took at most."""
        calls_s = sorted(chain(*self.bursts_s))
        return calls_s[ceil(len(calls_s) * percent / 100) - 1] * 1e3

    def add(self, calls_s: Sequence[float]) -> None:
        """Add one burst; ``medians_s`` keeps the running median after it."""
        self.bursts_s.append(list(calls_s))
        self.medians_s.append(median(map(median, self.bursts_s)))

    def is_settled(self, share: float) -> bool:
        """Whether the last three bursts moved the running median by at most *share*."""
        last = self.medians_s[-_ENOUGH:]
        return len(last) == _ENOUGH and max(last) - min(last) <= share * min(last)


def compare(
    contenders: Sequence[Contender],
    policy: Policy | None = None,
    progress: Callable[[str], None] = lambda line: None,
    left_out: Callable[[str, AnsorpyError], None] | None = None,
    is_disturbed: Callable[[], bool] = lambda: False,
    gpus: Sequence[str] = (),
) -> dict[str, Timing]:
    """Time every contender in alternating bursts; the result is in the order given.

    Args:
        left_out: Called with each contender that does not load and is skipped.  Without it, such
            a failure is raised.
        is_disturbed: Returns whether the machine is slower than a moment ago; called between
            bursts.
        gpus: Bus addresses of the GPUs that engines use.

    Raises:
        EngineFailure: A process died, or did not load its model in ``policy.load_timeout_s``.
    """
    policy = policy or Policy()
    with _loaded(contenders, policy, progress, left_out) as processes:
        alone = Undisputed(gpus)
        return _settled(processes, policy, Undisturbed(is_disturbed), progress, None, alone)


def compare_sizes(
    contenders: Sequence[Contender],
    sizes: Mapping[int, str],
    policy: Policy | None = None,
    progress: Callable[[str], None] = lambda line: None,
    left_out: Callable[[str, AnsorpyError], None] | None = None,
    is_disturbed: Callable[[], bool] = lambda: False,
    gpus: Sequence[str] = (),
) -> Iterator[dict[str, Timing]]:
    """:func:`compare` at one size after another; every engine is loaded once, for all of them.

    Args:
        contenders: Their engines are :class:`~ansorpy.evaluation.engines.protocol.SizedEngine`.
        sizes: The numbers of sizes that the engines hold, and their names for *progress*.
    """
    policy = policy or Policy()
    undisturbed, alone = Undisturbed(is_disturbed), Undisputed(gpus)
    with _loaded(contenders, policy, progress, left_out) as processes:
        for number, name in sizes.items():
            progress(name)
            yield _settled(processes, policy, undisturbed, progress, number, alone)


@contextmanager
def _loaded(
    contenders: Sequence[Contender],
    policy: Policy,
    progress: Callable[[str], None],
    left_out: Callable[[str, AnsorpyError], None] | None,
) -> Iterator[dict[EngineProcess, str]]:
    """The processes whose engines have loaded, and the engines' versions."""
    with ExitStack() as stack:
        versions: dict[EngineProcess, str] = {}
        for contender in contenders:
            progress(f"loading {contender.name}")
            process = stack.enter_context(EngineProcess(contender))
            try:
                versions[process] = process.load(policy.load_timeout_s, policy.streams)
            except AnsorpyError as error:
                if left_out is None:
                    raise
                left_out(contender.name, error)
        yield versions


def _settled(
    versions: Mapping[EngineProcess, str],
    policy: Policy,
    undisturbed: Undisturbed,
    progress: Callable[[str], None],
    size: int | None,
    alone: Undisputed,
) -> dict[str, Timing]:
    """Bursts in turn, until the medians settle or the rounds are over."""
    timings = {
        process.name: Timing(version, precision=process.precision, streams=policy.streams)
        for process, version in versions.items()
    }
    due = list(versions)
    for turn in range(policy.rounds[1] if timings else 0):
        for process in _alternating(due, turn):
            before = undisturbed.repeated
            timing = timings[process.name]
            with alone.held() as is_undisputed:
                timing.add(undisturbed(partial(_burst, process, policy, size)))
            timing.repeated += undisturbed.repeated - before
            timing.undisputed &= is_undisputed
        progress(f"round {turn + 1}: " + _line(timings))
        for timing in timings.values():
            timing.settled = timing.is_settled(policy.settled)
        due = [process for process in due if not _is_enough(process.name, timings, policy)]
        if turn + 1 >= policy.rounds[0] and all(timings[process.name].settled for process in due):
            break
    return timings


def _is_enough(name: str, timings: Mapping[str, Timing], policy: Policy) -> bool:
    """Whether the engine called *name* is so slow that its bursts so far are enough."""
    fastest_ms = min(timing.median_ms for timing in timings.values())
    is_behind = timings[name].median_ms > max(policy.long_s * 1e3, policy.behind * fastest_ms)
    return is_behind and len(timings[name].bursts_s) >= _ENOUGH


def _alternating(processes: list[EngineProcess], turn: int) -> list[EngineProcess]:
    """Reverse the order on odd turns, so that drift of the machine's clock favours no engine."""
    return processes if turn % 2 == 0 else processes[::-1]


def _burst(process: EngineProcess, policy: Policy, size: int | None) -> list[float]:
    """Seconds of each timed call."""
    request = {
        "size": size,
        "untimed_s": policy.untimed_s,
        "burst_s": policy.burst_s,
        "least_calls": policy.least_calls,
        "most_calls": policy.most_calls,
        "long_s": policy.long_s,
    }
    answer = process.ask("burst", request, policy.load_timeout_s)
    return [nanoseconds * 1e-9 for nanoseconds in answer["calls_ns"]]


def unit_of(least_ms: float) -> tuple[str, float]:
    """The unit in which times of at least *least_ms* are shown, and how many of it a ms has."""
    return ("us", 1e3) if least_ms < 0.1 else ("ms", 1.0)


def _line(timings: Mapping[str, Timing]) -> str:
    unit, per_ms = unit_of(min(t.median_ms for t in timings.values()))
    return ", ".join(f"{name} {t.median_ms * per_ms:.3f} {unit}" for name, t in timings.items())
