"""``ansorpy tune``: search and keep the records, for later ``compile`` and ``export``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ansorpy.cli.options import (
    DEFAULT_DB,
    Baseline,
    Bound,
    CostModelName,
    Dim,
    Effort,
    EffortOption,
    MeasureName,
    Memory,
    ModelFiles,
    NetworkWeight,
    ObjectiveName,
    Plugins,
    Precision,
    PrecisionOption,
    Records,
    SchedulerName,
    Seed,
    SelectorName,
    Shape,
    StrategyName,
    TargetName,
    Threads,
    TimeLimit,
    TransferName,
    Trials,
    TrialsPerTask,
    Workers,
)

if TYPE_CHECKING:
    from ansorpy.api.several import Finished
    from ansorpy.cli.lookup import Lookup

__all__ = ["tune"]


def tune(
    models: ModelFiles,
    objective: ObjectiveName = "weighted_sum",
    bound: Bound = None,
    baseline: Baseline = None,
    weight: NetworkWeight = None,
    effort: EffortOption = Effort.quick,
    trials: Trials = None,
    trials_per_task: TrialsPerTask = None,
    time_limit: TimeLimit = None,
    db: Records = DEFAULT_DB,
    target: TargetName = "host",
    threads: Threads = None,
    dim: Dim = None,
    shape: Shape = None,
    memory: Memory = None,
    precision: PrecisionOption = Precision.default,
    workers: Workers = "local",
    strategy: StrategyName = "evolution",
    selector: SelectorName = "epsilon_greedy",
    cost_model: CostModelName = "boosted",
    scheduler: SchedulerName = "gradient",
    transfer: TransferName = "both",
    measure: MeasureName = "fixed",
    plugin: Plugins = None,
    seed: Seed = 0,
) -> None:
    """Tune the tasks of networks and keep the records; no library is written."""
    from ansorpy.api.several import Several
    from ansorpy.cli.lookup import Lookup
    from ansorpy.cli.parts import chosen_parts
    from ansorpy.cli.searching import accounted, aims_of, make_request, project_of, search_all
    from ansorpy.cli.values import network_names, parse_bytes

    parts = {"strategy": strategy, "selector": selector, "cost_model": cost_model}
    parts |= {"scheduler": scheduler, "transfer": transfer, "measure": measure}
    request = make_request(
        effort=effort,
        trials=trials,
        trials_per_task=trials_per_task,
        time_limit=time_limit,
        db=db,
        target=target,
        threads=threads,
        precision=precision,
        workers=workers,
        parts=chosen_parts(plugin, **parts),
        seed=seed,
    )
    names = network_names(models)
    wanted, aims = aims_of(objective, names, bound, baseline, weight)
    with accounted(request):
        given, most = zip(models, names, strict=True), parse_bytes(memory)
        projects = [project_of(m, request, shape, dim, name).fit(most) for m, name in given]
        several = Several(projects, aims, wanted)
        finished = search_all(several, request)
    print(f"tuned {len(several.tasks)} tasks")
    for model, done in zip(models, finished, strict=True):
        _show(done, Lookup(model, db, target, threads, precision, dim, shape), memory)


def _show(finished: Finished, lookup: Lookup, memory: Memory) -> None:
    """Print what the kernels take, and the command that finds the same tasks."""
    from ansorpy.cli.searching import total_text

    name = finished.project.name
    options = ["-o", f"{name.replace(os.sep, '-').lstrip('.-')}.so"]
    options += [] if memory is None else ["--memory", memory]
    print(f"{name}: {total_text(finished) or 'not timed'}")
    print(f"write the library with: {lookup.command('export', *options)}")
