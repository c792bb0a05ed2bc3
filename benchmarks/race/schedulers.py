"""The stage of task schedulers, replayed on the learning curves of networks recorded here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from ansorpy.tasks.schedulers import SCHEDULERS
from benchmarks.race.contestant import Contestant
from benchmarks.race.curves import reached, read, replay
from benchmarks.race.live import FIVE
from benchmarks.study.comparison import Scores, compared
from benchmarks.study.jobs import Job
from benchmarks.study.outcomes import Outcomes, Value
from benchmarks.study.plots import standings
from benchmarks.study.standings import learnt, standings_table
from benchmarks.study.study import Section, Stage, StudySettings
from benchmarks.study.tuned import Limit, Subject, tuned

__all__ = ["STAGE", "replayed", "trials_needed"]

TRIALS_PER_TASK, SEEDS = 256, 5
GOAL = 0.05
"""Distance from the latency in the end."""


def _limit(settings: StudySettings) -> Limit:
    return Limit(trials_per_task=settings.trials or TRIALS_PER_TASK)


def _jobs(settings: StudySettings) -> Sequence[Job]:
    """For each network, its recording, then the replays, which need it."""
    even = replace(Contestant.default(), scheduler="round_robin").parts
    names = settings.only or SCHEDULERS.names
    together = sha256(",".join(names).encode()).hexdigest()[:8]
    found: list[Job] = []
    for network in settings.subjects(FIVE):
        subject = Subject(network, settings.threads, settings.folder)
        key = "/".join(("curves", *_kind(settings), network))
        found += [
            Job(key, partial(tuned, subject, even, _limit(settings), 0, key), alone=True),
            Job(
                "/".join(("scheduled", *_kind(settings), network, together)),
                partial(replayed, subject.records(key), names, settings.seeds or SEEDS),
                alone=True,
            ),
        ]
    return found


def _kind(settings: StudySettings) -> tuple[str, str]:
    return _limit(settings).text, str(settings.threads)


def replayed(records: Path, schedulers: Sequence[str], seeds: int) -> Value:
    """Trials of each scheduler, one for each seed, until within :data:`GOAL` of the end."""
    recording = read(records)
    end_s = recording.end_s()
    found: dict[str, list[int]] = {}
    for name in schedulers:
        runs = [replay(recording, name, seed) for seed in range(seeds)]
        found[name] = [(reached(steps, end_s, GOAL) or steps[-1]).trials for steps in runs]
    return found


def trials_needed(settings: StudySettings, outcomes: Outcomes) -> Scores:
    """By scheduler and network, of the replays with the most schedulers."""
    most: dict[str, Value] = {}
    for (network, _), value in outcomes.values("scheduled", *_kind(settings)).items():
        if len(value) >= len(most.get(network, {})):
            most[network] = value
    names = dict.fromkeys(name for value in most.values() for name in value)
    return {name: {n: value[name] for n, value in most.items() if name in value} for name in names}


def _section(settings: StudySettings, outcomes: Outcomes) -> Section:
    scores = trials_needed(settings, outcomes)
    default = Contestant.default().scheduler
    if default not in scores or len(scores) < 2:
        return Section()
    labels = {name: f"{name} (default)" if name == default else name for name in scores}
    found = compared(scores, default)
    unit = f"trials to within {GOAL:.0%}"
    tables = standings_table(found, scores, unit, labels, default)
    pictures = {"schedulers": standings(found, unit, labels)}
    return Section(learnt(found, labels, default), tables, pictures)


STAGE = Stage(
    "schedulers", "Task schedulers",
    "Five networks tuned evenly; each scheduler then gives its rounds to the recorded trials.",
    _jobs, _section,
)  # fmt: skip
