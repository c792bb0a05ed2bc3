"""What searches take over from earlier trials, of the same task and of similar ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.boosted import BoostedTrees
from ansorpy.cost.programs import Programs
from ansorpy.errors import ScheduleError
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.known_trials import KnownTrials
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.schedule.space import Table
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.base import Step
from ansorpy.search.population import Candidate, Key, Pool, SketchSource
from ansorpy.search.selectors.kmeans import KMeans
from ansorpy.search.strategies.evolution import Evolution
from ansorpy.search.strategies.sampling import Sampling
from ansorpy.search.strategy import Context, Results, Strategy
from ansorpy.search.task_search import SearchOptions, TaskSearch
from ansorpy.search.transfers import TRANSFERS
from ansorpy.search.transfers.schedule_reuse import ScheduleReuse, distance
from ansorpy.search.trials import MeasuredTrials
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.tune import TuneOptions, WeightedTask, tune_tasks
from tests.measure.raw import execute
from tests.search.runners import FormulaRunner
from tests.search.small import TREES
from tests.search.tasks import dense_relu, matmul, sampler, scale


@dataclass
class Hearing(Sampling):
    """A strategy that remembers what it was told."""

    told: list[tuple[Candidate, MeasureResult]] = field(default_factory=list)

    def tell(self, found: Results) -> None:
        self.told += found


def search(
    task: Task,
    database: Database,
    runner: FormulaRunner,
    *,
    transfer: str = "both",
    strategy: type[Strategy] = Evolution,
    seed: int = 0,
) -> TaskSearch:
    options = SearchOptions(strategy=strategy, transfer=TRANSFERS.one(transfer), seed=seed)
    trials = MeasuredTrials(runner, database)
    return TaskSearch(task, sampler(task), TREES(), trials, options)


def rounds(found: TaskSearch, trials: int) -> TaskSearch:
    while found.history.trials < trials:
        found.step(min(8, trials - found.history.trials))
    return found


def context(task: Task, source: SketchSource, database: Database) -> tuple[Context, KnownTrials]:
    rng = np.random.default_rng(0)
    return Context(task, source, TREES(), rng), KnownTrials(database)


WITH_ANY_MODEL = [name for name in TRANSFERS.names if name != "momentum"]
"""Momentum needs a network (``tests/cost/neural/test_teacher.py``)."""


@pytest.mark.parametrize("transfer", WITH_ANY_MODEL)
def test_earlier_trials_count_and_none_is_measured_again(tmp_path: Path, transfer: str) -> None:
    task, runner = dense_relu(48, 48, 48), FormulaRunner()
    with Database(tmp_path / "a.db") as database:
        before = rounds(search(task, database, runner, strategy=Sampling), 16)
    with Database(tmp_path / "a.db") as database:
        found = search(task, database, runner, transfer=transfer, strategy=Hearing)
        found.resume()
        assert isinstance(found.strategy, Hearing)
        heard = {c.key for c, _ in found.strategy.told}
        marked = set(found.context.measured)
        assert found.history.trials == 16 and found.history.best_s == before.history.best_s
        assert (found.history.since_gain, found.history.rounds) == (0, 0)
        assert [str(b.state.history) for b in found.history.finalists] == [
            str(b.state.history) for b in before.history.finalists
        ]
        rounds(found, 24)
    defaults = "" in runner.seen
    assert len(runner.seen) == len(set(runner.seen)) == 24
    assert len(marked) == 16 - defaults
    assert heard == (marked if TRANSFERS.one(transfer).own else set())


@pytest.mark.parametrize("transfer", WITH_ANY_MODEL)
def test_programs_of_others_come_first_where_the_tasks_own_trials_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transfer: str
) -> None:
    task, runner = dense_relu(48, 48, 48), FormulaRunner()
    with monkeypatch.context() as other:
        other.setenv("ANSORPY_STATE", str(tmp_path / "other"))
        with Database(tmp_path / "a.db") as database:
            theirs = rounds(search(task, database, FormulaRunner(), strategy=Sampling), 8)
    with Database(tmp_path / "a.db") as database:
        search(task, database, runner, transfer=transfer, strategy=Sampling, seed=1).step(8)
    fastest = {str(best.state.history) for best in theirs.history.finalists} - {""}
    assert bool(fastest & {*runner.seen}) == TRANSFERS.one(transfer).own


def test_programs_that_cannot_be_made_are_recorded_like_other_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, runner = dense_relu(48, 48, 48), FormulaRunner()
    version, _ = BoostedTrees().remembers
    resolve, refused = PlacedSketch.resolve, set[tuple[str, bytes]]()

    def picky(sketch: PlacedSketch, row: Sequence[int] | Table) -> State:
        key = sketch.key, np.asarray(row).tobytes()
        if sum(row) % 3 == 0:
            refused.add(key)
            raise ScheduleError("there is no such loop")
        return resolve(sketch, row)

    monkeypatch.setattr(PlacedSketch, "resolve", picky)
    with Database(tmp_path / "a.db") as database:
        before = rounds(search(task, database, runner, strategy=Sampling), 24)
        count, reason = database.failures(task.key)[TrialKind.LOWER_ERROR]
        assert count == len(refused) == before.history.failures[TrialKind.LOWER_ERROR] > 0
        assert reason == "there is no such loop" and database.trials(task.key) == 24
        assert len(database.samples.known(task.key, version)) == 24
    with Database(tmp_path / "a.db") as database:
        found = search(task, database, runner, strategy=Sampling)
        found.resume()
        assert found.history.failures == before.history.failures
        assert refused <= found.context.measured


def test_a_resumed_evolution_breeds_from_earlier_trials(tmp_path: Path) -> None:
    task, runner = dense_relu(96, 96, 96), FormulaRunner()
    with Database(tmp_path / "a.db") as database:
        rounds(search(task, database, runner, strategy=Sampling), 16)
        found = search(task, database, runner)
        found.resume()
        pool = found.strategy.ask(found.context, 8)
        [best, *_] = found.history.finalists
        state = best.state
    measured = {key for key, _ in found.context.measured}
    bred = {c.sketch.key for c in pool.best}
    assert bred & measured
    assert not {c.key for c in pool.best} & found.context.measured
    assert str(state.history) in runner.seen


def test_what_the_model_learned_is_kept_and_learned_again(tmp_path: Path) -> None:
    task, runner = dense_relu(96, 96, 96), FormulaRunner()
    version, width = BoostedTrees().remembers
    with Database(tmp_path / "a.db") as database:
        first = rounds(search(task, database, runner, strategy=Sampling), 16)
        kept = database.samples.of([task.key], version, width)[task.key]
        again = search(task, database, runner)
        again.resume()
    old, new = first.context.model, again.context.model
    assert isinstance(old, BoostedTrees) and isinstance(new, BoostedTrees)
    expected, got = old.data.tasks[task.key], new.data.tasks[task.key]
    assert len(kept) == 16 and got.seconds == kept.seconds.tolist()
    seconds_of = {
        features.tobytes(): seconds
        for features, seconds in zip(expected.features, expected.seconds, strict=True)
    }
    for features, seconds in zip(got.features, got.seconds, strict=True):
        assert seconds_of[features.tobytes()] == seconds


def test_trials_without_samples_are_learned_from_their_sketches(tmp_path: Path) -> None:
    task, runner = dense_relu(96, 96, 96), FormulaRunner()
    version, width = BoostedTrees().remembers
    with Database(tmp_path / "a.db") as database:
        rounds(search(task, database, runner, strategy=Sampling), 16)
        before = database.samples.of([task.key], version, width)[task.key]
        execute(database.path, "DELETE FROM samples")
        search(task, database, runner).resume()
        after = database.samples.of([task.key], version, width)[task.key]
    assert before.seconds.tolist() == after.seconds.tolist()
    for one, other in zip(before.features, after.features, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_run_learns_from_other_tasks_of_the_machine(tmp_path: Path) -> None:
    old, new = (WeightedTask(t, sampler(t)) for t in (scale(64), matmul(24, 24, 24)))
    counted: list[int] = []

    class Counting(BoostedTrees):
        def refit(self) -> None:
            counted.append(len(self.data))
            super().refit()

    for transfer in ("history_best", "schedule_reuse"):
        path = tmp_path / f"{transfer}.db"
        choices = SearchOptions(strategy=Sampling, transfer=TRANSFERS.one(transfer))
        options = TuneOptions(choices, model=Counting, retime=False)
        with Database(path) as database:
            tune_tasks([old], Budget(trials=8), FormulaRunner(), database=database, options=options)
            counted.clear()
            tune_tasks([new], Budget(trials=2), FormulaRunner(), database=database, options=options)
        assert (counted[0] >= 7) == TRANSFERS.one(transfer).others


def test_every_second_of_the_first_candidates_is_a_similar_tasks(tmp_path: Path) -> None:
    near, far, new = dense_relu(96, 128, 64), dense_relu(16, 512, 8), dense_relu(128, 128, 96)
    runner = FormulaRunner()
    with Database(tmp_path / "a.db") as database:
        for task in (far, near):
            found = search(task, database, runner, strategy=Sampling)
            found.resume()
            rounds(found, 16)
        found = search(new, database, runner)
        given = context(new, found.context.source, database)
        offered = ScheduleReuse().first(*given)[:3]
        assert len(offered) == 3
        assert all(c.sketch.space.contains(c.row) for c in offered)
        seen = len(runner.seen)
        found.step(8)
        assert found.history.trials == 8
        assert runner.seen[seen + 1 : seen + 6 : 2] == [str(c.state().history) for c in offered]
    assert distance(new.dag, near.dag) < distance(new.dag, far.dag)


def test_schedules_of_a_task_that_was_hardly_searched_are_not_taken_over(tmp_path: Path) -> None:
    near, new, runner = dense_relu(96, 128, 64), dense_relu(128, 128, 96), FormulaRunner()
    with Database(tmp_path / "a.db") as database:
        before = search(near, database, runner, strategy=Sampling)
        before.resume()
        for trials, offered in ((8, False), (11, False), (12, True)):
            rounds(before, trials)
            found = search(new, database, runner)
            given = context(new, found.context.source, database)
            assert bool(ScheduleReuse().first(*given)) == offered
            assert ScheduleReuse(programs=8).first(*given)


def test_small_rounds_measure_everything_that_was_taken_over(tmp_path: Path) -> None:
    near, new, runner = dense_relu(96, 128, 64), dense_relu(128, 128, 96), FormulaRunner()
    with Database(tmp_path / "a.db") as database:
        before = search(near, database, runner, strategy=Sampling)
        before.resume()
        rounds(before, 16)
        found = search(new, database, runner)
        given = context(new, found.context.source, database)
        nearest = [str(c.state().history) for c in ScheduleReuse(neighbours=1).first(*given)]
        reuse = SearchOptions(transfer=ScheduleReuse(neighbours=1))
        trials = MeasuredTrials(runner, database)
        found = TaskSearch(new, sampler(new), TREES(), trials, reuse)
        for _ in range(1 + len(nearest)):
            found.step(2)
        assert len(nearest) > 2 and set(nearest) <= set(runner.seen)


def test_only_the_schedules_that_are_measured_are_refitted(tmp_path: Path) -> None:
    near, new, runner = dense_relu(96, 128, 64), dense_relu(128, 128, 96), FormulaRunner()
    asked: list[str] = []

    class Counting(SketchSampler):
        """Counts the schedules that are re-fitted."""

        def refit(
            self, definition: str, schedule: Sequence[Step], n: int, rng: np.random.Generator
        ) -> Iterator[tuple[PlacedSketch, Table]]:
            for found in super().refit(definition, schedule, n, rng):
                asked.append(definition)
                yield found

    with Database(tmp_path / "a.db") as database:
        before = search(near, database, runner, strategy=Sampling)
        before.resume()
        rounds(before, 16)
        source = Counting(new)
        given = context(new, source, database)
        assert len(ScheduleReuse(candidates=2).first(*given)) == 2
    assert len(asked) == 2 < len(source.sketches)


class Offering(ScheduleReuse):
    """Begins with random programs, whose scores are a model's of another day."""

    def first(self, context: Context, trials: KnownTrials) -> list[Candidate]:
        [(sketch, table)] = context.samples(1, 12)
        return [Candidate(sketch, row, 7.0) for row in table]


