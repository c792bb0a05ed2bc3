"""``ansorpy compile``: search, then write a shared library and its header."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ansorpy.cli.options import (
    DEFAULT_DB,
    Bound,
    CostModelName,
    Dim,
    Effort,
    EffortOption,
    MeasureName,
    Memory,
    ModelFile,
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

__all__ = ["compile"]


def compile(
    model: ModelFile,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The library; default: MODEL's name.so.")
    ] = None,
    objective: ObjectiveName = "weighted_sum",
    bound: Bound = None,
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
    """Compile a network to a shared library with a C header, tuning it first."""
    from ansorpy.api.in_c import emitted_target
    from ansorpy.api.several import Several
    from ansorpy.cli import searching
    from ansorpy.cli.files import library_path
    from ansorpy.cli.parts import chosen_parts
    from ansorpy.cli.values import parse_bytes
    from ansorpy.runtime.export import check_exportable

    names = {"strategy": strategy, "selector": selector, "cost_model": cost_model}
    names |= {"scheduler": scheduler, "transfer": transfer, "measure": measure}
    request = searching.make_request(
        effort=effort,
        trials=trials,
        trials_per_task=trials_per_task,
        time_limit=time_limit,
        db=db,
        target=target,
        threads=threads,
        precision=precision,
        workers=workers,
        parts=chosen_parts(plugin, **names),
        seed=seed,
    )
    wanted, aims = searching.aims_of(objective, [model.stem], bound)
    library = library_path(model, output)
    check_exportable(library, emitted_target(library, request.target, request.threads))
    with searching.accounted(request):
        project = searching.project_of(model, request, shape, dim).fit(parse_bytes(memory))
        [finished] = searching.search_all(Several([project], aims, wanted), request)
        searching.export(finished, request, library)
