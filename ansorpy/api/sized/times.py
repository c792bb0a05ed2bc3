"""What the program for all sizes of each candidate takes at each size."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf, log

from ansorpy.api.sized.candidates import SizedCandidate
from ansorpy.api.sized.path import cheapest_path
from ansorpy.api.sized.task_group import TaskGroup
from ansorpy.api.sized.timer import Timer
from ansorpy.errors import ScheduleError
from ansorpy.ir.sizes import Sizes, fixed
from ansorpy.ir.task import Task
from ansorpy.schedule.state import State

__all__ = ["Times"]

_DOUBT = log(1.5)
"""How much faster a schedule must be expected to be than another one that was measured."""


@dataclass(frozen=True)
class _Row:
    """What is known of a candidate: seconds for each of the tasks, infinite where it fails.

    Args:
        program: Its program for all sizes.
        predicted: Of the program for the task's sizes only.
        recorded: Of the same; None where nothing is recorded.
        measured: Of the program for all sizes; None where it was not measured.
    """

    candidate: SizedCandidate
    program: State
    predicted: Sequence[float]
    recorded: Sequence[float | None]
    measured: list[float | None]

    def logs(self, doubt: float) -> list[float]:
        """The logarithms of its seconds: measured ones, or else expected ones with a *doubt*."""
        known = [r if m is None else m for r, m in zip(self.recorded, self.measured, strict=True)]
        pairs = zip(self.predicted, known, strict=True)
        wrong = [log(k) - log(p) for p, k in pairs if k is not None and max(p, k) < inf]
        mean = sum(wrong) / len(wrong) if wrong else 0.0
        return [
            (log(p) + mean if k is None else log(k)) + (doubt if m is None else 0.0)
            for p, k, m in zip(self.predicted, known, self.measured, strict=True)
        ]


class Times:
    """What the program for all sizes of each candidate takes at each size of a group.

    It is measured where the candidate is chosen.  Until then, it is expected to take as long as the
    program for that size only, or what is predicted, corrected by how wrong the model is about the
    candidate elsewhere.
    """

    def __init__(self, timer: Timer, group: TaskGroup) -> None:
        self.timer = timer
        self.tasks = group.every
        self.dim = group.dag.main_dim
        self.shares = group.shares(self.tasks)
        self._rows: list[_Row] = []
        self._general = [group.for_all(task) for task in self.tasks]

    @property
    def candidates(self) -> list[SizedCandidate]:
        """The candidates by their numbers."""
        return [row.candidate for row in self._rows]

    def add(self, candidates: Iterable[SizedCandidate]) -> list[int]:
        """Add *candidates*, except those that are known, with what is recorded of them.

        Returns the numbers of all of them.
        """
        known = {candidate.key: n for n, candidate in enumerate(self.candidates)}
        found = []
        for candidate in candidates:
            number = known.setdefault(candidate.key, len(self._rows))
            found.append(number)
            if number == len(self._rows):
                self._rows.append(self._row(candidate))
        return found

    def _row(self, candidate: SizedCandidate) -> _Row:
        program = candidate.state({})
        alone = [self._alone(candidate, *item) for item in self.tasks.items()]
        predicted, recorded = zip(*alone, strict=True)
        measured = [self.timer.recorded(task, [program]) for task in self._general]
        return _Row(candidate, program, predicted, recorded, [seconds for [seconds] in measured])

    def _alone(
        self, candidate: SizedCandidate, task: Task, sizes: Sizes
    ) -> tuple[float, float | None]:
        """Predicted and recorded seconds of the program for *sizes* only."""
        try:
            state = candidate.state(sizes)
        except ScheduleError:
            return inf, inf
        [predicted] = self.timer.tuner.predicted(task, [state])
        [recorded] = self.timer.recorded(task, [state])
        return predicted, recorded

    def settle(self) -> None:
        """Measure the chosen schedules and choose again, until all chosen ones are measured."""
        while self.measure([*zip(self.chosen(), range(len(self.tasks)), strict=True)]):
            pass

    def chosen(self) -> list[int]:
        """For each task, the number of the candidate that is chosen so far."""
        path = dict(zip(self.sizes, cheapest_path(self.candidates, self._costs()), strict=True))
        return [path[fixed(sizes[self.dim])] for sizes in self.tasks.values()]

    def path(self) -> list[int]:
        """For each size, the number of the candidate that serves it; empty if all fail at a size.

        Candidates that were not measured at a size are chosen there only with a doubt.
        """
        costs = self._costs(doubt=_DOUBT)
        path = cheapest_path(self.candidates, costs)
        return [] if any(costs[number][n] == inf for n, number in enumerate(path)) else path

    def measure(self, wanted: Iterable[tuple[int, int]]) -> bool:
        """Measure candidates (the first numbers) at sizes (the second); False if none was."""
        new = [(c, n) for c, n in dict.fromkeys(wanted) if self._rows[c].measured[n] is None]
        programs = [self._rows[number].program for number in dict.fromkeys(c for c, _ in new)]
        self.timer.expect(self._general[0], programs)
        for n, numbers in _by_second(new).items():
            rows = [self._rows[number] for number in numbers]
            found = self.timer.seconds(self._general[n], [row.program for row in rows])
            for row, seconds in zip(rows, found, strict=True):
                row.measured[n] = seconds
        return any(self._rows[c].measured[n] is not None for c, n in new)

    def refute(self, number: int, sizes: Collection[int], reason: str) -> None:
        """Record that this candidate is refuted at *sizes*, and choose it there no more.

        *sizes* are those of the main dimension.
        """
        refuted = [n for n, at in enumerate(self.tasks.values()) if fixed(at[self.dim]) in sizes]
        tasks, row = [self._general[n] for n in refuted], self._rows[number]
        self.timer.tuner.refute(tasks, row.program, reason)
        for n in refuted:
            row.measured[n] = inf

    def failures(self) -> list[str]:
        """Why programs for all sizes failed or are refuted, each reason once."""
        programs = [row.program for row in self._rows]
        found = (self.timer.failures(task, programs) for task in self._general)
        return [*dict.fromkeys(chain.from_iterable(found))]

    def logs(self, *, doubt: float = 0.0) -> list[list[float]]:
        """For each candidate, the logarithms of its seconds for the tasks; infinite if it fails.

        *doubt* is added to those that are not measured.
        """
        return [row.logs(doubt) for row in self._rows]

    @property
    def sizes(self) -> list[int]:
        """The sizes of the main dimension, in order."""
        return sorted({fixed(sizes[self.dim]) for sizes in self.tasks.values()})

    def _costs(self, *, doubt: float = 0.0) -> list[list[float]]:
        """For each candidate, its logarithms of seconds at the sizes, by their shares of calls."""
        found = []
        for row in self.logs(doubt=doubt):
            by_size = dict.fromkeys(self.sizes, 0.0)
            for sizes, share, seconds in zip(self.tasks.values(), self.shares, row, strict=True):
                # A failure counts where no call is expected, too: a share of 0 would hide it.
                by_size[fixed(sizes[self.dim])] += share * seconds if seconds < inf else inf
            found.append([*by_size.values()])
        return found


def _by_second(pairs: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    """The distinct second numbers of *pairs*, each with the first numbers that come with it."""
    firsts: dict[int, list[int]] = {}
    for first, second in pairs:
        firsts.setdefault(second, []).append(first)
    return firsts
