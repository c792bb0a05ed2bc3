"""Stages on this machine: searches that take turns, and their best programs timed again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

from benchmarks.common.cells import markdown
from benchmarks.race.contestant import Contestant, contestants
from benchmarks.study.comparison import Scores, compared
from benchmarks.study.jobs import Job
from benchmarks.study.outcomes import Outcomes
from benchmarks.study.plots import curves, standings
from benchmarks.study.standings import figure, learnt, standings_table
from benchmarks.study.study import Section, Stage, StudySettings
from benchmarks.study.tuned import Limit, Subject, reached_s, timed_in_turns, tuned

__all__ = [
    "FIVE", "STAGES", "Heat", "network_heats", "network_limit", "ratios", "strategy_heats",
]  # fmt: skip

TASKS = (
    "GMM.512x512x512.b1", "C2D.56x56.64-64.k1s1.b1", "C2D.14x14.256-256.k3s1.b1",
    "DEP.112x112.32-32.k3s1.b1", "GRP.56x56.64-128.k3s2.b1", "T2D.16x16.128-64.k4s2.b1",
    "TBG.128x12x64.b1", "ATT.128x12x64", "SOFTMAX.12x128x128", "LN.128x768",
)  # fmt: skip
NETWORKS = ("resnet50", "mobilenet_v2", "bert_base")
FIVE = ("resnet50", "squeezenet", "mobilenet_v2", "bert_base", "vit_tiny")

TASK_S, TASK_SEEDS = 30.0, 5
QUICK_S = 300.0
"""What effort quick gives a network."""
WITHIN = (0.10, 0.05, 0.01)
"""Distances from the time in the end."""


@dataclass(frozen=True)
class Heat:
    """Runs of several contestants on one subject with one seed, which are timed again together."""

    subject: str
    limit: Limit
    seed: int
    settings: StudySettings

    @property
    def where(self) -> Subject:
        return Subject(self.subject, self.settings.threads, self.settings.folder)

    @property
    def kind(self) -> str:
        return f"{self.limit.text}/{self.settings.threads}/{self.subject}"

    def key(self, contestant: Contestant) -> str:
        return f"live/{self.kind}/{contestant.name}/{self.seed}"

    def run(self, contestant: Contestant) -> Job:
        """The search of *contestant*."""
        key = self.key(contestant)
        work = partial(tuned, self.where, contestant.parts, self.limit, self.seed, key)
        return Job(key, work, alone=True, about_s=self.limit.seconds or 0.0)

    def final(self, racing: Sequence[Contestant]) -> Job:
        """Their best programs in turns; new contestants make it another job."""
        records = {one.name: self.where.records(self.key(one)) for one in racing}
        together = sha256(",".join(sorted(records)).encode()).hexdigest()[:8]
        key = f"final/{self.kind}/{self.seed}/{together}"
        return Job(key, partial(timed_in_turns, self.where, records), alone=True)

    def times(self, outcomes: Outcomes) -> Mapping[str, float]:
        """Milliseconds of each contestant in the final with the most of them."""
        found = outcomes.values("final", *self.kind.split("/"), str(self.seed))
        return max((value["median_ms"] for value in found.values()), key=len, default={})


def network_limit(settings: StudySettings) -> Limit:
    """How long a network is tuned."""
    return Limit(settings.network_seconds or QUICK_S)


def _task_limit(settings: StudySettings) -> Limit:
    return Limit(settings.seconds or TASK_S)


def strategy_heats(settings: StudySettings) -> Sequence[Heat]:
    """The heats of the stage ``strategies``, a seed of all tasks after another."""
    return [
        Heat(task, _task_limit(settings), seed, settings)
        for seed in range(settings.seeds or TASK_SEEDS)
        for task in settings.subjects(TASKS)
    ]


def network_heats(settings: StudySettings, names: Sequence[str] = NETWORKS) -> Sequence[Heat]:
    """Those of networks, of the stage ``networks`` unless they are named."""
    return [
        Heat(name, network_limit(settings), seed, settings)
        for seed in range(settings.seeds or 1)
        for name in settings.subjects(names)
    ]


def _jobs(heats: Sequence[Heat], racing: Sequence[Contestant]) -> Sequence[Job]:
    """Every heat's searches, beginning with another contestant in each, then its final."""
    found: list[Job] = []
    for number, heat in enumerate(heats):
        first = number % len(racing)
        found += [heat.run(one) for one in (*racing[first:], *racing[:first])]
        found.append(heat.final(racing))
    return found


