"""Everything a page shows, as JSON-serializable values."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from ansorpy.evaluation.page.arena import arena_values
from ansorpy.evaluation.page.curves import called, network_curves
from ansorpy.evaluation.page.ranking import ranked_rounds
from ansorpy.evaluation.page.recorded_run import RecordedRun
from ansorpy.evaluation.page.results import BenchResult, VerifyResult
from ansorpy.evaluation.page.tasks import TaskFacts, task_facts
from ansorpy.measure.records.database import Database
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.target import Target
from ansorpy.version import __version__

__all__ = ["Extras", "facts_of"]


@dataclass(frozen=True)
class Extras:
    """What a page shows besides a run; what is None is left out.

    ``plan`` is the compiled network, of which the page draws the memory.
    """

    plan: ExecutionPlan | None = None
    bench: BenchResult | None = None
    verified: VerifyResult | None = None


def facts_of(run: RecordedRun, extras: Extras, database: Database) -> dict[str, Any]:
    """The facts of *run*, whose programs are in *database*, and of the *extras* shown with it."""
    best = run.best(database)
    best_s = [None if record is None else record.median_s for record in best]
    calls = [0.0] * len(run.tasks)
    networks = []
    for network, curve in zip(run.networks, network_curves(run), strict=True):
        mine = called(run, network, best_s)
        calls = [one + other for one, other in zip(calls, mine, strict=True)]
        networks.append({**asdict(curve), "best_s": curve.best_s})
    tasks = task_facts(run, calls, best, database)
    return {
        "title": _title(run, extras),
        "networks": networks,
        "tasks": [_task(task) for task in tasks],
        "rounds": [asdict(ranked) for ranked in ranked_rounds(run)],
        "run": _run(run),
        "machine": _machine(run.tasks[0].target, run.tasks[0].threads),
        "bench": None if extras.bench is None else extras.bench.model_dump(),
        "verified": None if extras.verified is None else extras.verified.model_dump(),
        "memory": None if extras.plan is None else _memory(extras.plan),
    }


def _title(run: RecordedRun, extras: Extras) -> str:
    """Names of the networks; of operators, those of the tasks."""
    named = [network.name for network in run.networks if network.name]
    if not named and extras.bench is not None:
        named = [extras.bench.model]
    if not named and len(run.tasks) > 1:
        return f"{len(run.tasks)} tasks"
    return ", ".join(named or [run.tasks[0].name])


def _task(task: TaskFacts) -> dict[str, Any]:
    limits = {"least_s": task.limits.least_s, "bound": task.limits.bound}
    return {**asdict(task), "limits": limits}


def _run(run: RecordedRun) -> dict[str, Any]:
    budget = run.request.budget
    return {
        "number": run.session.id,
        "started": time.strftime("%Y-%m-%d %H:%M", time.localtime(run.session.started_at)),
        "seconds": run.seconds,
        "tuned_s": max((m.at_s for m in run.measurements), default=0.0),
        "ended": run.session.reason,
        "seed": run.session.seed,
        "budget": {
            "trials": budget.trials,
            "trials_per_task": budget.trials_per_task,
            "time_limit_s": budget.time_limit_s,
        },
        "versions": {**run.session.versions, "report": __version__},
        "precision": run.tasks[0].precision,
    }


def _machine(target: Target, threads: int) -> dict[str, Any]:
    """The machine that the programs are for; rates are None where they were not measured."""
    rates = target.rates
    peak = None
    if rates is not None:
        lanes = target.vector_bits / 32
        peak = 2 * lanes * rates.vector_ops_per_cycle * rates.clock_hz * threads
    return {
        "target": target.name,
        "triple": target.triple,
        "cpu": target.cpu,
        "cores": target.cores,
        "threads": threads,
        "caches_bytes": [target.l1_bytes, target.l2_bytes, target.l3_bytes],
        "peak_flops": peak,
        "memory_bytes_per_s": None if rates is None else rates.dram_bytes_per_s,
        "cache_bytes_per_s": None if rates is None else rates.l3_bytes_per_s,
    }


def _memory(plan: ExecutionPlan) -> dict[str, Any]:
    return {
        "values": [asdict(value) for value in arena_values(plan)],
        "calls": [step.name for step in plan.steps],
        **plan.footprint.to_dict(),
    }
