"""Measure one case at one thread count: tune it, check every engine, time them in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import ansorpy as ap
from ansorpy.errors import AnsorpyError
from ansorpy.evaluation.bench.processes import Contender
from ansorpy.evaluation.bench.turns import Policy, compare
from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import structural_hash
from ansorpy.measure.probe.disturbance import CoreProbe
from ansorpy.measure.records.database import Database
from ansorpy.rules.algorithms.base import definitions
from ansorpy.rules.presets import preset_for
from ansorpy.runtime.kernel import Kernel
from ansorpy.target import Target
from ansorpy.tasks.budget import Effort
from benchmarks.common.cells import OURS
from benchmarks.common.compared import EngineTime, engine_times
from benchmarks.common.peak import Peak, measure_peak
from benchmarks.ops.case import Case
from benchmarks.ops.providers import PEERS, PROVIDERS
from benchmarks.ops.reference import Reference
from benchmarks.ops.result import Result

__all__ = ["OperatorSettings", "contender", "measure"]

# Cases take microseconds to milliseconds, so a short burst still has many calls.
POLICY = Policy(burst_s=0.15, untimed_s=0.05, rounds=(7, 15))


@dataclass(frozen=True)
class OperatorSettings:
    """What all cases of a run share; the engines' processes read the records in ``db``."""

    db: Path
    trials: int = 128
    effort: Effort = "full"
    seed: int = 0
    peers: Sequence[str] = PEERS
    policy: Policy = POLICY


def measure(
    case: Case, threads: int, settings: OperatorSettings, progress: Callable[[str], None]
) -> Result:
    """Tune *case* for *threads*, skipping trials the database already has, then compare."""
    failures: dict[str, str] = {}
    start, program, algorithm = monotonic(), "", ""
    try:
        program = _tuned(case, threads, settings).program
        algorithm = _algorithm(case, threads, settings.db)
    except AnsorpyError as error:
        failures[OURS] = error.message
    tuning_s = monotonic() - start
    progress(f"{case.name}: tuned for {threads} threads in {tuning_s:.1f} s")

    def left_out(name: str, error: AnsorpyError) -> None:
        failures[name] = error.message

    with TemporaryDirectory(prefix="ops-") as folder:
        reference = Path(folder, "reference.npz")
        Reference.of(case, settings.seed).save(reference)
        names = [name for name in (OURS, *settings.peers) if name not in failures]
        contenders = [contender(n, case, threads, settings, reference) for n in names]
        before = measure_peak(threads, case.bytes)
        timings = compare(
            contenders,
            settings.policy,
            left_out=left_out,
            is_disturbed=CoreProbe(threads).is_disturbed,
        )
        peak = before.or_better(measure_peak(threads, case.bytes))
    return result_of(
        case, threads, peak, engine_times(timings), failures=failures, tuning_s=tuning_s,
        program=program, algorithm=algorithm,
        trials=0 if settings.effort == "none" else settings.trials,
    )  # fmt: skip


def result_of(
    case: Case, threads: int, peak: Peak, engines: dict[str, EngineTime], **rest: Any
) -> Result:
    """Combine the engines' times with the limits of *peak* for *case*."""
    return Result(
        case=case.name,
        group=case.group,
        threads=threads,
        engines=engines,
        flops=case.dag_flops,
        bytes=case.bytes,
        peak_gflops=peak.flops * 1e-9,
        bandwidth_gbytes=peak.bandwidth * 1e-9,
        roofline_ms=peak.least_s(case.dag_flops, case.bytes) * 1e3,
        bound="compute" if peak.is_compute_bound(case.dag_flops, case.bytes) else "bytes",
        fork_join_ms=peak.fork_join_s * 1e3,
        **rest,
    )


def _tuned(case: Case, threads: int, settings: OperatorSettings) -> Kernel:
    """The kernel of the best program known after the settings' trials."""
    return ap.tune(
        case.tensors(),
        trials=settings.trials if settings.effort != "none" else None,
        effort=settings.effort,
        threads=threads,
        db=settings.db,
        seed=settings.seed,
    )


def _algorithm(case: Case, threads: int, db: Path) -> str:
    """``"direct"``, ``"winograd(4x4)"``, ...; empty if nothing is recorded."""
    task = Task(case.dag, Target.host(), threads)
    with Database(db) as database:
        best = database.best(task.key)
        used = database.checked(task.key) if best is None else [best]
        if not used:
            return ""
        found = structural_hash(database.definitions.get(used[0].definition))
    known = definitions(task.dag, preset_for(task.target).algorithms, task.target, task.precision)
    names = {structural_hash(definition.dag): definition.name for definition in known}
    return names.get(found, "another")


def contender(
    name: str, case: Case, threads: int, settings: OperatorSettings, reference: Path
) -> Contender:
    """The engine *name* for *case*, whose result is checked against *reference*."""
    provider = PROVIDERS[name]
    arguments: dict[str, Any] = {
        "case": case.name, "threads": threads, "seed": settings.seed, "reference": str(reference),
        **provider.arguments,
    }  # fmt: skip
    if name == OURS:
        arguments["db"] = str(settings.db)
    return Contender(name, provider.factory, arguments)
