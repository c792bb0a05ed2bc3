"""The stage without measuring: the programs that each cost model alone would choose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from statistics import geometric_mean

import ansorpy as ap
from ansorpy.cost.models import MODELS
from benchmarks.common.cells import markdown
from benchmarks.race.contestant import Contestant
from benchmarks.race.live import FIVE
from benchmarks.study.jobs import Job
from benchmarks.study.outcomes import Outcomes, Value
from benchmarks.study.plots import grouped_bars
from benchmarks.study.standings import figure
from benchmarks.study.study import Bar, Section, Stage, StudySettings
from benchmarks.study.tuned import Subject, timed_in_turns

__all__ = ["STAGE", "untuned_times"]

CLOSED_FORM = "analytic"
"""The model that needs no measurements of any machine, which the others are compared with."""


def _models(settings: StudySettings) -> list[str]:
    return list(dict.fromkeys((CLOSED_FORM, *(settings.only or MODELS.names))))


def _jobs(settings: StudySettings) -> Sequence[Job]:
    found: list[Job] = []
    for name in settings.subjects(FIVE):
        subject = Subject(name, settings.threads, settings.folder)
        models = _models(settings)
        found += [Job(_key(subject, m), partial(_compiled, subject, m), alone=True) for m in models]
        records = {model: subject.records(_key(subject, model)) for model in models}
        together = sha256(",".join(models).encode()).hexdigest()[:8]
        key = f"untuned_final/{subject.threads}/{name}/{together}"
        found.append(Job(key, partial(timed_in_turns, subject, records), alone=True))
    return found


def _key(subject: Subject, model: str) -> str:
    return f"untuned/{subject.threads}/{subject.name}/{model}"


def _compiled(subject: Subject, model: str) -> Value:
    """Compile without trials; the programs that *model* chooses are the only records."""
    db = subject.records(_key(subject, model))
    db.parent.mkdir(parents=True, exist_ok=True)
    db.unlink(missing_ok=True)
    ap.compile(
        subject.path, effort="none", cost_model=model, threads=subject.threads, db=db,
        progress=False,
    )  # fmt: skip
    return {"records": db.name}


def _untuned_ms(settings: StudySettings, outcomes: Outcomes, name: str) -> dict[str, float]:
    """Milliseconds of network *name* by model, of the final with the most of them."""
    found = outcomes.values("untuned_final", str(settings.threads), name)
    return max((dict(value["median_ms"]) for value in found.values()), key=len, default={})


def untuned_times(settings: StudySettings, outcomes: Outcomes) -> dict[str, dict[str, list[float]]]:
    """The same by model and network."""
    found: dict[str, dict[str, list[float]]] = {}
    for name in settings.subjects(FIVE):
        for model, ms in _untuned_ms(settings, outcomes, name).items():
            found.setdefault(model, {})[name] = [ms]
    return found


def _section(settings: StudySettings, outcomes: Outcomes) -> Section:
    names = settings.subjects(FIVE)
    times = {name: _untuned_ms(settings, outcomes, name) for name in names}
    times = {name: found for name, found in times.items() if CLOSED_FORM in found}
    if not times:
        return Section()
    models = list(dict.fromkeys(model for found in times.values() for model in found))
    rows = [
        (model, *(_cell(found, model) for found in times.values())) for model in models
    ]  # fmt: skip
    bars = [
        {"subject": name, "name": model, "value": found[CLOSED_FORM] / ms}
        for name, found in times.items()
        for model, ms in found.items()
    ]
    best = max(models, key=lambda model: _gain(times, model))
    text = f"{best} chooses best: {_gain(times, best):.2f} times the speed of {CLOSED_FORM}."
    tables = markdown(("", *times), rows) + f"\n\nIn brackets: speed relative to {CLOSED_FORM}."
    pictures = {"untuned": grouped_bars(bars, f"speed relative to {CLOSED_FORM}")}
    return Section(text, tables, pictures, list(_bars(times)))


def _bars(times: Mapping[str, Mapping[str, float]]) -> Iterator[Bar]:
    """The default model is to choose better than the closed form."""
    default = Contestant.default().cost_model
    if gain := _gain(times, default):
        what = f"speed by {default}, relative to {CLOSED_FORM}"
        yield Bar(what, "above 1", f"{gain:.2f} over {len(times)} networks", gain > 1)


def _gain(times: Mapping[str, Mapping[str, float]], model: str) -> float:
    """Speed relative to the closed form, a geometric mean; 0 if the model lacks a network."""
    if not all(model in found for found in times.values()):
        return 0.0
    return geometric_mean(found[CLOSED_FORM] / found[model] for found in times.values())


def _cell(found: dict[str, float], model: str) -> str:
    if model not in found:
        return ""
    return f"{figure(found[model])} ms ({found[CLOSED_FORM] / found[model]:.2f})"


STAGE = Stage(
    "untuned", "Cost models without measuring",
    "Five networks compiled with effort none: each cost model alone chooses the programs.",
    _jobs, _section,
)  # fmt: skip
