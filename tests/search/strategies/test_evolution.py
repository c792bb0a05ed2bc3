"""Evolution: what its first generations have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.programs import Programs
from ansorpy.errors import UsageError
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import Pair, PlacedSketch, SketchSampler
from ansorpy.schedule.space import Space, Table
from ansorpy.search.strategies.evolution import Evolution, unmeasured
from ansorpy.search.strategy import Context
from tests.search.asking import BowlModel, context, ok
from tests.search.tasks import dense_relu


class Noting(BowlModel):
    """Notes the rows that it scores, by the object of their space."""

    def __init__(self) -> None:
        super().__init__()
        self.scored: dict[int, list[Table]] = defaultdict(list)

    def predict(self, task: Task, programs: Programs) -> Floats:
        self.scored[id(programs.space)].append(programs.table)
        return super().predict(task, programs)

    def has_scored(self, space: Space, row: Table) -> bool:
        return any((table == row).all(axis=1).any() for table in self.scored[id(space)])


def test_the_first_generation_has_the_measured_rows_though_their_sketches_are_neighbours() -> None:
    model = Noting()
    at = context(model=model)
    told = at.shuffled(at.samples(12, 36))
    sketches = {c.sketch.key: c.sketch for c in told}
    moved = [sketch.neighbour(at.rng) for sketch in sketches.values()]
    assert any(sketch is not None and sketch.key in sketches for sketch in moved)
    strategy = Evolution(sketches=2 * len(sketches), population=320, generations=0)
    strategy.tell([(c, ok(1.0)) for c in told])
    at.note(told)
    strategy.ask(at, 8)
    assert all(model.has_scored(c.sketch.space, c.row) for c in told)


@pytest.mark.parametrize(("sketches", "scouts"), [(8, 0), (0, 8), (-1, 8)])
def test_an_evolution_that_draws_nothing_is_refused(sketches: int, scouts: int) -> None:
    with pytest.raises(UsageError, match="draws nothing"):
        Evolution(sketches=sketches, scouts=scouts)


class Counting(AnalyticModel):
    """Counts the generations."""

    generations = 0

    def predict_all(self, task: Task, tables: Sequence[Programs]) -> list[Floats]:
        self.generations += 1
        return [self.predict(task, table) for table in tables]


class Asked(SketchSampler):
    """Notes how many placed sketches are asked for."""

    def draw(
        self, n: int, rng: np.random.Generator, shares: Mapping[Pair, float] | None = None
    ) -> list[PlacedSketch]:
        self.asked = n
        return super().draw(n, rng, shares)


@pytest.mark.parametrize("trials", [7, 64])
def test_the_first_round_is_broader_than_later_ones(trials: int) -> None:
    task, model = dense_relu(64, 96, 48), Counting()
    source = Asked(task)
    at = Context(task, source, model, np.random.default_rng(0))
    strategy = Evolution(sketches=10, scouts=16, population=160, generations=4, doubt=0.0)
    offered = strategy.ask(at, trials).best
    assert (source.asked, model.generations) == (16, 5)
    at.note(offered[:1])
    strategy.tell([(offered[0], ok(1.0))])
    model.generations = 0
    strategy.ask(at, trials)
    assert (source.asked, model.generations) == (10, 5)


@pytest.mark.parametrize("trials", [1, 2, 6])
def test_a_first_round_of_few_trials_measures_what_is_chosen_without_any(trials: int) -> None:
    task, source = dense_relu(64, 96, 48), SketchSampler(dense_relu(64, 96, 48))

    def begun() -> Context:
        return Context(task, source, AnalyticModel(), np.random.default_rng(0))

    strategy, at = Evolution(population=160), begun()
    offered = strategy.ask(at, trials).best
    assert [c.key for c in offered] == [c.key for c in unmeasured(begun()).best]
    at.note(offered[:1])
    strategy.tell([(offered[0], ok(1.0))])
    assert offered[0].key not in {c.key for c in strategy.ask(at, trials).best}
