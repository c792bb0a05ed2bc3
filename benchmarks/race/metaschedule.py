"""The stage beside TVM's MetaSchedule: its programs after some trials, ours after seconds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ansorpy.errors import MissingDependency
from ansorpy.evaluation.bench.processes import Contender
from benchmarks.common.cells import markdown
from benchmarks.race.contestant import Contestant
from benchmarks.race.live import Heat, network_limit
from benchmarks.race.tvm_engine import tune_with_tvm
from benchmarks.study.jobs import Job
from benchmarks.study.outcomes import Outcomes, Value
from benchmarks.study.standings import figure
from benchmarks.study.study import Bar, Section, Stage, StudySettings
from benchmarks.study.tuned import Limit, Subject, timed_in_turns

__all__ = ["STAGE"]

SUBJECTS = (
    "GMM.512x512x512.b1", "C2D.56x56.64-64.k3s1.b1", "DEP.112x112.32-32.k3s1.b1",
    "SOFTMAX.12x128x128", "ATT.128x12x64", "resnet50",
)  # fmt: skip
METASCHEDULE, OURS = "MetaSchedule", "ansorpy"
TRIALS, OURS_S = 64, 5.0


def _heat(settings: StudySettings, name: str) -> Heat:
    limit = Limit(settings.seconds or OURS_S)
    heat = Heat(name, limit, 0, settings)
    return heat if heat.where.is_operator else Heat(name, network_limit(settings), 0, settings)


def _key(stage: str, settings: StudySettings, name: str) -> str:
    return f"{stage}/{settings.trials or TRIALS}t/{settings.threads}/{name}"


def _beside_key(settings: StudySettings, name: str) -> str:
    return f"{_key('beside', settings, name)}/{_ours_text(settings, name)}"


def _ours_text(settings: StudySettings, name: str) -> str:
    """How long our search for *name* takes, as in ``5s``."""
    return _heat(settings, name).limit.text


def _jobs(settings: StudySettings) -> Sequence[Job]:
    found: list[Job] = []
    for name in settings.subjects(SUBJECTS):
        heat, trials = _heat(settings, name), settings.trials or TRIALS
        library = settings.folder / "tvm" / f"{name}.{settings.threads}.{trials}.so"
        found += [
            Job(
                _key("metaschedule", settings, name),
                partial(tune_with_tvm, heat.where, trials, library),
                alone=True,
            ),
            heat.run(Contestant.default()),
            Job(_beside_key(settings, name), partial(_beside, heat, library), alone=True),
        ]
    return found


def _beside(heat: Heat, library: Path) -> Value:
    """Both in turns.

    Raises:
        MissingDependency: MetaSchedule made nothing, since TVM is not installed or failed.
    """
    if not library.exists():
        raise MissingDependency(f"MetaSchedule made no program of {heat.subject}")
    records = heat.where.records(heat.key(Contestant.default()))
    return timed_in_turns(heat.where, {OURS: records}, [_contender(heat.where, library)])


def _contender(subject: Subject, library: Path) -> Contender:
    factory = "benchmarks.race.tvm_engine:"
    arguments = {"library": str(library), "threads": subject.threads}
    if subject.is_operator:
        given = {"case": subject.name, "reference": str(subject.reference)}
        return Contender(METASCHEDULE, f"{factory}TvmOperator", given | arguments)
    path = {"path": str(subject.path)}
    return Contender(METASCHEDULE, f"{factory}TvmModel", path | arguments)


def _section(settings: StudySettings, outcomes: Outcomes) -> Section:
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    bars: list[Bar] = []
    for name in settings.subjects(SUBJECTS):
        key = _key("metaschedule", settings, name)
        tuning = outcomes.value(key)
        value = outcomes.value(_beside_key(settings, name))
        failures = outcomes.failures(*key.split("/"))
        notes += [f"Failed: {k}, {why.splitlines()[0]}" for k, why in failures.items()]
        if value is None:
            continue
        times = value["median_ms"]
        ours, theirs = times.get(OURS), times.get(METASCHEDULE)
        if theirs is not None and _heat(settings, name).where.is_operator:
            bars.append(_bar(f"{name}, ms after {_ours_text(settings, name)}", ours, theirs))
        rows.append((
            name, _ms(ours), _ours_text(settings, name), _ms(theirs),
            "" if tuning is None else f"{figure(tuning['seconds'])}s",
            "" if tuning is None else tuning["functions"],
            "" if ours is None or theirs is None else f"{theirs / ours:.2f}",
        ))  # fmt: skip
    if not rows:
        return Section("\n".join(notes))
    heading = ("", f"{OURS} ms", "after", f"{METASCHEDULE} ms", "after", "functions", "ratio")
    trials = settings.trials or TRIALS
    text = f"{METASCHEDULE} measures {trials} programs of each task; above 1, ours is faster."
    return Section("\n\n".join((text, *notes)), markdown(heading, rows), bars=bars)


def _bar(what: str, ours: float | None, theirs: float) -> Bar:
    asked = f"under {figure(theirs)}, {METASCHEDULE}'s"
    said = "no program" if ours is None else figure(ours)
    return Bar(what, asked, said, ours is not None and ours < theirs)


def _ms(value: float | None) -> str:
    return "" if value is None else figure(value)


STAGE = Stage(
    "metaschedule", "Beside MetaSchedule",
    "TVM's MetaSchedule tunes the same definitions in a process of its own; networks in the layout "
    "of their files. Constant operands are packed before timing in our programs; those of "
    "MetaSchedule's operators are arguments, in the layout of the definition.",
    _jobs, _section,
)  # fmt: skip
