"""The ablations: of the search on an operator, of the task scheduler on a network."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf
from statistics import median

from benchmarks.common.cells import markdown
from benchmarks.paper.claims import CLAIMS
from benchmarks.paper.variants import OPERATOR, SCHEDULER, Variant, tuned_as
from benchmarks.study.jobs import Job
from benchmarks.study.outcomes import Outcomes, Value
from benchmarks.study.plots import curves
from benchmarks.study.study import Section, Stage, StudySettings
from benchmarks.study.tuned import Limit, Subject

__all__ = ["STAGES", "at_trials"]

CONV = "C2D.7x7.512-512.k3s1.b16"
NETWORK = "mobilenet_v2"
SEEDS, NETWORK_SEEDS = 5, 1
TRIALS, NETWORK_TRIALS = 1000, 4000
_POINTS = 100


def _jobs(
    stage: str, subject: str, variants: Sequence[Variant], trials: int, seeds: int,
    settings: StudySettings,
) -> Sequence[Job]:  # fmt: skip
    found = []
    for seed in range(settings.seeds or seeds):
        for name in settings.subjects((subject,)):
            for variant in variants:
                where = Subject(name, settings.threads, settings.folder)
                limit = Limit(trials=settings.trials or trials)
                key = f"{'/'.join(_kind(stage, settings, trials))}/{name}/{variant.name}/{seed}"
                work = partial(tuned_as, where, variant.name, limit, seed, key)
                found.append(Job(key, work, alone=True))
    return found


def _kind(stage: str, settings: StudySettings, trials: int) -> tuple[str, str, str]:
    return stage, Limit(trials=settings.trials or trials).text, str(settings.threads)


def _section(
    stage: str,
    variants: Sequence[Variant],
    trials: int,
    settings: StudySettings,
    outcomes: Outcomes,
) -> Section:
    kind = _kind(stage, settings, trials)
    failed = outcomes.failures(*kind).items()
    text = "\n\n".join((CLAIMS[stage].text, *(f"Failed: {key}, {why}." for key, why in failed)))
    runs: dict[tuple[str, str], list[Value]] = {}
    best: dict[str, float] = {}
    for (subject, variant, _), value in outcomes.values(*kind).items():
        runs.setdefault((subject, variant), []).append(value)
        best[subject] = min(best.get(subject, inf), float(value["best_ms"]))
    if not runs:
        return Section(text if failed else "")
    most = settings.trials or trials
    grid = sorted({max(1, most * n // _POINTS) for n in range(1, _POINTS + 1)})
    shown = (grid[len(grid) // 10], grid[len(grid) // 3], grid[-1])
    drawn, rows = [], []
    for (subject, variant), found in runs.items():
        speeds = {n: median(best[subject] / at_trials(v, n) for v in found) for n in grid}
        drawn += [
            {"subject": subject, "name": variant, "at": n, "value": speed}
            for n, speed in speeds.items()
            if speed
        ]
        cells = (f"{speeds[n]:.2f}" for n in shown)
        rows.append((subject, variant, str(len(found)), *cells))
    order = [variant.name for variant in variants]
    rows.sort(key=lambda row: (row[0], order.index(row[1])))
    table = markdown(("", "variant", "runs", *(f"after {n}" for n in shown)), rows)
    return Section(
        text,
        f"Speed relative to the best of all:\n\n{table}",
        {stage: curves(drawn, "trials", "speed relative to the best")},
    )


def at_trials(value: Value, trials: int) -> float:
    """The best milliseconds of a run after so many trials; infinite before its first program."""
    known = [float(ms) for _, n, ms in value["points"] if n <= trials]
    return min(known, default=inf)


STAGES = (
    Stage(
        "ablation", "Ablation of the search",
        "What the search finds without its parts: the best program over the trials.",
        partial(_jobs, "ablation", CONV, OPERATOR, TRIALS, SEEDS),
        partial(_section, "ablation", OPERATOR, TRIALS),
    ),
    Stage(
        "scheduler", "Ablation of the task scheduler",
        "A network tuned without parts of the search: the sum of its kernels over the trials.",
        partial(_jobs, "scheduler", NETWORK, SCHEDULER, NETWORK_TRIALS, NETWORK_SEEDS),
        partial(_section, "scheduler", SCHEDULER, NETWORK_TRIALS),
    ),
)  # fmt: skip
