"""Running trials and recording them: committed before and after they run, logged in the journal."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from typing import TypeVar

from ansorpy.errors import ForeignFile
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.journal import TIMES, Journal, RecordingJournal
from ansorpy.measure.records.known_trials import KnownTrials
from ansorpy.measure.records.recording import measure_recorded
from ansorpy.measure.records.rows import Record, Scheduled
from ansorpy.measure.records.samples import Samples
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run.interfaces import Building, Keeping, Retimer, Runner, Sharing, Starting
from ansorpy.measure.trial_end import OnEnd, TrialEnd
from ansorpy.profiler import Span
from ansorpy.schedule.state import State
from ansorpy.search.history import Best

__all__ = ["MeasuredTrials", "Trials"]

T = TypeVar("T")

_AT_FAULT = frozenset({TrialKind.CRASH, TrialKind.RUN_ERROR, TrialKind.TIMEOUT})
"""How timing ends where a program is to blame that ran before."""


class Trials(ABC):
    """Everything that a run's searches measure and store; *journal* lists it in order.

    ``known`` holds the trials that the searches may use.
    """

    def __init__(self, database: Database, journal: Journal, known: KnownTrials) -> None:
        self.database = database
        self.journal = journal
        self.known = known

    def run(self, task: Task, states: Sequence[State], on_end: OnEnd) -> list[TrialEnd]:
        """Measure *states*; return how each ended, in order.

        *on_end* is called as soon as a trial of this run ends, except those CUT, and for each
        correct program that another tuner measured meanwhile.  If the user interrupts, the results
        up to then stay reported and committed.
        """
        ends = {}
        for state in states:
            record = self.known.lookup(task, state)
            if record is not None:
                ends[state] = TrialEnd(state, record.result, record=record, is_own=False)
        new = [state for state in states if state not in ends]
        numbers: list[int] = []

        def ended(end: TrialEnd) -> None:
            ends[end.state] = end
            if end.record is not None:
                numbers.append(end.record.number)
                self.known.add(end.record)
            if end.result.ok or (end.is_own and end.result.kind is not TrialKind.CUT):
                on_end(end)

        if new:
            self._note("ask", task, {"programs": self._programs(new)})
            try:
                self._measure(task, new, ended)
            except ForeignFile:
                raise  # the database is damaged: it can be neither written nor replayed
            except BaseException:
                self._note("tell", task, {"results": numbers})
                raise
            self._note("tell", task, {"results": numbers})
        return [ends[state] for state in states]

    def retime(self, task: Task, finalists: Sequence[Best]) -> list[Best]:
        """Time *finalists* again, alternating; return those that ran, with comparable times.

        Empty when their times cannot be compared.
        """
        states = [best.state for best in finalists]
        records = self._retime(task, finalists)
        numbers = [None if record is None else record.number for record in records]
        self._note("retime", task, {"programs": self._programs(states), "results": numbers})
        again = zip(states, records, strict=False)
        return [Best(state, record.result) for state, record in again if record is not None]

    def is_retimed(self, task: Task, finalists: Sequence[Best]) -> bool:
        """Whether an earlier run timed the best of *finalists* again after it found the others."""
        looked_up = (self.known.lookup(task, best.state) for best in finalists)
        found = [record for record in looked_up if record is not None]
        if not found or found[0].scale is None:
            return False
        return all(r.scale is not None or r.number < found[0].number for r in found)

    @abstractmethod
    def computing(self) -> AbstractContextManager[None]:
        """A context held while searching and training, but not while anything is measured."""

    @abstractmethod
    def beside(self, work: Callable[[], T]) -> Future[T]:
        """Have *work* computed beside the builds of the next trials, where that disturbs no timing.

        The caller waits for it before anything that it reads changes.
        """

    @abstractmethod
    def begin(self, task: Task) -> None:
        """Have the workers for *task* start, so that they are ready when it has candidates."""

    @abstractmethod
    def define(self, task: Task, definitions: Mapping[str, ComputeDAG]) -> None:
        """Store *task* and the names of the ways to compute it."""

    @abstractmethod
    def refuse(self, task: Task, program: Scheduled, result: MeasureResult) -> Record | None:
        """Store that *program* failed with *result* before there was anything to run."""

    @abstractmethod
    def keep_samples(self, trials: Sequence[int | None], samples: Samples) -> None:
        """Store *samples* with the trials of these numbers, skipping those without one."""

    @abstractmethod
    def keep_model(self, digest: str, text: str) -> None:
        """Store the trained model that the run starts with."""

    @abstractmethod
    def note_ending(self, reason: str) -> None:
        """Store why the run stopped measuring; an empty reason means that it continues."""

    @abstractmethod
    def note_times(self, spans: Sequence[Span]) -> None:
        """Store what the run did when, for its trace; *spans* are those since the last call."""

    @abstractmethod
    def _measure(self, task: Task, states: Sequence[State], on_end: OnEnd) -> None:
        """Measure *states*, none of which has a known result; call *on_end* for each."""

    @abstractmethod
    def _retime(self, task: Task, finalists: Sequence[Best]) -> list[Record | None]:
        """The new record of each finalist; None for one that failed, empty if none was compared."""

    def _note(self, kind: str, task: Task, body: dict[str, object]) -> None:
        self.journal.note(kind, {"task": task.key, **body})

    def _programs(self, states: Sequence[State]) -> list[str]:
        return [self.database.program(state) for state in states]


class MeasuredTrials(Trials):
    """Runs trials with *runner* and stores them in *database*."""

    def __init__(self, runner: Runner, database: Database, journal: Journal | None = None) -> None:
        super().__init__(database, journal or RecordingJournal(database), KnownTrials(database))
        self.runner = runner

    def computing(self) -> AbstractContextManager[None]:
        return self.runner.computing() if isinstance(self.runner, Sharing) else nullcontext()

    def beside(self, work: Callable[[], T]) -> Future[T]:
        held = ExitStack()
        held.enter_context(self.computing())  # here, where Ctrl-C and the deadline end the wait

        def computed() -> T:
            with held:
                return work()

        thread = ThreadPoolExecutor(1, thread_name_prefix="ansorpy-search")
        started = thread.submit(computed)
        thread.shutdown(wait=False)  # it ends with the work
        if isinstance(self.runner, Sharing):
            self.runner.time_after(started)
        return started

    def begin(self, task: Task) -> None:
        if isinstance(self.runner, Starting):
            self.runner.start(task.threads)

    def define(self, task: Task, definitions: Mapping[str, ComputeDAG]) -> None:
        self.database.add_task(task)
        self.database.definitions.add_variants(task.key, definitions)

    def refuse(self, task: Task, program: Scheduled, result: MeasureResult) -> Record | None:
        trial = self.database.start(task, program)
        return trial if isinstance(trial, Record) else self.database.complete(trial, result)

    def keep_samples(self, trials: Sequence[int | None], samples: Samples) -> None:
        kept = [(at, number) for at, number in enumerate(trials) if number is not None]
        if kept:
            self.database.samples.put([n for _, n in kept], samples.rows([at for at, _ in kept]))

    def keep_model(self, digest: str, text: str) -> None:
        self.database.models.put(digest, text)

    def note_ending(self, reason: str) -> None:
        self.database.sessions.note_ending(reason)

    def note_times(self, spans: Sequence[Span]) -> None:
        builds = self.runner.take_build_times() if isinstance(self.runner, Building) else []
        since = time.time() - time.perf_counter()  # of the clock that both read
        activities = [
            [span.activity.value, round(since + span.start, 6), round(since + span.end, 6)]
            for span in spans
        ]
        built = [[round(since + start, 6), round(since + end, 6)] for start, end in builds]
        if activities or built:
            self.database.sessions.log(TIMES, {"activities": activities, "builds": built})

    def _measure(self, task: Task, states: Sequence[State], on_end: OnEnd) -> None:
        measure_recorded(self.runner, self.database, task, states, on_end)

    def _retime(self, task: Task, finalists: Sequence[Best]) -> list[Record | None]:
        """Times taken in turns; the code of the program that is now the fastest is stored."""
        records = self._records_in_turns(task, finalists)
        best = self.database.best(task.key) if records else None
        if best is not None and isinstance(self.runner, Keeping):
            built = self.runner.built(best.object_digest)
            if built is not None:
                self.database.objects.put(built)
        return records

    def _records_in_turns(self, task: Task, finalists: Sequence[Best]) -> list[Record | None]:
        """The records of :meth:`_retime`; the failure of one that fails is recorded, too.

        A worker that dies or hangs does not say which program did that, so each is timed alone.  If
        none fails then, first times stand; also if all fail, as the machine is at fault then.
        """
        results = self._in_turns(task, finalists)
        if not any(result.kind in _AT_FAULT for result in results):
            return self._compared(task, finalists, results)
        failed = self._failed_alone(task, finalists)
        sound = [best for best in finalists if best.state not in failed]
        if not failed or not sound:
            return []
        for state, result in failed.items():
            self._retimed(task, state, result)
        again = self._compared(task, sound, self._in_turns(task, sound))
        records = again or [self.database.lookup(task, best.state) for best in sound]
        of_state = {best.state: record for best, record in zip(sound, records, strict=True)}
        return [of_state.get(best.state) for best in finalists]

    def _failed_alone(self, task: Task, finalists: Sequence[Best]) -> dict[State, MeasureResult]:
        """The results of the *finalists* that fail when nothing else is timed."""
        alone = ((best.state, self._in_turns(task, [best])) for best in finalists)
        return {s: r for s, results in alone for r in results if r.kind in _AT_FAULT}

    def _in_turns(self, task: Task, finalists: Sequence[Best]) -> list[MeasureResult]:
        """The results of timing *finalists* in turns; empty if the time limit cut one."""
        if not isinstance(self.runner, Retimer):
            return []
        results = self.runner.retime(task, [best.state for best in finalists])
        if results is None or any(result.kind is TrialKind.CUT for result in results):
            return []
        return results

    def _compared(
        self, task: Task, finalists: Sequence[Best], results: Sequence[MeasureResult]
    ) -> list[Record | None]:
        """The new records of *finalists* with these *results*; empty if none has a time.

        Only the ratios of the new times count, as the machine's clock drifts over minutes.  They
        are scaled so that the best one stays comparable with other trials.  A program that another
        version recorded may be built to other code than was compared and timed: then its first time
        stands.
        """
        if not results:
            return []
        timed = [(old, new) for old, new in zip(finalists, results, strict=True) if new.ok]
        kept = {o.state for o, new in timed if new.object_digest != o.result.object_digest}
        timed = [(old, new) for old, new in timed if old.state not in kept]
        if not timed:
            return []
        scale = min(old.seconds for old, _ in timed) / min(new.median_s for _, new in timed)
        again = {old.state: replace(old.result, seconds=new.seconds) for old, new in timed}
        return [
            self.database.lookup(task, best.state)
            if best.state in kept
            else self._retimed(task, best.state, again.get(best.state), scale)
            for best in finalists
        ]

    def _retimed(
        self, task: Task, state: State, result: MeasureResult | None, scale: float | None = None
    ) -> Record | None:
        record = self.database.lookup(task, state)
        if record is None or result is None:
            return None
        return self.database.complete(record, result, scale)
