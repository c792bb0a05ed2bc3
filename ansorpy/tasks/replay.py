"""Repeat a recorded run: its search with the recorded results, and the code of its best programs.

The same versions on the same kind of machine request the same programs in the same order, and
compile them to the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ansorpy.cost.saved import SavedModel
from ansorpy.errors import NoValidProgram, UsageError, VerificationFailed
from ansorpy.measure.build.built import Built
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.journal import TIMES, Diverged, ReplayEnded, ReplayJournal
from ansorpy.measure.records.rows import EventRow
from ansorpy.measure.run.interfaces import BuildService
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import Preset, preset_for
from ansorpy.search.replay import ReplayedTrials
from ansorpy.tasks.outcome import TaskOutcome
from ansorpy.tasks.parts import TUNING_PARTS, with_parts
from ansorpy.tasks.recorded_request import (
    RecordedPart,
    RunRequest,
    Setting,
    TaskRequest,
    adjusted,
    described,
    differences,
    place_of,
    read_request,
)
from ansorpy.tasks.tune import TuneOptions, WeightedTask, tune_with_trials

__all__ = ["Rerun", "TaskRerun", "rerun"]

T = TypeVar("T")


@dataclass(frozen=True)
class TaskRerun:
    """The best program of one task: digests of the code that was timed and of its rebuild.

    ``timed`` is that of the replayed run, empty if its runner named none; ``rebuilt`` is empty if
    the build fails.
    """

    name: str
    program: str
    median_s: float
    timed: str
    rebuilt: str

    @property
    def is_same(self) -> bool:
        """Whether the rebuilt code is byte-identical to the code that was timed."""
        return bool(self.timed) and self.timed == self.rebuilt


@dataclass(frozen=True)
class Rerun:
    """The result of replaying one search of a run.

    Args:
        run: The run's number in the database.
        followed: Number of its ``events`` that matched before the first difference.
        trials: Recorded results that the replay used.
        divergence: The first event that differs, as recorded and as replayed; empty if none does.
        ended: How the recorded search ended: ``complete``, ``stopped`` by the user, or ``killed``.
        tasks: The best program of each task that has one, if the run did not diverge.
    """

    run: int
    events: int
    followed: int
    trials: int
    divergence: str
    ended: str
    tasks: tuple[TaskRerun, ...] = ()

    def __repr__(self) -> str:
        found = "as recorded" if self.is_same else "different"
        return f"<Rerun of run {self.run}, {self.ended}: {self.trials} trials, {found}>"

    @property
    def is_same(self) -> bool:
        """Whether history and code match the recorded ones."""
        return not self.divergence and all(task.is_same for task in self.tasks)

    def demand(self) -> None:
        """Raise :class:`VerificationFailed` unless everything matches."""
        if self.divergence:
            raise VerificationFailed(
                f"run {self.run} differs, starting at event {self.followed + 1} of {self.events}:\n"
                f"{self.divergence}",
                hint="the same history is guaranteed only for the same versions and machine",
            )
        changed = ", ".join(task.name for task in self.tasks if not task.is_same)
        if changed:
            raise VerificationFailed(f"run {self.run}: different object code for {changed}")


def rerun(
    database: Database, run: int, builder: BuildService, *, options: TuneOptions | None = None
) -> Iterator[Rerun]:
    """Replay run number *run* of *database*, which is only read; yield one result for each search.

    *options* are needed for a run that used the caller's own parts.

    Raises:
        UsageError: There is no such run, it searched nothing, or it used rules or parts that have
            no registered name.
        ForeignFile: The run's events are damaged.
    """
    events = [event for event in database.sessions.events(run) if event.kind != TIMES]
    starts = [n for n, event in enumerate(events) if event.kind == "request"]
    if not starts:
        runs = [session.id for session in database.sessions.all()]
        said = f"run {run} recorded no search" if run in runs else f"there is no run {run}"
        searches = ", ".join(str(n) for n in runs if _searched(database, n)) or "none"
        raise UsageError(said, hint=f"runs that searched: {searches}")
    for first, end in zip(starts, [*starts[1:], len(events)], strict=True):
        yield _Replay(database, run, events[first:end], options).result(builder)


def _searched(database: Database, run: int) -> bool:
    return any(event.kind == "request" for event in database.sessions.events(run))


@dataclass
class _Replay:
    """One search of a run."""

    database: Database
    run: int
    events: Sequence[EventRow]
    given: TuneOptions | None

    def result(self, builder: BuildService) -> Rerun:
        request = read_request(self.events[0], self.database)
        options = self._options(request)
        journal = ReplayJournal(self.events)
        trials = ReplayedTrials(self.database, journal, request.began, self.run)
        entries = [
            WeightedTask(task, SketchSampler(task, self._rules(entry)), entry.weight)
            for entry in request.tasks
            for task in [entry.task(self.database)]
        ]
        divergence = ""
        outcomes: tuple[TaskOutcome, ...] = ()
        try:
            outcomes = tune_with_trials(entries, request.budget, trials, options=options).outcomes
        except Diverged as found:
            divergence = _with_names(str(found), entries)
        except (ReplayEnded, NoValidProgram):
            pass
        return Rerun(
            run=self.run,
            events=len(self.events),
            followed=journal.at,
            trials=trials.spent,
            divergence=divergence,
            ended=self._ended(),
            tasks=tuple(self._rebuilt(outcomes, builder)),
        )

    def _options(self, request: RunRequest) -> TuneOptions:
        """The run's options, restored from the recorded names and numbers unless given."""
        recorded = request.options
        options = self.given or adjusted(self._recorded_parts(recorded), recorded)
        other = differences(recorded, described(replace(options, networks=())))
        if other and self.given is None:
            raise UsageError(
                f"run {self.run} used other parts than are registered here: {', '.join(other)}",
                hint="--plugin FILE registers them; in Python, give options=",
            )
        if other:
            raise UsageError(
                f"the given parts differ from those of run {self.run}: {', '.join(other)}",
                hint="replay it from Python with the same options",
            )
        return replace(options, networks=request.networks)

    def _recorded_parts(self, recorded: RecordedPart) -> TuneOptions:
        """The default options, except for the registered or stored parts that *recorded* names."""
        parts = {}
        for name, part in TUNING_PARTS.items():
            setting = recorded.at(part.option)
            known = [part.of(registered) for registered in part.registry]
            parts[name] = _like(setting, [*known, *self._kept_model(setting)])
        return with_parts(TuneOptions(), parts)

    def _kept_model(self, recorded: Setting) -> Iterator[SavedModel]:
        """The trained model that the run was given, if any."""
        digest = recorded.settings.get("digest") if isinstance(recorded, RecordedPart) else None
        text = self.database.models.get(digest) if isinstance(digest, str) else None
        if text is not None:
            name = f"{self.database.path}: the cost model of run {self.run}"
            yield SavedModel.parse(text, name)

    def _rules(self, entry: TaskRequest) -> Preset:
        if not entry.preset:
            raise UsageError(f"run {self.run} used its caller's own rules, which are not recorded")
        return preset_for(entry.target, entry.preset)

    def _ended(self) -> str:
        kinds = {event.kind for event in self.events}
        return "stopped" if "stopped" in kinds else "complete" if "found" in kinds else "killed"

    def _rebuilt(
        self, outcomes: Sequence[TaskOutcome], builder: BuildService
    ) -> Iterator[TaskRerun]:
        for outcome in outcomes:
            if outcome.best is None:
                continue
            task, state = outcome.task, outcome.best.state
            [built] = builder.build(task, [state])
            yield TaskRerun(
                name=task.name,
                program=self.database.program(state),
                median_s=outcome.best.seconds,
                timed=outcome.best.result.object_digest,
                rebuilt=built.digest if isinstance(built, Built) else "",
            )


def _with_names(text: str, entries: Sequence[WeightedTask]) -> str:
    """*text* with tasks' keys, which list all CPU features, replaced by their names."""
    for entry in entries:
        text = text.replace(entry.task.key, entry.task.name)
    return text


def _like(recorded: Setting, choices: Sequence[T]) -> T:
    """The choice of the recorded class, with any numbers; the first choice if there is none."""
    place = recorded.place if isinstance(recorded, RecordedPart) else ""
    return next((choice for choice in choices if place_of(choice) == place), choices[0])
