"""``ansorpy tune``: search and keep the records; ``compile`` and ``export`` use them later."""

from __future__ import annotations

from pathlib import Path

from ansorpy.cli.options import (
    Baseline,
    Bound,
    Dim,
    Effort,
    EffortOption,
    ModelFiles,
    NetworkWeight,
    ObjectiveName,
    Precision,
    PrecisionOption,
    Records,
    Seed,
    Shape,
    TargetName,
    Threads,
    TimeLimit,
    Trials,
    TrialsPerTask,
    Workers,
)

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
    seed: Seed = 0,
) -> None:
    """Tune the tasks of networks and keep the records; no library is written."""
    from ansorpy.api.several import Several
    from ansorpy.cli.searching import (
        accounted,
        aims_of,
        make_request,
        project_of,
        search_all,
        total_text,
    )

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
        seed=seed,
    )
    aims = aims_of([model.stem for model in models], bound, baseline, weight)
    with accounted(request):
        projects = [project_of(model, request, shape, dim) for model in models]
        several = Several(projects, aims, objective)
        chosen = search_all(several, request)
    print(f"tuned {len(several.tasks)} tasks")
    for model, project, programs in zip(models, projects, chosen, strict=True):
        total = total_text(project, programs)
        print(f"{model.stem}: {total or 'not timed'}")
        print(f"write the library with: ansorpy export {model} -o {model.stem}.so --db {db}")
