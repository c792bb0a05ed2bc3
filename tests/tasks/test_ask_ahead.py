"""While programs of one task are measured, candidates of the next task are sought."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Event, current_thread, main_thread

import pytest

from ansorpy.ir.task import Task
from ansorpy.measure.records.known_trials import KnownTrials
from ansorpy.measure.result import MeasureResult
from ansorpy.schedule.state import State
from ansorpy.search.population import Candidate, Pool
from ansorpy.search.strategies.random import RandomSearch
from ansorpy.search.strategy import Context
from ansorpy.search.task_search import SearchOptions
from ansorpy.search.transfers.schedule_reuse import ScheduleReuse
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.schedulers import SCHEDULERS
from tests.search.runners import FormulaRunner
from tests.tasks.anew import tune_anew
from tests.tasks.test_tune import QUICK, TASKS
from tests.waiting import comes_true


@dataclass
class Awaiting(FormulaRunner):
    """Measures a batch only once the strategy has been asked for candidates of another task."""

    asked: dict[str, Event] = field(default_factory=dict)
    awaited: int = 0

    def answer(self, task: Task, state: State) -> MeasureResult:
        if self.awaited < len(self.batches) <= 6:
            others = [asked for key, asked in self.asked.items() if key != task.key]
            assert comes_true(lambda: any(asked.is_set() for asked in others))
            self.asked[task.key].clear()
            self.awaited = len(self.batches)
        return super().answer(task, state)


def test_the_next_task_is_searched_while_one_is_measured() -> None:
    """In first rounds and in later ones."""
    asked = {entry.task.key: Event() for entry in TASKS}

    class Asked(RandomSearch):
        def ask(self, context: Context, n: int) -> Pool:
            pool = super().ask(context, n)
            asked[context.task.key].set()
            return pool

    runner, options = Awaiting(asked=asked), replace(QUICK, search=SearchOptions(Asked))
    tune_anew(TASKS, Budget(trials=60), runner, options=options)
    assert len(runner.seen) == 60 and len(runner.batches) > 6


@pytest.mark.parametrize("scheduler", SCHEDULERS.names)
def test_every_scheduler_tells_what_may_be_next(scheduler: str) -> None:
    later: list[bool] = []

    class Asked(RandomSearch):
        def ask(self, context: Context, n: int) -> Pool:
            if context.measured:
                later.append(current_thread() is not main_thread())
            return super().ask(context, n)

    search, factory = SearchOptions(Asked), SCHEDULERS.factory(scheduler)
    options = replace(QUICK, search=search, scheduler=factory, round_size=4, retime=False)
    tune_anew(TASKS[:2], Budget(trials=48), FormulaRunner(), options=options)
    assert any(later)


def test_schedules_of_similar_tasks_are_taken_over_when_a_round_begins() -> None:
    """Not when its candidates are asked for: the round before it has just begun then."""
    known: list[int] = []

    class Counting(ScheduleReuse):
        def first(self, context: Context, trials: KnownTrials) -> Sequence[Candidate]:
            known.append(sum(trials.correct(entry.task.key) for entry in TASKS))
            return ()

    search = replace(QUICK.search, transfer=Counting())
    options = replace(QUICK, search=search, round_size=4, retime=False)
    tune_anew(TASKS, Budget(trials=24), FormulaRunner(), options=options)
    assert known == [0, 4, 8]


def test_nothing_computes_any_more_once_a_run_has_been_stopped() -> None:
    begun: list[Task] = []
    ended: list[Task] = []

    class Slow(RandomSearch):
        def ask(self, context: Context, n: int) -> Pool:
            begun.append(context.task)
            if current_thread() is not main_thread():
                time.sleep(0.5)
            ended.append(context.task)
            return super().ask(context, n)

    def stop(state: State, number: int) -> MeasureResult | None:
        assert comes_true(lambda: len(begun) == 2)
        raise KeyboardInterrupt

    options = replace(QUICK, search=SearchOptions(Slow))
    tuned = tune_anew(TASKS, Budget(trials=60), FormulaRunner(fails=stop), options=options)
    assert tuned.interrupted and len(begun) == len(ended) == 2
