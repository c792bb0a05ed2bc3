"""Strategies, each on its own: what only it promises."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import StaticModel
from ansorpy.errors import MissingDependency
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.schedule.space import Space, Table
from ansorpy.search.population import Candidate, Pool, sample_valid, score
from ansorpy.search.strategies import STRATEGIES
from ansorpy.search.strategies.annealing import Annealing, stepped
from ansorpy.search.strategies.droplet import Droplet
from ansorpy.search.strategies.grid import Grid
from ansorpy.search.strategies.sequence import Then
from ansorpy.search.strategy import Context, Results
from ansorpy.search.task_search import SearchOptions, TaskSearch
from ansorpy.search.trials import MeasuredTrials
from tests.search.asking import bowl, context, measured, ok, predicted
from tests.search.runners import FormulaRunner
from tests.search.small import small_strategy
from tests.search.tasks import matmul, sampler, scale

EVERY = pytest.mark.parametrize("name", STRATEGIES.names)


@EVERY
def test_offers_are_valid_new_and_the_same_for_the_same_seed(name: str) -> None:
    runs = []
    task = matmul(24, 24, 24)
    for source in (sampler(task), SketchSampler(task)):  # what others have asked for is no matter
        at = context(seed=5, source=source)
        tried = measured(small_strategy(name)(), at, predicted, rounds=2)
        assert len({c.key for c in tried}) == len(tried) == 16
        assert all(c.sketch.valid(c.row[None])[0] for c in tried)
        assert all(c.sketch.space.within(c.row[None])[0] for c in tried)
        runs.append([c.key for c in tried])
    assert runs[0] == runs[1]


@EVERY
def test_failures_end_no_strategy(name: str) -> None:
    strategy, at = small_strategy(name)(), context()
    for _ in range(2):
        picked = strategy.ask(at, 8).best[:8]
        assert picked
        at.note(picked)
        strategy.tell([(c, MeasureResult(TrialKind.CRASH, reason="crash")) for c in picked])


@EVERY
def test_nothing_is_offered_where_nothing_is_valid(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def barren(space: Space, table: Table, *_: Table) -> npt.NDArray[np.bool_]:
        return np.zeros(len(table), dtype=np.bool_)

    monkeypatch.setattr(Space, "valid", barren)
    monkeypatch.setattr(Space, "possible", barren)
    at = context(source=SketchSampler(matmul(24, 24, 24)))  # spaces remember what is possible
    assert small_strategy(name)().ask(at, 8).best == ()


class Indifferent(StaticModel):
    """Scores all programs the same."""

    def predict(self, task: Task, programs: Programs) -> Floats:
        return np.full(len(programs), 7.0)


@EVERY
def test_scores_that_are_all_the_same_will_do(name: str) -> None:
    at = context(model=Indifferent())
    tried = measured(small_strategy(name)(), at, predicted, rounds=2)
    assert len({c.key for c in tried}) == 16
    assert all(np.isfinite(c.score) for c in tried)


@pytest.mark.parametrize("name", ["flextensor", "chameleon", "rl", "harl"])
def test_without_torch_a_learned_policy_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependency, match="the policy of the strategy .* needs torch") as e:
        STRATEGIES.factory(name)()
    assert e.value.hint == "pip install 'ansorpy[torch]'"


@pytest.mark.parametrize("task", [scale(60), matmul(1, 2, 2)], ids=lambda task: task.name)
def test_the_grid_visits_every_program_once_and_then_ends(task: Task) -> None:
    source = sampler(task)
    at = Context(task, source, AnalyticModel(), np.random.default_rng(0))
    tried = measured(Grid(chunk=700), at, predicted, rounds=10_000, n=300)
    expected = 0
    for sketch in source.every():
        rows = sketch.space.rows(0, sketch.space.size)
        expected += len(np.unique(rows[sketch.valid(rows)], axis=0))
    assert len({c.key for c in tried}) == len(tried) == expected > 20
    drawn = source.draw(20, np.random.default_rng(1))
    assert {s.key for s in drawn} <= {c.sketch.key for c in tried}


def test_the_grid_offers_again_what_was_not_picked() -> None:
    at, grid = context(), Grid()
    first = grid.ask(at, 8).best
    at.note(first[:3])
    assert [c.key for c in grid.ask(at, 8).best[:5]] == [c.key for c in first[3:]]


def test_the_grid_looks_no_further_than_its_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    tested: list[bytes] = []

    def barren(sketch: PlacedSketch, table: Table) -> npt.NDArray[np.bool_]:
        tested.append(table.tobytes())
        assert len(table) <= 50
        return np.zeros(len(table), dtype=np.bool_)

    monkeypatch.setattr(PlacedSketch, "valid", barren)
    at, grid = context(n=1024), Grid(chunk=50, reach=6)
    for asked in (1, 2, 3):
        assert grid.ask(at, 8) == Pool((), more=True)
        assert len(set(tested)) == len(tested) == 6 * asked, "it goes on where it was"


def test_a_task_is_not_exhausted_where_the_grid_may_find_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = scale(60)
    database, options = Database(), SearchOptions(lambda: Grid(chunk=8, reach=2))
    trials = MeasuredTrials(FormulaRunner(), database)
    search = TaskSearch(task, sampler(task), AnalyticModel(), trials, options)
    monkeypatch.setattr(
        PlacedSketch, "valid", lambda _, table: np.zeros(len(table), dtype=np.bool_)
    )
    assert search.step(4) == 1 and not search.exhausted, "the default schedule"
    rounds = 1
    while not search.exhausted:
        assert search.step(4) == 0
        rounds += 1
    assert rounds > 2


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_droplet_runs_down_to_the_bottom(seed: int) -> None:
    at, droplet = context(n=32), Droplet()
    basin, start = bowl(at, seed)
    droplet.tell([(start, ok(basin(start)))])
    tried = measured(droplet, at, basin, rounds=40)
    best = min(basin(c) for c in tried)
    assert best == 1.0, "the goal itself"
    assert len(tried) <= 320


def test_the_droplet_ends_when_all_around_is_measured() -> None:
    at = context(n=8)
    droplet = Droplet(radius=2)
    basin, start = bowl(at, 0)
    at.note([start])
    droplet.tell([(start, ok(basin(start)))])
    flat = measured(droplet, at, lambda c: 9.0, rounds=200)
    assert 0 < len(flat) < 200
    assert droplet.ask(at, 8) == Pool(())


def test_noise_alone_does_not_move_the_droplet() -> None:
    at, droplet = context(), Droplet()
    _, start = bowl(at, 0)
    droplet.tell([(start, ok(1.0, 1.1, 0.9))])
    around = droplet.ask(at, 8).best
    droplet.tell([(around[0], ok(0.99, 1.09, 0.89))])
    assert [c.key for c in droplet.ask(at, 8).best] == [c.key for c in around]
    droplet.tell([(around[0], ok(0.5, 0.51, 0.49))])
    assert [c.key for c in droplet.ask(at, 8).best] != [c.key for c in around]


@dataclass
class Fixed:
    """Offers *left*, and notes what it hears."""

    left: list[Candidate]
    heard: list[Candidate] = field(default_factory=list)

    def ask(self, context: Context, n: int) -> Pool:
        return Pool(tuple(c for c in self.left if c.key not in context.measured))

    def tell(self, found: Results) -> None:
        self.heard += [c for c, _ in found]


def test_the_second_strategy_follows_and_the_first_takes_over_again() -> None:
    at = context()
    [sketch, *_] = at.source.draw(1, at.rng)
    rows = np.unique(sketch.sample(64, at.rng), axis=0)
    made = [Candidate(sketch, row, 1.0) for row in rows[:10]]
    first, second = Fixed(made[:7]), Fixed(made[7:])
    tried = measured(Then(first, 4, second), at, predicted, rounds=9, n=2)
    keys = [c.key for c in made]
    order = [keys.index(c.key) for c in tried]
    assert order == [0, 1, 2, 3, 7, 8, 9, 4, 5, 6]
    assert Then(first, 0, second).ask(context(), 5).best[:5] == (*made[7:], *made[:2])
    assert first.heard == second.heard == tried


def test_annealing_finds_what_sampling_as_much_does_not() -> None:
    """Same number of model calls, same placed sketches to choose from."""

    def best(steps: int, chains: int, seed: int) -> float:
        strategy = Annealing(sketches=4, chains=chains, steps=steps)
        return max(c.score for c in strategy.ask(context(seed, n=384), 8).best)

    gains = [best(12, 48, s) / best(0, 13 * 48, s) for s in range(2)]
    assert np.mean(gains) > 1.0


def test_chains_climb_when_cold_and_wander_when_hot() -> None:
    at = context(n=96)
    [sketch, *_] = at.source.draw(1, at.rng)
    start = score(at.task, at.model, sketch, sample_valid(sketch, 200, at.rng))
    [cold], [hot] = stepped([start], 0.0, at), stepped([start], 1e9, at)
    assert (cold.scores >= start.scores).all() and (cold.scores > start.scores).any()
    assert (hot.scores < start.scores).any() and (hot.scores > start.scores).any()
    for group in (cold, hot):
        again = score(at.task, at.model, sketch, group.table)
        np.testing.assert_array_equal(again.scores, group.scores)
        assert sketch.valid(group.table).all()


def test_the_better_chains_go_on() -> None:
    at, strategy = context(), Annealing(sketches=4, chains=32, steps=2)
    before = strategy.ask(at, 8)
    at.note(before.best[:8])
    after = strategy.ask(at, 8)
    known = {c.sketch.key for c in before.best}
    assert known & {c.sketch.key for c in after.best}
    assert not at.measured & {c.key for c in (*after.best, *after.random)}
