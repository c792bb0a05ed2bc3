"""Tune the tasks of a request, and choose a program for each: a database and machines in use."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path

from ansorpy.api.display.shown import say
from ansorpy.api.request import Request
from ansorpy.api.stoppable_runner import StoppableRunner
from ansorpy.arrays import Floats
from ansorpy.config import CACHE, DB, database_or_default
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.protocol import CostModel
from ansorpy.errors import ForeignFile, LoweringError, NoValidProgram
from ansorpy.ir.prove import Proof
from ansorpy.ir.symbols import Dim
from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.machines import LOCAL, open_machines
from ansorpy.measure.probe.calibrate import calibrated
from ansorpy.measure.proofs.prover import Prover
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.journal import RecordingJournal
from ansorpy.measure.records.recording import measure_recorded
from ansorpy.measure.records.sessions import warn_of_writers
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run.interfaces import Machines
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.measure.versions import versions
from ansorpy.profiler import Activity, profiled
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.rules.presets import preset_for
from ansorpy.schedule.space import Table
from ansorpy.schedule.state import State
from ansorpy.search.events import Phase, Progress
from ansorpy.search.history import Best
from ansorpy.search.population import score
from ansorpy.search.strategies.evolution import PredictOptions
from ansorpy.target import Target
from ansorpy.tasks.objective import TunedNetwork
from ansorpy.tasks.outcome import Tuning
from ansorpy.tasks.predict import predicted_seconds
from ansorpy.tasks.predict_build import Made, Making
from ansorpy.tasks.predict_many import predicted_of_all
from ansorpy.tasks.trial_plan import TrialPlan, before, plan
from ansorpy.tasks.tune import WeightedTask, tune_tasks

__all__ = ["Chosen", "Tuner", "open_tuner"]

_LOG = logging.getLogger(__name__)
_HINTS = 4
"""How many programs that others recorded are tried before predicted ones."""


def _unreported(tuning: Tuning) -> None:
    """The default of ``report`` in :meth:`Tuner.tune`, which reports nothing."""


@dataclass(frozen=True)
class Chosen:
    """The program chosen for a task, which is not refuted.

    Args:
        states: Its schedule; if the task has a dimension, one for each part of its sizes.
        median_s: ``None`` if it was never timed.
        proofs: That of each schedule.
        ranges: The sizes of the dimension for which each schedule is, if there are several.
    """

    task: Task
    states: tuple[State, ...]
    built: Built
    median_s: float | None
    proofs: tuple[Proof, ...]
    ranges: tuple[Dim, ...] = ()

    @property
    def state(self) -> State:
        """The only schedule."""
        [state] = self.states
        return state


@dataclass
class Tuner:
    """One request in progress, with its database and runner; its clock starts at ``began_at``."""

    request: Request
    database: Database
    runner: Machines
    prover: Prover
    began_at: float = field(default_factory=time.monotonic)
    _tuned: dict[str, Best] = field(default_factory=dict, init=False, repr=False)
    """The best programs that :meth:`tune` found, by task."""
    _predicted: dict[str, Sequence[State]] = field(default_factory=dict, init=False, repr=False)
    _made: dict[str, tuple[State, Made]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def target(self) -> Target:
        """The request's target with this machine's rates, which are measured if none are stored.

        They are not measured if other machines do the timing.
        """
        target = self.request.target
        if self.request.workers != LOCAL:
            return target
        with profiled(Activity.CALIBRATE):
            return calibrated(target)

    def plan(self, weights: Mapping[Task, float]) -> TrialPlan | None:
        """The plan of :meth:`tune`; ``None`` if the request allows no measuring."""
        if self.request.budget is None:
            return None
        tasks = {self._on_machine(task): weight for task, weight in weights.items()}
        return plan(tasks, self.request.budget, before(self.database, tasks), self.request.preset)

    def tune(
        self,
        weights: Mapping[Task, float],
        networks: Sequence[TunedNetwork] = (),
        report: Callable[[Tuning], None] = _unreported,
        *,
        share: float = 1.0,
    ) -> Tuning | None:
        """Measure programs of the tasks (with their weights) until the budget is spent.

        The database receives every trial, and *report* the result.

        Args:
            networks: Those that the objective refers to; empty: one network with these weights.
            share: How much of the time limit counts.

        Returns:
            The result; ``None`` if the request allows no measuring.

        Raises:
            NoValidProgram: No trial of some task gave a correct program.
            KeyboardInterrupt: The user stopped the run; what it found is in the database.
        """
        budget = self.request.budget
        if budget is None:
            return None
        if budget.time_limit_s is not None:
            budget = replace(budget, time_limit_s=share * budget.time_limit_s)
        entries = [
            WeightedTask(self._on_machine(task), self._source(task), weight)
            for task, weight in weights.items()
        ]
        warn_of_writers(self.request.db, self.database.sessions.others())
        runner = StoppableRunner(self.runner, self.request.stop)
        options = self.request.parts.tuning(self.request.seed, self.request.target)
        tuning = tune_tasks(
            entries,
            budget,
            runner,
            self.database,
            options=replace(options, networks=tuple(networks), ahead=self._leaves_cores_free),
            listener=self.request.listener,
            journal=RecordingJournal(self.database, self.began_at),
        )
        self._tuned |= {o.task.key: o.best for o in tuning.outcomes if o.best is not None}
        report(tuning)
        if tuning.interrupted:
            raise KeyboardInterrupt
        return tuning

    @property
    def _leaves_cores_free(self) -> bool:
        """Whether what is timed cannot be disturbed by computing here: it runs on GPUs, or on
        machines of another kind."""
        target = self.request.target
        return bool(target.gpus()) or not target.runs_on_host()

    @profiled(Activity.ASSEMBLE)
    def choose(self, tasks: Sequence[Task]) -> list[Chosen]:
        """The best known program of each task, or the one predicted best if there is none."""
        chosen = {t.key: known for t in tasks if (known := self._best_unrefuted(t)) is not None}
        unknown = [task for task in tasks if task.key not in chosen]
        predicted = dict(self._predictions(unknown, self._making))
        for task in unknown:
            self.request.stop()
            chosen[task.key] = self._first_correct(task, [*self._hinted(task), *predicted[task]])
        return [chosen[task.key] for task in tasks]

    def best(self, task: Task) -> Best | None:
        """The fastest program that :meth:`tune` found, or else a recorded one; None if missing."""
        if task.key in self._tuned:
            return self._tuned[task.key]
        record = self.database.best(task.key)
        state = None if record is None else self.database.state(record)
        return None if record is None or state is None else Best(state, record.result)

    def recorded_s(self, task: Task) -> float | None:
        """Seconds of the best known program of *task*; None if there is none."""
        best = self.best(task)
        return None if best is None else best.seconds

    @profiled(Activity.ASSEMBLE)
    def predicted_s(self, tasks: Sequence[Task]) -> dict[str, float]:
        """Predicted seconds of the program predicted best for each of *tasks*, by key."""
        return {
            task.key: predicted_seconds(self._on_machine(task), states[0])
            for task, states in self._predictions(tasks, Making.NOTHING)
        }

    def scores(self, task: Task, sketch: PlacedSketch, table: Table) -> Floats:
        """The analytic model's scores of the rows of *table*: programs per second."""
        return score(self._on_machine(task), AnalyticModel(), sketch, table).scores

    def predicted(self, task: Task, states: Sequence[State]) -> list[float]:
        """Seconds that the analytic model predicts for each of *states*, programs of *task*."""
        machine = self._on_machine(task)
        return [predicted_seconds(machine, state) for state in states]

    @property
    def _making(self) -> Making:
        """What is made of a predicted program where it was predicted."""
        is_here = self.request.can_time and isinstance(self.runner, LocalRunner)
        return Making.CHECKED_CODE if is_here else Making.CODE

    def _predictions(
        self, tasks: Sequence[Task], making: Making
    ) -> Iterator[tuple[Task, Sequence[State]]]:
        """Yield *tasks* with their predicted programs as these are ready; results are kept."""
        known = self._predicted
        done = known if making is Making.NOTHING else self._made
        yield from ((task, known[task.key]) for task in tasks if task.key in done)
        fresh = [task for task in tasks if task.key not in done]
        everyone = predicted_of_all(
            [self._on_machine(task) for task in fresh],
            preset=self.request.preset,
            model=self._model,
            options=self._predict_options,
            making=making,
            known={n: known[task.key] for n, task in enumerate(fresh) if task.key in known},
        )
        for count, (number, states, made) in enumerate(everyone, 1):
            self.request.stop()
            task = fresh[number]
            known[task.key] = states
            if making is not Making.NOTHING:
                self._keep(task, states[0], made)
                self.request.listener(
                    Progress(Phase.PICKED, task.name, total_trials=count, trial_limit=len(fresh))
                )
            yield task, states

    def _keep(self, task: Task, state: State, made: Made) -> None:
        """Keep what was *made* of *state*, the program predicted fastest for *task*."""
        self._made[task.key] = state, made
        if made.proof is not None:
            self.prover.remember(state, made.proof)
        if made.built is not None and isinstance(self.runner, LocalRunner):
            self.runner.remember(task, state, made.built)

    def _best_unrefuted(self, task: Task) -> Chosen | None:
        """The best known program of *task* that is not refuted; None if there is none."""
        for best in self._known_programs(task):
            proof = self.proof(task, best.state)
            if not proof.refuted:
                return self.assembled(task, best, proof)
            self._tuned.pop(task.key, None)
        return None

    def _known_programs(self, task: Task) -> Iterator[Best]:
        """Yield the best program of *task*, the others that were timed, and those only checked."""
        self.database.definitions.keep(task.dag)
        best = self.best(task)
        if best is not None:
            yield best
        for record in (*self.database.fastest(task.key, -1), *self.database.checked(task.key)):
            state = self.database.state(record)
            if state is not None:
                yield Best(state, record.result)

    def _hinted(self, task: Task) -> list[State]:
        """Programs recorded by others for *task*, if our rules derive their definitions."""
        hints = self.database.hints(task.key, _HINTS)
        if not hints:
            return []
        definitions = {
            self.database.definitions.identify(d.dag): d.dag for d in self._source(task).definitions
        }
        states = (
            self.database.state(hint, definitions[hint.definition])
            for hint in hints if hint.definition in definitions
        )  # fmt: skip
        return [state for state in states if state is not None]

    def assembled(self, task: Task, best: Best, proof: Proof) -> Chosen:
        """A recorded program with the code that was timed, or rebuilt code if that is gone."""
        built = self.runner.built(best.result.object_digest)
        built = built or self.database.objects.get(best.result.object_digest)
        built = built or self._build(task, best.state)
        return Chosen(task, (best.state,), built, best.timed_s, (proof,))

    def kept(self, tasks: Sequence[Task]) -> list[Chosen] | None:
        """The best known program of each task; None if a task has none."""
        found = [chosen for task in tasks if (chosen := self._best_unrefuted(task)) is not None]
        return found if len(found) == len(tasks) else None

    def proof(self, task: Task, state: State) -> Proof:
        """The proof by isl for *state*; a program that isl refutes is recorded as such."""
        proof = self.prover.prove(state)
        if proof.refuted:
            self.refute([task], state, proof.refuted[0].message)
        return proof

    def refute(self, tasks: Sequence[Task], state: State, reason: str) -> None:
        """Record *state*, a program of *tasks*, as refuted, with a warning if that is new."""
        known = [self.database.lookup(task, state) for task in tasks]
        new = [
            task for task, record in zip(tasks, known, strict=True)
            if record is None or record.kind is not TrialKind.REFUTED
        ]  # fmt: skip
        if new:
            _LOG.warning("%s: skipping a program that is refuted: %s", new[0].name, reason)
        for task in new:
            trial = self.database.start(task, state)
            self.database.complete(trial, MeasureResult(TrialKind.REFUTED, reason=reason))

    def predicted_directly(self, task: Task) -> Chosen:
        """A program that computes *task* by its own definition, even if others are faster."""
        [(_, states, made)] = predicted_of_all(
            [self._on_machine(task)],
            preset=replace(self.request.preset or preset_for(task.target), algorithms=()),
            model=self._model,
            options=self._predict_options,
            making=self._making,
        )
        self._keep(task, states[0], made)
        return self._first_correct(task, states, is_alone=True)

    def _first_correct(
        self, task: Task, states: Sequence[State], *, is_alone: bool = False
    ) -> Chosen:
        """The first of *states* that is not refuted, builds and computes the correct result.

        *is_alone*: accept a program even if much faster ones are known.
        """
        problems = []
        for state in states:
            proof = self.proof(task, state)
            if proof.refuted:
                problems.append(f"{TrialKind.REFUTED.value}: {proof.refuted[0].message}")
                continue
            can_time = self.request.can_time
            code = self._checked_code(task, state) if can_time else self._build(task, state)
            if code is not None:
                return Chosen(task, (state,), code, None, (proof,))
            [result] = measure_recorded(self.runner, self.database, task, [state], in_full=is_alone)
            # A program recorded as slow was correct, and slowness does not matter here.
            if result.ok or (is_alone and result.kind is TrialKind.SLOW):
                built = self.runner.built(result.object_digest)
                built = built or self._build(task, state)
                return Chosen(task, (state,), built, result.median_s, (proof,))
            problems.append(f"{result.kind.value}: {result.reason}")
        said = dict.fromkeys(problems)
        raise NoValidProgram("\n".join((f"{task.name}: no program is correct", *said)))

    def _checked_code(self, task: Task, state: State) -> Built | None:
        """The code of *state*, recorded as checked; None if it was not, or was tried before."""
        first, made = self._made.get(task.key, (None, Made()))
        is_new = first is state and self.database.lookup(task, state) is None
        if not is_new or made.built is None or made.checked is None:
            return None
        self.database.objects.put(made.built)
        self.database.keep_checked(task, state, made.checked)
        return made.built

    @property
    def _model(self) -> CostModel | None:
        """The cost model for predictions; None stands for what ``_predict_options`` says."""
        parts = self.request.parts
        return None if parts.choices["cost_model"] in ("boosted", "analytic") else parts.model()

    @property
    def _predict_options(self) -> PredictOptions:
        is_learned = self.request.parts.choices["cost_model"] != "analytic"
        return PredictOptions(seed=self.request.seed, pretrained=is_learned)

    def _on_machine(self, task: Task) -> Task:
        """The same task, with a target that has this machine's measured rates."""
        return replace(task, target=self.target)

    def _source(self, task: Task) -> SketchSampler:
        return SketchSampler(task, self.request.preset)

    def _build(self, task: Task, state: State) -> Built:
        [built] = self.runner.build(task, [state])
        if isinstance(built, MeasureResult):
            raise LoweringError(f"{task.name}: the chosen program does not build: {built.reason}")
        return built


@contextmanager
def open_tuner(request: Request) -> Iterator[Tuner]:
    """Open the request's database and a runner, and close both at the end."""
    with ExitStack() as stack:
        if request.db == database_or_default(None):
            _make_folder(request.db.parent)
            if DB.get() is None and not request.is_quiet:
                _tell_once(f"records: {request.db}")
        database = stack.enter_context(Database(request.db, seed=request.seed, versions=versions()))
        options = MeasureOptions(seed=request.seed, policy=request.parts.policy())
        runner = stack.enter_context(open_machines(request.workers, options, request.target))
        prover = stack.enter_context(Prover(database))
        yield Tuner(request, database, runner, prover)


def _make_folder(folder: Path) -> None:
    """Make the *folder* of the default database.

    Raises:
        ForeignFile: It cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ForeignFile(
            f"cannot make {folder}, the folder of the default database: {error.strerror}",
            hint=f"name a file with --db (db= in Python), or a folder with {CACHE.name}",
        ) from None


@cache
def _tell_once(line: str) -> None:
    say(line)
