"""``ansorpy tune``: search and keep the records; ``compile`` and ``export`` use them later."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ansorpy.cli.options import (
    Baseline,
    Bound,
    CostModelName,
    Dim,
    Effort,
    EffortOption,
    MeasureName,
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
    from ansorpy.api.project import Project
    from ansorpy.api.session import Chosen

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
    db: Records = Path("ansorpy.db"),
    target: TargetName = "host",
    threads: Threads = None,
    dim: Dim = None,
    shape: Shape = None,
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
    from ansorpy.cli.parts import chosen_parts
    from ansorpy.cli.searching import accounted, aims_of, make_request, project_of, search_all

    names = {"strategy": strategy, "selector": selector, "cost_model": cost_model}
    names |= {"scheduler": scheduler, "transfer": transfer, "measure": measure}
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
        parts=chosen_parts(plugin, **names),
        seed=seed,
    )
    aims = aims_of([model.stem for model in models], bound, baseline, weight)
    with accounted(request):
        projects = [project_of(model, request, shape, dim) for model in models]
        several = Several(projects, aims, objective)
        chosen = search_all(several, request)
    print(f"tuned {len(several.tasks)} tasks")
    for model, project, programs in zip(models, projects, chosen, strict=True):
        _show(model, project, programs, db)


def _show(model: Path, project: Project, programs: Sequence[Chosen], db: Path) -> None:
    from ansorpy.cli.searching import total_text

    print(f"{model.stem}: {total_text(project, programs) or 'not timed'}")
    print(f"write the library with: ansorpy export {model} -o {model.stem}.so --db {db}")