def ratios(heats: Sequence[Heat], outcomes: Outcomes) -> dict[str, dict[str, list[float]]]:
    """By contestant and subject, its final time in each heat as a multiple of the fastest one."""
    scores: dict[str, dict[str, list[float]]] = {}
    for heat in heats:
        times = heat.times(outcomes)
        for name, ms in times.items():
            subjects = scores.setdefault(name, {})
            subjects.setdefault(heat.subject, []).append(ms / min(times.values()))
    return scores


def _section(name: str, heats: Sequence[Heat], outcomes: Outcomes) -> Section:
    scores = ratios(heats, outcomes)
    default = Contestant.default().name
    if default not in scores or len(scores) < 2:
        return Section()
    racing = [Contestant(*found.split(":")) for found in scores]
    labels = {one.name: one.label("strategy") for one in racing}
    found = compared(scores, default)
    unit = "time / fastest"
    text = [learnt(found, labels, default), *_absent(scores), *_failed(heats, outcomes)]
    tables = standings_table(found, scores, unit, labels, default)
    pictures = {
        name: standings(found, f"{unit}, geometric mean", labels),
        f"{name}_curves": curves(
            _rows(heats, racing, labels, outcomes), "seconds", "best ms", is_log=True
        ),
    }
    return Section("\n".join(text), tables, pictures)


def _rows(
    heats: Sequence[Heat],
    racing: Sequence[Contestant],
    labels: Mapping[str, str],
    outcomes: Outcomes,
) -> list[dict[str, object]]:
    """The curves of the first seed."""
    return [
        {"subject": heat.subject, "name": labels[one.name], "at": at_s, "value": ms}
        for heat in heats
        if heat.seed == 0
        for one in racing
        for at_s, _, ms in (outcomes.value(heat.key(one)) or {"points": ()})["points"]
    ]


def _absent(scores: Scores) -> list[str]:
    """The registered strategies that have no results."""
    missing = [one.label("strategy") for one in contestants("strategy") if one.name not in scores]
    return [f"Without results: {', '.join(missing)}."] if missing else []


def _failed(heats: Sequence[Heat], outcomes: Outcomes) -> list[str]:
    kinds = {tuple(heat.kind.split("/")) for heat in heats}
    failures = [item for kind in kinds for item in outcomes.failures("live", *kind).items()]
    return [f"Failed: {key}, {reason}." for key, reason in sorted(failures)[:8]]


def _quick_section(settings: StudySettings, outcomes: Outcomes) -> Section:
    """How long the default search needs until the end is near."""
    rows = []
    for heat in network_heats(settings, FIVE):
        value = outcomes.value(heat.key(Contestant.default()))
        if value is not None and value["points"]:
            end_ms = value["best_ms"]
            near = (reached_s(value["points"], (1 + within) * end_ms) for within in WITHIN)
            rows.append((
                heat.subject, figure(end_ms), str(value["trials"]),
                *("" if at is None else figure(at[0]) for at in near),
            ))  # fmt: skip
    if not rows:
        return Section()
    limit = network_limit(settings).text
    heading = ("", f"ms after {limit}", "trials", *(f"s to within {w:.0%}" for w in WITHIN))
    text = "Sums of kernels by the default search, and the seconds until it was near its end."
    return Section(text, markdown(heading, rows))


def _racing(settings: StudySettings) -> list[Contestant]:
    return contestants("strategy", settings.only)


STAGES = (
    Stage(
        "strategies", "Strategies on this machine",
        "Ten operators, 30 seconds each: each strategy in the default search, alone on the "
        "machine and in turns.",
        lambda s: _jobs(strategy_heats(s), _racing(s)),
        lambda s, o: _section("strategies", strategy_heats(s), o),
    ),
    Stage(
        "networks", "Strategies on networks",
        "Three networks, each strategy for the same wall-clock time.",
        lambda s: _jobs(network_heats(s), _racing(s)),
        lambda s, o: _section("networks", network_heats(s), o),
    ),
    Stage(
        "quick", "What effort quick reaches",
        "Five networks with the default search: how soon the time of the end is near.",
        lambda s: [heat.run(Contestant.default()) for heat in network_heats(s, FIVE)],
        _quick_section,
    ),
)  # fmt: skip
