"""Strategies asked and told round by round, without a machine: seconds are a function's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import CostModel, StaticModel
from ansorpy.cost.random import RandomModel
from ansorpy.ir.task import Task
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.rules.algorithms.base import Definition
from ansorpy.rules.placed_sketch import Pair, PartialSketch, PlacedSketch, SketchSampler
from ansorpy.search.population import Candidate
from ansorpy.search.strategy import Context, Strategy
from tests.search.tasks import matmul, sampler

__all__ = [
    "Bowl",
    "BowlModel",
    "Seconds",
    "basin",
    "bowl",
    "context",
    "distance_measured",
    "finds_the_best",
    "measured",
    "ok",
    "one_sketch",
    "predicted",
]

Seconds = Callable[[Candidate], float]


def context(
    seed: int = 0,
    n: int = 24,
    source: SketchSampler | None = None,
    model: CostModel | None = None,
) -> Context:
    task = matmul(n, n, n)
    rng = np.random.default_rng(seed)
    return Context(task, source or sampler(task), model or AnalyticModel(), rng)


def ok(*seconds: float) -> MeasureResult:
    return MeasureResult(TrialKind.OK, seconds)


def measured(
    strategy: Strategy, at: Context, seconds: Seconds, rounds: int, n: int = 8
) -> list[Candidate]:
    """The candidates of *rounds* rounds, each measured as *seconds* says."""
    tried: list[Candidate] = []
    for _ in range(rounds):
        picked = strategy.ask(at, n).best[:n]
        at.note(picked)
        strategy.tell([(c, ok(seconds(c))) for c in picked])
        tried += picked
        if not picked:
            break
    return tried


def predicted(candidate: Candidate) -> float:
    return 1 / candidate.score


@dataclass
class Bowl:
    """Seconds that grow with each decision's distance from a goal: one convex basin."""

    sketch: PlacedSketch
    goal: np.ndarray

    def __call__(self, candidate: Candidate) -> float:
        space = self.sketch.space
        total = 1.0
        for decision in space.decisions:
            at = space.slices[decision.name]
            distance = np.abs(np.log2(candidate.row[at] + 1.0) - np.log2(self.goal[at] + 1.0))
            total += float(distance.sum())
        return total


def bowl(at: Context, seed: int) -> tuple[Bowl, Candidate]:
    """A bowl whose goal is a random program of a random placed sketch, and another program."""
    rng = np.random.default_rng(seed)
    [sketch, *_] = at.source.draw(1, rng)
    rows = sketch.sample(200, rng)
    rows = rows[sketch.valid(rows)]
    return Bowl(sketch, rows[0]), Candidate(sketch, rows[1], 0.0)


@dataclass
class BowlModel(StaticModel):
    """Scores by the distance of a row's columns from *goal*, in every space alike; counts rows."""

    goal: float = 2.0
    calls: list[int] | None = None

    def predict(self, task: Task, programs: Programs) -> Floats:
        if self.calls is not None:
            self.calls.append(len(programs))
        distance = np.abs(np.log2(np.maximum(programs.table, 0) + 1.0) - self.goal).sum(axis=1)
        scores: Floats = 1 / (1 + distance)
        return scores


def basin(candidate: Candidate) -> float:
    """Seconds of a bowl: its bottom is where :class:`BowlModel` scores highest."""
    return float(np.exp(0.3 * np.abs(np.log2(candidate.row + 1.0) - BowlModel.goal).sum()))


@dataclass
class OneSketch:
    """A source with a single placed sketch."""

    sketch: PlacedSketch
    whole: SketchSampler

    @property
    def definitions(self) -> Sequence[Definition]:
        return self.whole.definitions

    @property
    def pairs(self) -> Sequence[Pair]:
        return (self.sketch.pair,)

    def begin(self, number: int) -> PartialSketch:
        return self.whole.begin(number)

    def draw(
        self, n: int, rng: np.random.Generator, shares: Mapping[Pair, float] | None = None
    ) -> Sequence[PlacedSketch]:
        return [self.sketch]

    def every(self) -> Iterator[PlacedSketch]:
        yield self.sketch


def one_sketch(n: int, seed: int, model: CostModel) -> Context:
    """The space of one placed sketch of a matmul."""
    task, rng = matmul(n, n, n), np.random.default_rng(seed)
    source = sampler(task)
    [sketch, *_] = source.draw(1, rng)
    return Context(task, OneSketch(sketch, source), model, rng)


def distance_measured(make: Callable[[], Strategy], seed: int) -> float:
    """The least distance from the goal that a strategy finds in 16 rounds, without a model."""
    at = one_sketch(96, seed, RandomModel(seed))
    distance, _ = bowl(at, seed)
    tried = measured(make(), at, lambda c: float(np.exp(0.3 * distance(c))), rounds=16)
    return min(map(distance, tried))


def finds_the_best(strategy: Strategy, rounds: int) -> bool:
    """Whether the best of a space of more than ten thousand rows is found in some rounds."""
    at = one_sketch(8, 0, BowlModel())
    [sketch] = at.source.draw(1, at.rng)
    assert sketch.space.size > 10_000
    table = sketch.space.rows(0, sketch.space.size)
    best = min(basin(Candidate(sketch, row, 0.0)) for row in table[sketch.valid(table)])
    return any(
        min(map(basin, measured(strategy, at, basin, rounds=1)), default=np.inf) == best
        for _ in range(rounds)
    )
