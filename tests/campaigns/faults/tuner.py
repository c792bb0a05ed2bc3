"""A small tuner in a process of its own: ``python -m tests.campaigns.faults.tuner DB --trials N``.

It prints what it has committed: one line ``N`` a trial.  Programs are built, checked and run, but
their times are those of a formula, so two undisturbed tuners decide alike.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ansorpy.errors import AnsorpyError
from ansorpy.ir.task import Task
from ansorpy.measure.build.builder import Builder
from ansorpy.measure.records.database import Database
from ansorpy.measure.result import MeasureResult
from ansorpy.measure.run.interfaces import Observer
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.measure.trial_end import TrialEnd
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.state import State
from ansorpy.search.events import Phase, Progress
from ansorpy.search.task_search import SearchOptions
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.tune import TuneOptions, WeightedTask, tune_tasks
from tests.campaigns.faults.workload import small_tasks
from tests.search.runners import true_seconds
from tests.search.small import EVOLUTION, TREES

__all__ = ["main", "options", "tasks"]

_BAD_WORKERS = "tests.campaigns.faults.bad_workers"
_QUICK = TimingPolicy(warm_s=0.0, total_s=0.002, min_samples=1, turns_s=0.002)
_DAY_S = 86_400.0


def tasks() -> list[WeightedTask]:
    """The two operators that are tuned."""
    return [WeightedTask(task, SketchSampler(task)) for task in small_tasks()]


def options(seed: int) -> TuneOptions:
    """How they are tuned."""
    return TuneOptions(SearchOptions(EVOLUTION, seed=seed), model=TREES, round_size=8)


class SteadyRunner(LocalRunner):
    """A runner whose correct programs take :func:`tests.search.runners.true_seconds`."""

    def measure(
        self,
        task: Task,
        candidates: Sequence[State],
        *,
        incumbent_s: float | None,
        observer: Observer | None = None,
    ) -> list[MeasureResult]:
        assert observer is not None
        results = super().measure(
            task, candidates, incumbent_s=None, observer=_SteadyObserver(task, observer)
        )
        return _steady(task, candidates, results)

    def retime(self, task: Task, candidates: Sequence[State]) -> list[MeasureResult]:
        return _steady(task, candidates, super().retime(task, candidates))


@dataclass(frozen=True)
class _SteadyObserver:
    task: Task
    observer: Observer

    def started(self, state: State) -> MeasureResult | None:
        return self.observer.started(state)

    def ended(self, end: TrialEnd) -> None:
        [result] = _steady(self.task, [end.state], [end.result])
        self.observer.ended(replace(end, result=result))


def _steady(
    task: Task, states: Sequence[State], results: Sequence[MeasureResult]
) -> list[MeasureResult]:
    return [
        replace(result, seconds=(true_seconds(task, state),)) if result.ok else result
        for state, result in zip(states, results, strict=True)
    ]


def _runner(has_bad_workers: bool) -> SteadyRunner:
    if not has_bad_workers:
        return SteadyRunner(MeasureOptions(policy=_QUICK, builders=1))
    limits = MeasureOptions(policy=_QUICK, run_timeout_s=1.0)
    builder = Builder(1, timeout_s=6.0, memory_bytes=1 << 29, module=_BAD_WORKERS)
    return SteadyRunner(limits, builder, module=_BAD_WORKERS)


def _set_clock_back(seed: int) -> None:
    """Have ``time.time`` jump back by up to a year, again and again."""
    rng, real, back = random.Random(seed), time.time, 0.0

    def jumping() -> float:
        nonlocal back
        back += rng.uniform(0, 365 * _DAY_S) if rng.random() < 0.2 else 0.0
        return real() - back

    time.time = jumping


def main() -> int:
    """Tune two operators until the database holds the requested number of trials."""
    parser = argparse.ArgumentParser()
    parser.add_argument("db")
    parser.add_argument("--trials", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bad-workers", action="store_true")
    parser.add_argument("--clock-back", action="store_true")
    given = parser.parse_args()
    if given.clock_back:
        _set_clock_back(given.seed)

    def tell(progress: Progress) -> None:
        if progress.phase is Phase.SEARCHING:
            print(progress.total_trials, flush=True)

    try:
        with Database(given.db, seed=given.seed) as database, _runner(given.bad_workers) as runner:
            tune_tasks(
                tasks(), Budget(trials=given.trials), runner, database,
                options=options(given.seed), listener=tell,
            )  # fmt: skip
    except AnsorpyError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
