"""Whole networks beside libraries, and when tuning passes these."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import geometric_mean

from benchmarks.common.cells import OURS, markdown, milliseconds, two_digits
from benchmarks.common.command import say
from benchmarks.networks import measure as networks
from benchmarks.networks.result import NetworkResult
from benchmarks.paper.claims import CLAIMS
from benchmarks.paper.variants import OURS as OUR_SEARCH
from benchmarks.paper.variants import tuned_as
from benchmarks.study.jobs import Job
from benchmarks.study.outcomes import Outcomes, Value
from benchmarks.study.plots import curves, grouped_bars
from benchmarks.study.standings import figure
from benchmarks.study.study import Section, Stage, StudySettings
from benchmarks.study.tuned import Limit, Subject, reached_s
from benchmarks.zoo.suite import Entry

__all__ = ["STAGES"]

NAMES = ("resnet50", "mobilenet_v2", "resnet3d_18", "dcgan", "bert_base")
BOTH = (*NAMES, *(f"{name}.b16" for name in NAMES))
LIMIT_S = 1800.0
"""What effort full gives a network."""


def _limit(settings: StudySettings) -> Limit:
    return Limit(settings.network_seconds or LIMIT_S)


def _kind(stage: str, settings: StudySettings) -> tuple[str, str, str]:
    return stage, _limit(settings).text, str(settings.threads)


def _jobs(settings: StudySettings) -> Sequence[Job]:
    kind = "/".join(_kind("network", settings))
    return [
        Job(f"{kind}/{name}", partial(_measured, settings, name), alone=True,
            about_s=_limit(settings).seconds or 0.0)
        for name in settings.subjects(BOTH)
    ]  # fmt: skip


def _measured(settings: StudySettings, name: str) -> Value:
    limit = _limit(settings)
    subject = Subject(name, settings.threads, settings.folder)
    db = subject.records("/".join(_kind("network", settings)))
    db.parent.mkdir(parents=True, exist_ok=True)
    asked = networks.NetworkSettings(db, settings.folder / "networks")
    tuned = networks.Tuned(time_limit_s=limit.seconds)
    entry = Entry.parse(name)
    return networks.measure(
        entry, settings.threads, tuned, asked, say, limit.text
    ).model_dump()  # fmt: skip


def _results(settings: StudySettings, outcomes: Outcomes) -> dict[str, NetworkResult]:
    found = outcomes.values(*_kind("network", settings))
    return {name: NetworkResult.model_validate(value) for (name,), value in found.items()}


def _section(settings: StudySettings, outcomes: Outcomes) -> Section:
    results = _results(settings, outcomes)
    if not results:
        return Section()
    engines = list(dict.fromkeys(e for r in results.values() for e in r.engines))
    rows = [
        (
            name,
            *(milliseconds(r.engines[e].median_ms) if e in r.engines else "" for e in engines),
            two_digits(r.ratio),
        )
        for name, r in results.items()
    ]
    ratios = [r.ratio for r in results.values() if r.ratio is not None]
    mean = f"Geometric mean of the ratios: {geometric_mean(ratios):.2f}." if ratios else ""
    table = markdown(("", *(f"{e} ms" for e in engines), "best library / ours"), rows)
    bars = [
        {
            "subject": name, "name": engine,
            "value": min(t.median_ms for t in r.engines.values()) / time.median_ms,
        }
        for name, r in results.items()
        for engine, time in r.engines.items()
    ]  # fmt: skip
    return Section(
        CLAIMS["networks"].text,
        f"{table}\n\n{mean}",
        {"networks": grouped_bars(bars, "speed relative to the fastest")},
    )


def _curve_jobs(settings: StudySettings) -> Sequence[Job]:
    found = []
    for name in settings.subjects(NAMES):
        subject = Subject(name, settings.threads, settings.folder)
        key, limit = _curve_key(settings, name), _limit(settings)
        work = partial(tuned_as, subject, OUR_SEARCH.name, limit, 0, key)
        found.append(Job(key, work, alone=True, about_s=limit.seconds or 0.0))
    return found


def _curve_key(settings: StudySettings, name: str) -> str:
    return f"{'/'.join(_kind('quality', settings))}/{name}"


def _curves_section(settings: StudySettings, outcomes: Outcomes) -> Section:
    results, rows, drawn = _results(settings, outcomes), [], []
    for name in settings.subjects(NAMES):
        value = outcomes.value(_curve_key(settings, name))
        if value is None or not value["points"]:
            continue
        points, best_ms = value["points"], value["best_ms"]
        peers = [t.median_ms for e, t in results[name].engines.items() if e != OURS] \
            if name in results else []  # fmt: skip
        goal = min(peers, default=None)
        rows.append((
            name, "not timed yet" if goal is None else milliseconds(goal),
            "" if goal is None else _when(points, goal), _when(points, 1.05 * best_ms),
            milliseconds(best_ms), str(value["trials"]),
        ))  # fmt: skip
        drawn += [{"subject": name, "name": "ansorpy", "at": n, "value": ms} for _, n, ms in points]
    if not rows:
        return Section()
    heading = (
        "",
        "best library ms",
        "passed after",
        "within 5 % of the end after",
        "kernels ms",
        "trials",
    )
    tables = markdown(heading, rows)
    return Section(
        CLAIMS["quality"].text,
        tables,
        {"quality": curves(drawn, "trials", "sum of the kernels, ms", is_log=True)},
    )


def _when(points: Sequence[Sequence[float]], goal_ms: float) -> str:
    found = reached_s(points, goal_ms)
    return "never" if found is None else f"{found[1]} trials, {figure(found[0])} s"


STAGES = (
    Stage(
        "networks", "Networks", "Five networks at batches 1 and 16 beside libraries.",
        _jobs, _section,
    ),
    Stage(
        "quality", "Quality over trials",
        "How soon tuning passes the libraries: the sum of the kernels over the trials.",
        _curve_jobs, _curves_section,
    ),
)  # fmt: skip
