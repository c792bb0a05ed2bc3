"""Tune an operator or a network with given parts, and keep how its best time fell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

from ansorpy.api.networks import NetworkSpec, open_networks
from ansorpy.api.request import Request
from ansorpy.api.tuner import open_tuner
from ansorpy.errors import AnsorpyError, UsageError
from ansorpy.evaluation.bench.processes import Contender
from ansorpy.evaluation.bench.turns import Policy, compare
from ansorpy.ir.task import Task
from ansorpy.measure.probe.disturbance import CoreProbe
from ansorpy.rules.presets import Preset
from ansorpy.search.events import Event, Progress
from ansorpy.tasks.objective import TunedNetwork
from benchmarks.common.cells import OURS
from benchmarks.networks import measure as networks
from benchmarks.ops import measure as operators
from benchmarks.ops.reference import Reference
from benchmarks.ops.suite import case_named, is_case
from benchmarks.study.outcomes import Value
from benchmarks.zoo.suite import Entry

__all__ = ["Limit", "Subject", "reached_s", "timed_in_turns", "tuned"]

_BURSTS = Policy(burst_s=0.03, untimed_s=0.02, rounds=(15, 31))
"""Many short bursts: on a virtual machine, times a twentieth of a second apart hardly correlate."""


@dataclass(frozen=True)
class Limit:
    """When a run of tuning ends; one of these is given."""

    seconds: float | None = None
    trials: int | None = None
    trials_per_task: int | None = None

    @property
    def text(self) -> str:
        """It in keys of jobs."""
        if self.seconds is not None:
            return f"{self.seconds:g}s"
        return f"{self.trials}t" if self.trials is not None else f"{self.trials_per_task}p"


@dataclass(frozen=True)
class Subject:
    """What is tuned: a case of ``benchmarks.ops``, or a network of ``benchmarks.networks``.

    Args:
        folder: Where the files of networks and the records are.
    """

    name: str
    threads: int
    folder: Path

    @property
    def is_operator(self) -> bool:
        return is_case(self.name)

    @property
    def path(self) -> Path:
        """The file of a network, written if it is missing."""
        return Entry.parse(self.name).file(0, self.folder / "networks")

    @property
    def reference(self) -> Path:
        """Where the reference of an operator is kept."""
        return self.folder / "references" / f"{self.name}.npz"

    def records(self, name: str) -> Path:
        """The database of the run called *name*."""
        words = "".join(c if c.isalnum() else "-" for c in name)
        return self.folder / "records" / f"{self.name}.{words}.db"

    def ours(self, name: str, db: Path) -> Contender:
        """The fastest program in *db*, to be timed as *name*."""
        if self.is_operator:
            case, settings = case_named(self.name), operators.OperatorSettings(db)
            found = operators.contender(OURS, case, self.threads, settings, self.reference)
        else:
            found = networks.contender(OURS, self.path, self.threads, db)
        return replace(found, name=name)


@dataclass
class _Curve:
    """Where the best time improved: seconds since the beginning, trials, milliseconds."""

    began_at: float = field(default_factory=monotonic)
    points: list[tuple[float, int, float]] = field(default_factory=list)
    trials: int = 0

    def __call__(self, event: Event) -> None:
        if not isinstance(event, Progress):
            return
        self.trials = max(self.trials, event.total_trials)
        if event.total_s is not None:
            ms = event.total_s * 1e3
            if not self.points or ms < self.points[-1][2]:
                at_s = round(monotonic() - self.began_at, 2)
                self.points.append((at_s, event.total_trials, ms))


def tuned(
    subject: Subject,
    parts: Mapping[str, str],
    limit: Limit,
    seed: int,
    name: str,
    preset: Preset | None = None,
) -> Value:
    """Tune *subject* from nothing; ``points`` are those of its curve.

    The records are kept for :func:`timed_in_turns`.  A network has a curve once all its tasks have
    been measured; until then, a compiled one has predicted programs for the others.

    Raises:
        UsageError: No program of an operator was measured.
    """
    db = subject.records(name)
    db.parent.mkdir(parents=True, exist_ok=True)
    for file in db.parent.glob(f"{db.name}*"):
        file.unlink()
    curve, chosen = _Curve(), dict[str, Any](parts)
    request = Request.of(
        network=not subject.is_operator, listener=curve, db=db, seed=seed,
        threads=subject.threads, time_limit=limit.seconds, trials=limit.trials,
        trials_per_task=limit.trials_per_task, **chosen,
    )  # fmt: skip
    request = replace(request, preset=preset)
    with open_tuner(request) as tuner:
        tuner.tune(*_weights(subject, request))
    if subject.is_operator and not curve.points:
        db.unlink()  # a final would time a program that was only predicted
        raise UsageError(f"{name} found no program in {limit.text}", hint="give it more time")
    return {
        "points": curve.points,
        "trials": curve.trials,
        "best_ms": curve.points[-1][2] if curve.points else inf,
        "records": db.name,
    }


def reached_s(points: Sequence[Sequence[float]], goal_ms: float) -> tuple[float, int] | None:
    """Seconds and trials after which a curve was at *goal_ms* or below; None if it never was."""
    for at_s, trials, ms in points:
        if ms <= goal_ms:
            return at_s, int(trials)
    return None


def timed_in_turns(
    subject: Subject, names: Mapping[str, Path], more: Sequence[Contender] = ()
) -> Value:
    """Time the best programs of several runs, by name of the run its records, and *more* engines.

    Each has a process of its own, and their bursts alternate.  ``median_ms`` has the medians, and
    ``failures`` the reasons of those that do not load.
    """
    failures: dict[str, str] = {}

    def left_out(name: str, error: AnsorpyError) -> None:
        failures[name] = error.message

    if subject.is_operator:
        subject.reference.parent.mkdir(parents=True, exist_ok=True)
        Reference.of(case_named(subject.name), 0).save(subject.reference)
    own = [subject.ours(name, db) for name, db in names.items() if db.exists()]
    failures |= {name: f"{db} is missing" for name, db in names.items() if not db.exists()}
    timings = compare(
        [*own, *more], _BURSTS, left_out=left_out,
        is_disturbed=CoreProbe(subject.threads).is_disturbed,
    )  # fmt: skip
    return {"median_ms": {n: t.median_ms for n, t in timings.items()}, "failures": failures}


def _weights(
    subject: Subject, request: Request
) -> tuple[Mapping[Task, float], Sequence[TunedNetwork]]:
    """The tasks of *subject* with their weights, and the networks that they are of."""
    if not subject.is_operator:
        opened = open_networks([NetworkSpec(subject.path)], request)
        return opened.task_weights, opened.tuned
    case = case_named(subject.name)
    return {Task(case.dag, request.target, request.threads, name=case.name): 1.0}, ()
