"""Single operators and subgraphs beside libraries, in classes as in the paper's figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import geometric_mean

from benchmarks.common.cells import markdown
from benchmarks.common.command import say
from benchmarks.ops import measure as ops
from benchmarks.ops.providers import installed_peers
from benchmarks.ops.result import Result
from benchmarks.ops.suite import case_named, matching
from benchmarks.paper.claims import CLAIMS
from benchmarks.study.jobs import Job
from benchmarks.study.outcomes import Outcomes, Value
from benchmarks.study.plots import grouped_bars
from benchmarks.study.study import Section, Stage, StudySettings
from benchmarks.study.tuned import Subject

__all__ = ["STAGES"]

OPERATORS = ("C1D", "C2D", "C3D", "GMM", "GRP", "DIL", "DEP", "T2D", "CAP", "NRM")
SUBGRAPHS = ("ConvLayer", "TBG")
TRIALS = 1000


def _names(families: Sequence[str], settings: StudySettings) -> list[str]:
    """The cases of *families*, or those of them that settings name."""
    every = [case.name for case in matching(families)]
    return [name for name in every if not settings.on or name in settings.on]


def _kind(settings: StudySettings) -> tuple[str, str, str]:
    return "operator", f"{settings.trials or TRIALS}t", str(settings.threads)


def _jobs(families: Sequence[str], settings: StudySettings) -> Sequence[Job]:
    return [
        Job(f"{'/'.join(_kind(settings))}/{name}", partial(_measured, settings, name), alone=True)
        for name in _names(families, settings)
    ]


def _measured(settings: StudySettings, name: str) -> Value:
    """Tune the case and time every installed library in turns with it."""
    subject = Subject(name, settings.threads, settings.folder)
    db = subject.records("/".join(_kind(settings)))
    db.parent.mkdir(parents=True, exist_ok=True)
    asked = ops.OperatorSettings(db, settings.trials or TRIALS, peers=installed_peers())
    return ops.measure(case_named(name), settings.threads, asked, say).model_dump()


def _results(families: Sequence[str], settings: StudySettings, outcomes: Outcomes) -> list[Result]:
    found = outcomes.values(*_kind(settings))
    names = _names(families, settings)
    return [Result.model_validate(v) for (name,), v in found.items() if name in names]


def _section(
    name: str, families: Sequence[str], settings: StudySettings, outcomes: Outcomes
) -> Section:
    results = [r for r in _results(families, settings, outcomes) if r.ratio is not None]
    if not results:
        return Section()
    groups = list(dict.fromkeys(r.group for r in results))
    rows = [_row(group, [r for r in results if r.group == group]) for group in groups]
    rows.append(_row("all", results))
    best = sum((r.ratio or 0.0) >= 1 for r in results)
    heading = ("class", "cases", "best library / ours", "least", "most")
    trials = settings.trials or TRIALS
    found = f"After {trials} trials each, fastest in {best} of {len(results)} cases."
    text = f"{CLAIMS[name].text}\n\n{found}"
    tables = "Geometric means of the fastest library's time divided by ours:\n\n" + markdown(
        heading, rows
    )
    bars = [
        {"subject": group, "name": engine, "value": _normalised(results, group, engine)}
        for group in groups
        for engine in dict.fromkeys(e for r in results for e in r.engines)
    ]
    return Section(text, tables, {name: grouped_bars(bars, "speed relative to the fastest")})


def _row(group: str, members: Sequence[Result]) -> tuple[str, ...]:
    ratios = [r.ratio for r in members if r.ratio is not None]
    figures = (geometric_mean(ratios), min(ratios), max(ratios))
    return (group, str(len(ratios)), *(f"{figure:.2f}" for figure in figures))


def _normalised(results: Sequence[Result], group: str, engine: str) -> float | None:
    """Geometric mean over a class of the engine's speed, where the fastest engine has 1."""
    speeds = [
        min(t.median_ms for t in r.engines.values()) / r.engines[engine].median_ms
        for r in results
        if r.group == group and engine in r.engines
    ]
    return geometric_mean(speeds) if speeds else None


def _stage(name: str, title: str, help: str, families: Sequence[str]) -> Stage:
    jobs: Callable[[StudySettings], Sequence[Job]] = partial(_jobs, families)
    return Stage(name, title, help, jobs, partial(_section, name, families))


STAGES = (
    _stage(
        "operators", "Single operators", "Ten classes of operators beside libraries.", OPERATORS
    ),
    _stage(
        "subgraphs", "Subgraphs", "A convolution layer and the products of attention.", SUBGRAPHS
    ),
)
