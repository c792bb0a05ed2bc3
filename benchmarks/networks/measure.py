"""Measure one network at one thread count: tune, check, compare, and compute the roofline."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic

import ansorpy as ap
from ansorpy.api.alternatives import fastest
from ansorpy.api.evaluate.verify import verify
from ansorpy.api.project import Project, open_project
from ansorpy.api.request import Request
from ansorpy.errors import AnsorpyError
from ansorpy.evaluation.bench.processes import Contender
from ansorpy.evaluation.bench.turns import compare
from ansorpy.evaluation.engines.names import PEERS
from ansorpy.ir.task import Task
from ansorpy.measure.probe.disturbance import CoreProbe
from ansorpy.measure.records.database import Database
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.tasks.budget import Effort
from benchmarks.common.cells import OURS
from benchmarks.common.compared import code_version, engine_times, this_machine
from benchmarks.common.peak import Peak, measure_peak
from benchmarks.networks.result import NetworkResult
from benchmarks.zoo.suite import Entry

__all__ = [
    "NetworkSettings", "Tuned", "contender", "kernels_s", "measure", "roofline_s", "tuning_options",
]  # fmt: skip


@dataclass(frozen=True)
class Tuned:
    """How long a network is tuned; limits given here replace those of the effort."""

    effort: Effort = "quick"
    trials_per_task: int | None = None
    time_limit_s: float | None = None

    @staticmethod
    def asked(options: argparse.Namespace) -> Tuned:
        """What the options of :func:`tuning_options` say."""
        limit = None if options.minutes is None else 60 * options.minutes
        return Tuned(options.effort, options.trials_per_task, limit)

    @property
    def text(self) -> str:
        """Description for tables and file names."""
        said = [] if self.time_limit_s is None else [f"{self.time_limit_s / 60:g} min"]
        if self.trials_per_task is not None:
            said.append(f"{self.trials_per_task} trials a task")
        return ", ".join(said) or self.effort


def tuning_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how long a network is tuned."""
    parser.add_argument("--effort", choices=("none", "quick", "full"), default="quick")
    parser.add_argument("--trials-per-task", type=int)
    parser.add_argument("--minutes", type=float, help="to tune a network, instead of --effort")


@dataclass(frozen=True)
class NetworkSettings:
    """What all networks of a run share."""

    db: Path
    folder: Path
    seed: int = 0
    peers: Sequence[str] = PEERS


def measure(
    entry: Entry,
    threads: int,
    tuned: Tuned,
    settings: NetworkSettings,
    progress: Callable[[str], None],
    effort: str,
) -> NetworkResult:
    """Tune *entry* according to *tuned*, check its outputs, then time it and the peers.

    If ours does not compile or its outputs differ from onnxruntime's, the reason is recorded and
    only the peers are timed.  *effort* describes the tuning in the result.
    """
    path = entry.file(settings.seed, settings.folder)
    request = Request.of(effort="none", threads=threads, seed=settings.seed)
    failures: dict[str, str] = {}
    start, error = monotonic(), None
    try:
        _compile(path, threads, tuned, settings)
        progress(f"{entry.label}: compiled in {monotonic() - start:.0f} s")
        error = _checked(path, threads, settings)
    except AnsorpyError as reason:
        failures[OURS] = reason.message
    tuning_s = monotonic() - start

    def left_out(name: str, reason: AnsorpyError) -> None:
        failures[name] = reason.message

    project = None if OURS in failures else _as_compiled(open_project(path, request), settings.db)
    size = 0 if project is None else project.touched_bytes
    before = measure_peak(threads, size)
    names = [name for name in (OURS, *settings.peers) if name not in failures]
    contenders = [contender(name, path, threads, settings.db) for name in names]
    is_disturbed = CoreProbe(threads).is_disturbed
    timings = compare(contenders, left_out=left_out, is_disturbed=is_disturbed)
    sum_s = None if project is None else kernels_s(project, settings)
    peak = before.or_better(measure_peak(threads, size))
    return NetworkResult(
        network=entry.name,
        batch=entry.batch,
        threads=threads,
        effort=effort,
        seed=settings.seed,
        machine=this_machine(),
        code=code_version(),
        engines=engine_times(timings),
        failures=failures,
        error=error,
        roofline_ms=0.0 if project is None else roofline_s(project, peak) * 1e3,
        peak_gflops=peak.flops * 1e-9,
        bandwidth_gbytes=peak.bandwidth * 1e-9,
        kernels=0 if project is None else len(project.network.calls),
        tasks=0 if project is None else len(project.tasks),
        kernels_ms=None if sum_s is None else sum_s * 1e3,
        tuning_s=tuning_s,
    )


def roofline_s(project: Project, peak: Peak) -> float:
    """Sum over all kernels of the time to compute or to move the data once, whichever is longer."""
    return sum(
        project.weights[task.key] * peak.least_s(task.flops, task.bytes) for task in project.tasks
    )


def _compile(path: Path, threads: int, tuned: Tuned, settings: NetworkSettings) -> None:
    ap.compile(
        path,
        effort=tuned.effort,
        trials_per_task=tuned.trials_per_task,
        time_limit=tuned.time_limit_s,
        threads=threads,
        db=settings.db,
        seed=settings.seed,
    )


def _checked(path: Path, threads: int, settings: NetworkSettings) -> float:
    """The largest error of any output; raises if it exceeds the tolerance."""
    found = verify(path, db=settings.db, threads=threads, seed=settings.seed)
    found.demand()
    return max(check.error for check in found.checks)


def contender(name: str, path: Path, threads: int, db: Path) -> Contender:
    """The engine *name* on the network in *path*; ours takes the fastest programs in *db*."""
    if name == OURS:
        records = {"db": str(db), "threads": threads}
        ours = {"path": str(path), "arguments": records}
        return Contender(name, "ansorpy.api.evaluate.engine:Ours", ours)
    arguments = {"name": name, "path": str(path), "threads": threads}
    return Contender(name, "ansorpy.evaluation.engines.protocol:open_peer", arguments)


def _as_compiled(project: Project, db: Path) -> Project:
    """*project* partitioned into the alternatives that are fastest according to the records."""
    with Database(db) as database:
        return fastest(project, partial(_best_s, database))


def _best_s(database: Database, task: Task) -> float | None:
    record = database.best(task.key)
    return None if record is None else record.median_s


def kernels_s(project: Project, settings: NetworkSettings) -> float | None:
    """Sum of all kernels' times, each times its number of calls.

    They are measured again, since the machine's clock has changed since they were tuned.  None if
    a kernel has no record, or does not run.
    """
    total = 0.0
    options = MeasureOptions(seed=settings.seed)
    with Database(settings.db) as database, LocalRunner(options) as runner:
        for task in project.tasks:
            record = database.best(task.key)
            state = None if record is None else database.state(record)
            if state is None:
                return None
            [result] = runner.measure(task, [state], incumbent_s=None)
            if not result.ok:
                return None
            total += project.weights[task.key] * result.median_s
    return total