def test_programs_that_a_selector_made_have_scores_of_the_model() -> None:
    task, model, offered = dense_relu(32, 48, 24), AnalyticModel(), set[Key]()

    class Offered(Hearing):
        def ask(self, context: Context, n: int) -> Pool:
            pool = super().ask(context, n)
            offered.update(candidate.key for candidate in (*pool.best, *pool.random))
            return pool

    strategy = Offered(sketches=1)
    options = SearchOptions(lambda: strategy, KMeans(step=2))
    trials = MeasuredTrials(FormulaRunner(), Database())
    TaskSearch(task, sampler(task), model, trials, options).step(16)
    made = [candidate for candidate, _ in strategy.told if candidate.key not in offered]
    assert made
    for candidate in made:
        [expected] = model.predict(task, Programs(candidate.sketch.space, candidate.row[None]))
        assert candidate.score == pytest.approx(expected)


def test_programs_of_earlier_trials_have_scores_of_todays_model_too() -> None:
    """What a round measured is compared with its scores, so these must be of one model."""
    task = dense_relu(32, 48, 24)
    options = SearchOptions(strategy=Hearing, transfer=Offering())
    found = TaskSearch(
        task, sampler(task), TREES(), MeasuredTrials(FormulaRunner(), Database()), options
    )
    found.step(8)
    assert isinstance(found.strategy, Hearing)
    scores = [candidate.score for candidate, _ in found.strategy.told]
    assert len(scores) == 8 and 7.0 not in scores and min(scores) > 0


class Barren(Strategy):
    """Has nothing to offer."""

    def ask(self, context: Context, n: int) -> Pool:
        return Pool(())


def test_all_that_is_reused_is_tried_even_in_rounds_of_one_trial() -> None:
    """Half of the trials are the strategy's, but this one has none."""
    options = SearchOptions(strategy=Barren, transfer=Offering())
    trials = MeasuredTrials(FormulaRunner(), Database())
    task = dense_relu(32, 48, 24)
    found = TaskSearch(task, sampler(task), AnalyticModel(), trials, options)
    while not found.exhausted:
        found.step(1)
    assert found.history.trials >= 12, "as many as are offered"
