"""Results of one task: its best programs, its failures, and how fast it improved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ansorpy.errors import NoValidProgram
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.trial_end import TrialEnd
from ansorpy.schedule.state import State

__all__ = ["Best", "TaskHistory"]

_GAIN = 0.01
"""The least share by which the best time falls noticeably."""


@dataclass(frozen=True)
class Best:
    """A correct program and its time."""

    state: State
    result: MeasureResult

    @property
    def seconds(self) -> float:
        return self.result.median_s

    @property
    def timed_s(self) -> float | None:
        """Its seconds; None if it was only checked."""
        return self.seconds if self.result.seconds else None


@dataclass
class TaskHistory:
    """Trials of one task so far.

    ``finalists`` are its fastest correct programs, best first, including those other tuners found.
    ``retimed`` is True when the finalists have been timed again, alternating, and have not changed
    since.  ``first_s`` has the seconds of the first correct program, which the cost model chose
    before anything was measured.  ``best_after`` and ``trials_after`` hold the best seconds
    (infinite until a program was correct) and the number of trials after each round.
    ``since_gain`` counts trials since the best time last fell noticeably.
    ``earlier`` counts trials of previous runs, which plateau detection ignores.
    """

    keep: int = 4
    trials: int = 0
    earlier: int = 0
    since_gain: int = 0
    finalists: list[Best] = field(default_factory=list)
    retimed: bool = False
    failures: dict[TrialKind, int] = field(default_factory=dict)
    reasons: dict[TrialKind, str] = field(default_factory=dict)
    first_s: float | None = None
    best_after: list[float] = field(default_factory=list)
    trials_after: list[int] = field(default_factory=list)
    _gained_s: float = float("inf")

    @property
    def best(self) -> Best | None:
        return self.finalists[0] if self.finalists else None

    @property
    def best_s(self) -> float | None:
        return None if self.best is None else self.best.seconds

    def add(self, end: TrialEnd) -> None:
        """Add a finished trial; one from another run is not counted, but may become the best."""
        if end.is_own:
            self._count(end.result)
        elif end.result.ok:
            self._note_gain(end.result)
        if end.result.ok:
            self._rank(end.state, end.result)

    def _rank(self, state: State, result: MeasureResult) -> None:
        found = Best(state, result)
        self.finalists.append(found)
        self.finalists.sort(key=lambda best: best.seconds)
        del self.finalists[self.keep :]
        self.retimed &= all(best is not found for best in self.finalists)

    def resume(
        self, results: Sequence[MeasureResult], replay: Callable[[int], State | None]
    ) -> None:
        """Count earlier trials as one round; *replay* returns a trial's program by its number.

        Only finalists are replayed.  If *replay* returns None for one, the next best takes its
        place.
        """
        correct = [number for number, result in enumerate(results) if result.ok]
        correct.sort(key=lambda number: results[number].median_s)
        for result in results:
            self._count(result)
        programs = ((number, replay(number)) for number in correct)
        found = (Best(state, results[n]) for n, state in programs if state is not None)
        self.finalists = list(islice(found, self.keep))
        self.earlier, self.since_gain = self.trials, 0
        self.end_round()

    @property
    def rounds(self) -> int:
        """Rounds of this run."""
        return len(self.best_after) - bool(self.earlier)

    def end_round(self) -> None:
        """Record the best time and the number of trials after a round."""
        self.best_after.append(float("inf") if self.best_s is None else self.best_s)
        self.trials_after.append(self.trials)

    def has_plateau(self, trials: int) -> bool:
        """True when at least *trials* trials passed since the last gain, no fewer than before it.

        Only trials of this run count.
        """
        before = self.trials - self.earlier - self.since_gain
        return self.best is not None and self.since_gain >= max(trials, before)

    def replace_finalists(self, timed: list[Best]) -> None:
        """Replace the finalists by the re-timed ones in *timed*, sorted by time."""
        self.finalists = sorted(timed, key=lambda best: best.seconds)
        self.retimed = True

    def _count(self, result: MeasureResult) -> None:
        self.trials += 1
        self.since_gain += 1
        if not result.ok and result.kind is not TrialKind.SLOW:
            self.failures[result.kind] = self.failures.get(result.kind, 0) + 1
            self.reasons.setdefault(result.kind, result.reason)
        elif result.ok:
            self.first_s = self.first_s or result.median_s
            self._note_gain(result)

    def _note_gain(self, result: MeasureResult) -> None:
        if result.median_s < (1 - _GAIN) * self._gained_s:
            self.since_gain = 0
            self._gained_s = result.median_s

    def no_valid_program(self, task: str, ended: str = "") -> NoValidProgram:
        """The error for a task without a correct program: count and first reason per failure kind.

        *ended* is the reason why measuring stopped.
        """
        kinds = ", ".join(f"{count} {kind.value}" for kind, count in self.failures.items())
        tried = f"none of {self.trials} trials gave a correct program ({kinds or 'all too slow'})"
        nothing = "nothing was measured, so there is no program to return"
        lines = [f"{task}: {tried if self.trials else nothing}"]
        for kind, reason in self.reasons.items():
            lines += [f"first {kind.value}:", *(f"  {line}" for line in reason.splitlines())]
        lines += [f"ended: {ended}"] * bool(ended)
        return NoValidProgram("\n".join(lines))
