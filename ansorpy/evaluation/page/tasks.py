"""What the page says of each task of a run: its times, bounds, trials, failures and program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from ansorpy.cost.analytic.limits import Limits
from ansorpy.cost.bound import least_seconds, limits_of
from ansorpy.evaluation.page.curves import Point, task_curve
from ansorpy.evaluation.page.recorded_run import Measurement, RecordedRun
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.ir.text.printer import text
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.rows import Record
from ansorpy.measure.result import TrialKind
from ansorpy.tasks.trial_plan import expected_shares

__all__ = ["FailureFacts", "ProgramFacts", "TaskFacts", "task_facts"]


@dataclass(frozen=True)
class ProgramFacts:
    """The fastest correct program of a task: its algorithm, its steps and its loops as text.

    ``max_error`` is its largest difference from the reference, relative to the largest value; None
    if the record has no finite one.
    """

    algorithm: str
    steps: str
    nest: str
    max_error: float | None


@dataclass(frozen=True)
class FailureFacts:
    """How many trials ended in one way, and the first full reason."""

    kind: str
    trials: int
    reason: str


@dataclass(frozen=True)
class TaskFacts:
    """One task; seconds are of one call.

    Args:
        label: Its name, made unique.
        calls: Its calls in all networks of the run, in the fastest ways to partition them.
        first_s: The first correct program that was measured.
        planned: Its planned share of the trials that the run made; ``got`` is what it got.
        earlier: Trials of earlier runs.
        slow: Trials that were stopped early because they were slower than the best.
    """

    label: str
    definition: str
    calls: float
    flops: float
    bytes: int
    first_s: float | None
    best_s: float | None
    limits: Limits
    planned: int
    got: int
    earlier: int
    slow: int
    failures: tuple[FailureFacts, ...]
    curve: tuple[Point, ...]
    program: ProgramFacts | None


def task_facts(
    run: RecordedRun, calls: Sequence[float], best: Sequence[Record | None], database: Database
) -> list[TaskFacts]:
    """The facts of each task, in order; *best* has its fastest correct program."""
    measured = [run.of(number) for number in range(len(run.tasks))]
    limits = [_limits(task, _definitions(task, database)) for task in run.tasks]
    planned = _planned(run, [one.least_s for one in limits], measured)
    labels = _labels([task.name for task in run.tasks])
    names = [database.definitions.variants(task.key) for task in run.tasks]
    found = []
    for number, task in enumerate(run.tasks):
        mine, record = measured[number], best[number]
        curve, first_s = task_curve(mine)
        trials = [m for m in mine if not m.is_again]
        got = sum(map(run.is_own, trials))
        found.append(
            TaskFacts(
                label=labels[number],
                definition=text(task.dag),
                calls=calls[number],
                flops=task.flops,
                bytes=task.bytes,
                first_s=first_s,
                best_s=None if record is None else record.median_s,
                limits=limits[number],
                planned=planned[number],
                got=got,
                earlier=len(trials) - got,
                slow=sum(m.record.kind is TrialKind.SLOW for m in trials),
                failures=_failures(trials),
                curve=tuple(curve),
                program=None if record is None else _program(record, names[number], database),
            )
        )
    return found


def _definitions(task: Task, database: Database) -> list[ComputeDAG]:
    """The recorded definitions of *task*, which are equivalent; its own at least."""
    recorded = database.definitions.variants(task.key)
    return [database.definitions.get(identifier) for identifier in recorded] or [task.dag]


def _limits(task: Task, ways: Sequence[ComputeDAG]) -> Limits:
    """The limits of the definition with the lowest bound, in one kernel on a GPU."""
    fastest = min(ways, key=lambda dag: least_seconds(task, dag))
    return limits_of(task, fastest, kernels=1)


def _planned(
    run: RecordedRun, least_s: Sequence[float], measured: Sequence[Sequence[Measurement]]
) -> list[int]:
    """The trials that each task would have got by its share of the time that was expected."""
    weights = [entry.weight for entry in run.request.tasks]
    known = run.request.began.results
    best_s = [_fastest_s(m.record for m in mine if m.record.number <= known) for mine in measured]
    shares = expected_shares(weights, least_s, best_s)
    made = sum(run.is_own(m) and not m.is_again for m in run.measurements)
    return [round(share * made) for share in shares]


def _fastest_s(records: Iterable[Record]) -> float | None:
    """Seconds of the fastest correct program; None if there is none."""
    return min((r.median_s for r in records if r.ok and r.median_s is not None), default=None)


def _failures(trials: Sequence[Measurement]) -> tuple[FailureFacts, ...]:
    """The failures of *trials* by kind, the most frequent first; SLOW is not a failure."""
    reasons: dict[TrialKind, str] = {}
    kinds: Counter[TrialKind] = Counter()
    for record in (m.record for m in trials):
        if record.kind not in (TrialKind.OK, TrialKind.SLOW):
            kinds[record.kind] += 1
            reasons[record.kind] = reasons.get(record.kind) or record.reason
    return tuple(FailureFacts(kind.value, n, reasons[kind]) for kind, n in kinds.most_common())


def _program(record: Record, algorithms: dict[str, str], database: Database) -> ProgramFacts | None:
    """The program of *record*; None if its schedule cannot be read back."""
    state = database.state(record)
    if state is None:
        return None
    algorithm = algorithms.get(record.definition, "")
    error = record.result.max_error
    return ProgramFacts(
        algorithm, str(state.history), state.text(), error if isfinite(error) else None
    )


def _labels(names: Sequence[str]) -> list[str]:
    """*names*, those that several tasks have with the tasks' numbers, as ``show`` lists them."""
    often = Counter(names)
    return [name if often[name] == 1 else f"{name} (#{n})" for n, name in enumerate(names)]
