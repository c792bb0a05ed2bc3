"""``ansorpy tune``: search and keep the records; ``compile`` and ``export`` use them later."""

from __future__ import annotations

from pathlib import Path

from ansorpy.cli.options import (
    Dim,
    Effort,
    EffortOption,
    ModelFile,
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
    model: ModelFile,
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
    """Tune a network's tasks and keep the records; no library is written."""
    from ansorpy.cli.searching import accounted, make_request, project_of, search, total_text

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
    with accounted(request):
        project = project_of(model, request, shape, dim)
        chosen = search(project, request)
    total = total_text(project, chosen)
    print(f"tuned {len(chosen)} tasks" + (f", {total}" if total else ""))
    print(f"write the library with: ansorpy export {model} -o {model.stem}.so --db {db}")
