"""Search for one task's fastest program: generate candidates, select some, measure them, learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any, TypeAlias

import numpy as np

from ansorpy.cost.analytic.hardware import hardware_of
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.dataset import Dataset
from ansorpy.cost.metrics import rank_correlation
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import CostModel, Divided, Remembering
from ansorpy.errors import AnsorpyError
from ansorpy.ir.task import Task
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.trial_end import TrialEnd
from ansorpy.profiler import Activity, profiled
from ansorpy.schedule.state import State
from ansorpy.search.events import Listener, Phase, Progress, silent
from ansorpy.search.history import TaskHistory
from ansorpy.search.population import (
    Candidate,
    Pool,
    SketchSource,
    by_sketch,
    different,
    in_turns,
    scored_again,
    with_deviations,
)
from ansorpy.search.resume import ResumedTrials, resumed_trials
from ansorpy.search.selector import Selector
from ansorpy.search.selectors.epsilon_greedy import EpsilonGreedy
from ansorpy.search.strategies.evolution import Evolution
from ansorpy.search.strategy import Context, Preparing, Results, Strategy
from ansorpy.search.transfer import Preceding, TransferSource
from ansorpy.search.transfers.schedule_reuse import Both
from ansorpy.search.trials import Trials

__all__ = ["SearchOptions", "TaskSearch"]

_HINTS = 8
"""How many programs are tried that others recorded for the task."""

_HOPELESS = 5.0
"""The default schedule is not measured if it is predicted to take so many times the best time."""

_Found: TypeAlias = tuple[Candidate, TrialEnd]


@dataclass(frozen=True)
class SearchOptions:
    """The replaceable parts of a search.

    Args:
        strategy: Makes candidates; one instance per task.
        selector: Picks the candidates to measure.
        transfer: Decides what to reuse from earlier trials, of this task and of others.
    """

    strategy: Callable[[], Strategy] = Evolution
    selector: Selector = EpsilonGreedy()
    transfer: TransferSource = Both()
    seed: int = 0


class TaskSearch:
    """The search for one task's fastest program, a round at a time.

    ``history`` holds the results, and ``measuring_s`` the seconds that measuring has taken.
    ``exhausted`` is True when the strategy has found no unmeasured programs.  ``default_pending``
    is True until the default schedule has been measured or is certain to be slower.
    """

    def __init__(
        self,
        task: Task,
        source: SketchSource,
        model: CostModel,
        trials: Trials,
        options: SearchOptions | None = None,
        listener: Listener = silent,
    ) -> None:
        self.task = task
        self.options = options or SearchOptions()
        self.history = TaskHistory()
        self.measuring_s = 0.0
        self.exhausted = False
        self.trials = trials
        self.strategy = self.options.strategy()
        self.context = Context(task, source, model, np.random.default_rng(self.options.seed))
        self._listener = listener
        self.default_pending = True
        self._fastest: Candidate | None = None
        self._fastest_s = inf
        if isinstance(self.options.transfer, Preceding):
            self.options.transfer.begin(model)
        self._seeds: list[Candidate] | None = None
        """Unmeasured candidates from records; None before these were read."""
        self._asked: Future[Pool] | None = None
        """The strategy's candidates for the next round, if it was asked for them ahead."""
        trials.define(task, {d.name: d.dag for d in source.definitions})

    def step(
        self,
        n: int,
        *,
        ahead: bool = False,
        beside: Callable[[], Future[Any] | None] | None = None,
    ) -> int:
        """Run one round of at most *n* trials; return how many were spent.

        If *ahead*, a strategy that can (:class:`Preparing`) prepares for the next round while this
        one is measured, unless this one includes the default schedule: whether all its candidates
        are measured shows only then.  Otherwise *beside* starts other work when building begins;
        the model does not change before it has ended.

        The first round of several trials ends with the default schedule, so that the result is
        never slower than that; it is skipped when it is certain to be slower.  If all earlier
        trials failed, or nothing else is left, a round of one trial measures it too.
        """
        before = self.history.trials
        if not self.history.rounds:
            self.trials.begin(self.task)
        with self.trials.computing(), profiled(Activity.SEARCH):
            picked = self._pick(n)
        failed = self.history.trials > 0 and self.history.best is None
        with_default = self.default_pending and (n > 1 or failed or not picked)
        held_back = picked[n - 1 :] if with_default else []
        if ahead and not with_default and isinstance(self.strategy, Preparing):
            prepare = partial(self.strategy.prepare, self.context, n)
            beside = partial(self.trials.beside, prepare)
        found = self._measure(picked[: len(picked) - len(held_back)], beside)
        if with_default:
            self.default_pending = False
            if not self._measured_default():
                found += self._measure(held_back)
        with self.trials.computing(), profiled(Activity.MODEL):
            self._tell(found)
        self.history.end_round()
        self._report(Phase.MEASURED, _correlation(found))
        return self.history.trials - before

    def ask_ahead(self, n: int) -> Future[Pool] | None:
        """Ask the strategy for the candidates of a round of *n* trials beside the next builds.

        None if it was asked already.
        """
        if self._asked is not None:
            return None
        self._asked = self.trials.beside(partial(self.strategy.ask, self.context, n))
        return self._asked

    def _pick(self, n: int) -> list[Candidate]:
        """Choose what to measure next, alternating between transfer source and strategy.

        Either may be wrong about a whole round: the model has seen no measurements yet, and
        schedules made for other shapes may not suit these.  The scores are those of today's model,
        or of an earlier one if the strategy was asked ahead.
        """
        if self._seeds is None:
            transfer = self.options.transfer
            hinted = self._hinted() if transfer.own else []
            first = transfer.first(self.context, self.trials.known)
            self._seeds = different([*hinted, *first])
        self._seeds = self.context.new(self._seeds)
        begun = self.history.trials
        seeds = self._seeds[: (begun + n) // 2 - begun // 2]
        seeds = scored_again(seeds, self.task, self.context.model)
        if len(seeds) == n:
            return seeds
        pool = self._pool(n - len(seeds))
        chosen = self.options.selector.pick(pool, n - len(seeds), self.context.rng)
        # A program that the selector made has no score of its own.
        if not {c.key for c in chosen} <= {c.key for c in (*pool.best, *pool.random)}:
            chosen = scored_again(chosen, self.task, self.context.model)
        new = self.context.new(chosen)
        one, other = (new, seeds) if begun % 2 == 0 else (seeds, new)
        picked = different(in_turns(one, other))
        if not picked:  # a round of one trial may have left all seeds for later
            picked = scored_again(self._seeds[:n], self.task, self.context.model)
        self.exhausted = not picked and not pool.more
        return picked

    def _pool(self, n: int) -> Pool:
        """The strategy's candidates for *n* trials: those asked for ahead, if they suffice."""
        asked, self._asked = self._asked, None
        pool = None if asked is None else self._left_of(asked.result())
        if pool is None or len(pool.candidates()) < n:
            pool = self.strategy.ask(self.context, n)
        pool = with_deviations(pool, self.task, self.context.model, self._fastest)
        return replace(pool, measured=self.context.measured)

    def _left_of(self, pool: Pool) -> Pool:
        """*pool* without what was measured since it was made, as selectors pick anything."""
        best, random = (tuple(self.context.new(part)) for part in (pool.best, pool.random))
        return replace(pool, best=best, random=random)

    def _hinted(self) -> list[Candidate]:
        """The programs that are fastest by results that do not count, where our rules make them."""
        known = self.trials.known
        hints = known.hints(self.task.key, _HINTS)
        found = resumed_trials(self.task, self.context.source, known.database, hints)
        return [candidate for _, candidate in sorted(found.candidates.items())]

    def resume(self) -> None:
        """Count this task's earlier trials, so that none is measured again.

        The transfer source decides whether the strategy and the model learn from them.  Samples
        that a :class:`Remembering` model needs and the database lacks are computed and stored.
        """
        known = self.trials.known
        records = known.records(self.task.key)
        if not records:
            return
        earlier = resumed_trials(self.task, self.context.source, known.database, records)
        self.context.note(earlier.candidates.values())
        self.history.resume([record.result for record in records], earlier.state)
        self.history.retimed = self.trials.is_retimed(self.task, self.history.finalists)
        self.default_pending = earlier.default is None
        if self.options.transfer.own:
            found = [(c, records[n].result) for n, c in sorted(earlier.candidates.items())]
            self._tell_strategy(found)
            self._recall(earlier)
        # A new random stream: the one that made these trials would sample them again.
        self.context.rng = np.random.default_rng([self.options.seed, len(records)])
        self._report(Phase.RESUMED)

    def _recall(self, earlier: ResumedTrials) -> None:
        """Train the model on this task's trials, recomputing samples that were not stored."""
        model, sampled = self.context.model, set[int]()
        model = model.model_of(self.task) if isinstance(model, Divided) else model
        if isinstance(model, Remembering):
            version, width = model.remembers
            began, store = self.trials.known.began, self.trials.database.samples
            sampled = store.known(self.task.key, version, began)
            model.recall(store.of([self.task.key], version, width, at=began))
        elif isinstance(data := getattr(model, "data", None), Dataset):
            # The model may be in use since an earlier run of this process.
            held = data.tasks.get(self.task.key)
            if held is not None and len(held.seconds) >= len(earlier.candidates):
                return
            data.tasks.pop(self.task.key, None)
        missing = [n for n, record in enumerate(earlier.records) if record.id not in sampled]
        if earlier.default is not None and earlier.default in missing:
            default = earlier.records[earlier.default]
            self._learn_default(default.result, default.id)
        known = [n for n in missing if n in earlier.candidates]
        found = [(earlier.candidates[n], earlier.records[n].result) for n in known]
        self._learn(found, [earlier.records[n].id for n in known])

    def retime(self) -> None:
        """Time the finalists again, alternating between them, and keep the resulting order."""
        finalists = self.history.finalists
        if len(finalists) < 2 or self.history.retimed:
            return
        again = self.trials.retime(self.task, finalists)
        if again:
            self.history.replace_finalists(again)
        self._report(Phase.RETIMED)

    def _measure(
        self,
        picked: Sequence[Candidate],
        beside: Callable[[], Future[Any] | None] | None = None,
    ) -> list[_Found]:
        """Measure the candidates; one whose program cannot be built counts as a failed trial.

        Leaves out those cut off by the time limit.  Waits for what *beside* starts.
        """
        states, unmade = self._states(picked)
        found = [(candidate, self._refused(candidate, error)) for candidate, error in unmade]
        started = None if beside is None else beside()
        try:
            ends = self._run(list(states))
        finally:  # also when the user stops the run
            with profiled(Activity.SEARCH):
                wait([] if started is None else [started])
        if started is not None:
            started.result()
        found += zip(states.values(), ends, strict=True)
        return [(c, end) for c, end in found if end.result.kind is not TrialKind.CUT]

    def _states(
        self, picked: Sequence[Candidate]
    ) -> tuple[dict[State, Candidate], list[tuple[Candidate, AnsorpyError]]]:
        """The candidates by their programs, and those without one with the reason.

        The cores are held once for all of them, as that locks a file for each core.
        """
        states: dict[State, Candidate] = {}
        unmade: list[tuple[Candidate, AnsorpyError]] = []
        with self.trials.computing(), profiled(Activity.SEARCH):
            for candidate in picked:
                self.context.note([candidate])
                try:
                    states[candidate.state()] = candidate
                except AnsorpyError as error:
                    unmade.append((candidate, error))
        return states, unmade

    def _refused(self, candidate: Candidate, error: AnsorpyError) -> TrialEnd:
        """The failed trial of a candidate whose program cannot be made because of *error*."""
        result = MeasureResult(TrialKind.LOWER_ERROR, reason=str(error))
        record = self.trials.refuse(self.task, candidate.unmade(), result)
        end = TrialEnd(candidate.sketch.state, result, record=record)
        self._count(end)
        return end

    def _run(self, states: Sequence[State]) -> list[TrialEnd]:
        """Measure *states*; a replay reads from the journal what that took."""
        began_s = self.trials.journal.seconds()
        ends = self.trials.run(self.task, states, self._count)
        self.measuring_s += self.trials.journal.seconds() - began_s
        return ends

    def _count(self, end: TrialEnd) -> None:
        self.history.add(end)
        self._report(Phase.SEARCHING, trial=end)

    def _measured_default(self) -> bool:
        """Measure the default schedule unless it is certain to be slower; True when measured."""
        best_s, default = self.history.best_s, State.initial(self.task.dag)
        if best_s is not None:
            if not hardware_of(self.task.target).default_may_win:
                return False
            [speed] = AnalyticModel().predict(self.task, Programs.of(default))
            if 1 / speed >= _HOPELESS * best_s:
                return False
        [end] = self._run([default])
        if end.result.kind is TrialKind.CUT:
            self.default_pending = True
            return True
        self._learn_default(end.result, _trial_of(end))
        return True

    def _learn_default(self, result: MeasureResult, trial: int | None) -> None:
        """Train the model on the default schedule; the sample is stored with its *trial*."""
        default = Programs.of(State.initial(self.task.dag))
        seconds = np.array([result.known_s])
        samples = self.context.model.learn(self.task, default, seconds)
        if samples is not None:
            self.trials.keep_samples([trial], samples)

    def _tell(self, found: Sequence[_Found]) -> None:
        """Pass results to the strategy, and train the model."""
        results = [(candidate, end.result) for candidate, end in found]
        self._tell_strategy(results)
        self._learn(results, [_trial_of(end) for _, end in found])
        self.context.model.refit()
        event = {"task": self.task.key, "trials": self.history.trials, "scores": _scores(found)}
        self.trials.journal.note("refit", event)

    def _tell_strategy(self, found: Results) -> None:
        """Pass results to the strategy, and remember the fastest candidate."""
        self.strategy.tell(found)
        for candidate, result in found:
            if result.ok and result.median_s < self._fastest_s:
                self._fastest, self._fastest_s = candidate, result.median_s

    def _learn(self, found: Results, trials: Sequence[int | None]) -> None:
        """Teach the model what was measured; store its samples with the *trials*."""
        seconds = np.array([result.known_s for _, result in found])
        for sketch, table, at in by_sketch([candidate for candidate, _ in found]):
            programs = Programs(sketch.space, table)
            samples = self.context.model.learn(self.task, programs, seconds[at])
            if samples is not None:
                self.trials.keep_samples([trials[n] for n in at], samples)

    def _report(
        self, phase: Phase, correlation: float | None = None, trial: TrialEnd | None = None
    ) -> None:
        history = self.history
        self._listener(
            Progress(
                phase,
                task=self.task.name,
                key=self.task.key,
                trials=history.trials,
                best_s=history.best_s,
                first_s=history.first_s,
                failures=dict(history.failures),
                correlation=correlation,
                trial=trial,
            )
        )


def _trial_of(end: TrialEnd) -> int | None:
    """The trial's number in the database; None if it has no record."""
    return None if end.record is None else end.record.id


def _scores(found: Sequence[_Found]) -> list[tuple[int, float]]:
    """The results of the programs that ran, by number, and the scores they were picked with."""
    return [
        (end.record.number, float(f"{candidate.score:.4g}"))
        for candidate, end in found
        if end.result.ok and end.record is not None
    ]


def _correlation(found: Sequence[_Found]) -> float | None:
    """Spearman's rank correlation of scores with speed, over the programs that ran."""
    timed = [(c.score, -end.result.median_s) for c, end in found if end.result.ok]
    if len(timed) < 3:
        return None
    scores, speeds = np.array(timed).T
    correlation = rank_correlation(scores, speeds)
    return None if np.isnan(correlation) else correlation
