"""The driver, its strategies and selectors, on a machine that is a formula."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.boosted import BoostedTrees
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import CostModel, StaticModel
from ansorpy.errors import NoValidProgram
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.result import MeasureResult, TrialKind, out_of_time
from ansorpy.measure.run.interfaces import Runner
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.state import State
from ansorpy.search.events import Listener, Phase, Progress, silent
from ansorpy.search.population import (
    Pool,
    by_sketch,
    sample_valid,
    score,
    score_all,
    scored_again,
    top,
)
from ansorpy.search.strategies.evolution import Evolution, crossover, genes
from ansorpy.search.strategies.random import RandomSearch
from ansorpy.search.strategies.sampling import Sampling
from ansorpy.search.strategy import Context, Strategy
from ansorpy.search.task_search import SearchOptions, TaskSearch
from ansorpy.search.trials import MeasuredTrials
from tests.search.runners import FormulaRunner, true_seconds
from tests.search.small import EVOLUTION, RANKED_SAMPLING, SAMPLING, TREES
from tests.search.tasks import dense_relu, matmul, sampler, scale

pytestmark = pytest.mark.whole_search


def search(
    task: Task,
    runner: Runner | None = None,
    model: CostModel | None = None,
    listener: Listener = silent,
    database: Database | None = None,
    strategy: Callable[[], Strategy] = EVOLUTION,
    seed: int = 0,
    source: SketchSampler | None = None,
) -> TaskSearch:
    records = database or Database()
    return TaskSearch(
        task,
        source or sampler(task),
        model or TREES(),
        MeasuredTrials(runner or FormulaRunner(), records),
        SearchOptions(strategy=strategy, seed=seed),
        listener,
    )


def rounds(found: TaskSearch, trials: int, size: int = 8) -> TaskSearch:
    while found.history.trials < trials and not found.exhausted:
        found.step(min(size, trials - found.history.trials))
    return found


def best_s(found: TaskSearch) -> float:
    assert found.history.best_s is not None
    return found.history.best_s


class Blind(StaticModel):
    """A cost model that knows nothing."""

    def predict(self, task: Task, programs: Programs) -> Floats:
        return np.ones(len(programs))


@pytest.mark.parametrize(
    "strategy", [EVOLUTION, RANKED_SAMPLING, SAMPLING], ids=["evolution", "sampling", "random"]
)
def test_spends_exactly_its_trials_and_never_one_twice(strategy: Callable[[], Strategy]) -> None:
    runner = FormulaRunner()
    found = rounds(search(matmul(48, 48, 48), runner, strategy=strategy), 24)
    assert found.history.trials == 24
    assert len(runner.seen) == len(set(runner.seen)) == 24


def test_learning_beats_sampling_blindly() -> None:
    task, small = matmul(96, 96, 96), partial(Sampling, population=128)
    learnt: list[float] = []
    blind: list[float] = []
    for seed in range(2):
        trees = search(task, strategy=small, seed=seed)
        learnt.append(best_s(rounds(trees, 40)))
        blind_search = search(task, model=Blind(), strategy=small, seed=seed)
        blind.append(best_s(rounds(blind_search, 40)))
    assert np.mean(learnt) < 0.93 * np.mean(blind)


def test_the_same_seed_gives_the_same_history() -> None:
    task = matmul(24, 36, 48)
    one, two = FormulaRunner(), FormulaRunner()
    rounds(search(task, one, seed=3, source=SketchSampler(task)), 16)
    rounds(search(task, two, seed=3, source=SketchSampler(task)), 16)
    assert one.seen == two.seen
    three = FormulaRunner()
    rounds(search(task, three, seed=4), 16)
    assert three.seen != one.seen


def test_a_space_of_few_programs_is_exhausted_not_repeated() -> None:
    runner = FormulaRunner()
    found = rounds(search(scale(7), runner), 200)
    assert found.exhausted
    assert len(runner.seen) == len(set(runner.seen)) < 200


def test_a_strategy_that_repeats_itself_ends_the_search() -> None:
    class Stubborn(Sampling):
        """Offers the same program for ever."""

        def ask(self, context: Context, n: int) -> Pool:
            [sketch, *_] = context.source.draw(1, np.random.default_rng(0))
            table = sample_valid(sketch, 1, np.random.default_rng(0))
            return Pool(tuple(score(context.task, context.model, sketch, table).candidates()))

    found = search(matmul(16, 16, 16), strategy=Stubborn)
    for _ in range(3):
        found.step(4)
    assert found.exhausted and found.history.trials <= 2


def test_never_slower_than_the_default_schedule() -> None:
    """Everything but the default schedule fails."""
    default = str(State.initial(matmul(8, 8, 8).dag).history)
    broken = MeasureResult(TrialKind.CRASH, reason="it crashed")
    runner = FormulaRunner(fails=lambda s, n: None if str(s.history) == default else broken)
    found = rounds(search(matmul(8, 8, 8), runner), 8)
    assert found.history.best and str(found.history.best.state.history) == default
    assert found.history.failures == {TrialKind.CRASH: 7}


def test_a_default_that_is_certain_to_lose_is_not_measured() -> None:
    runner = FormulaRunner()
    rounds(search(matmul(256, 256, 256), runner), 8)
    assert "" not in runner.seen


def test_all_failures_are_counted_and_the_first_of_each_kind_is_told_in_full() -> None:
    kinds = [TrialKind.CRASH, TrialKind.WRONG_RESULT]
    runner = FormulaRunner(
        fails=lambda s, n: MeasureResult(kinds[n % 2], reason=f"first line {n}\nsecond line {n}")
    )
    found = rounds(search(matmul(16, 16, 16), runner), 6, size=6)
    error = found.history.no_valid_program("matmul")
    assert isinstance(error, NoValidProgram)
    text = str(error)
    assert "none of 6 trials" in text and "3 crash" in text and "3 wrong_result" in text
    assert "first line 1" in text and "second line 2" in text and "line 3" not in text


def test_progress_is_reported() -> None:
    reports: list[Progress] = []
    rounds(search(matmul(32, 32, 32), listener=reports.append), 16)
    assert [r.trials for r in reports if r.phase is Phase.SEARCHING] == list(range(1, 17))
    best = [r.best_s for r in reports if r.best_s is not None]
    assert best == sorted(best, reverse=True)
    rounds_reported = [r for r in reports if r.phase is Phase.MEASURED]
    [first, second] = [r.correlation for r in rounds_reported]
    assert first is not None and second is not None
    assert -1 <= first <= 1 and -1 <= second <= 1


def test_retiming_reorders_the_finalists() -> None:
    runner = FormulaRunner(noise=0.5)
    found = rounds(search(matmul(48, 48, 48), runner), 8)
    first_s = found.history.finalists[0].seconds
    found.retime()
    times = [best.seconds for best in found.history.finalists]
    assert times == sorted(times)
    true = [true_seconds(found.task, b.state) for b in found.history.finalists]
    np.testing.assert_allclose(np.divide(times, times[0]), np.divide(true, true[0]))
    assert times[0] == pytest.approx(first_s)  # only ratios are taken over


class Unbuilding(FormulaRunner):
    """A runner that cannot build the first finalist again."""

    def retime(self, task: Task, candidates: Sequence[State]) -> list[MeasureResult]:
        lost = MeasureResult(TrialKind.BUILD_ERROR, reason="no room")
        timed = super().retime(task, candidates[1:])
        assert timed is not None
        return [lost, *timed]


def test_a_finalist_that_is_lost_leaves_its_time_to_no_other() -> None:
    found = rounds(search(matmul(48, 48, 48), Unbuilding(noise=0.5)), 8)
    lost, second, *_ = found.history.finalists
    found.retime()
    assert lost.state not in [best.state for best in found.history.finalists]
    assert found.history.best_s == pytest.approx(second.seconds) != lost.seconds


class Alone(FormulaRunner):
    """A runner that has lost all its machines by the end."""

    def retime(self, task: Task, candidates: Sequence[State]) -> None:
        return None


class Late(FormulaRunner):
    """A runner that has no time left for the first finalist."""

    def retime(self, task: Task, candidates: Sequence[State]) -> list[MeasureResult]:
        timed = super().retime(task, candidates[1:])
        assert timed is not None
        return [out_of_time(), *timed]


@pytest.mark.parametrize("make", [Alone, Late])
def test_finalists_that_cannot_all_be_timed_again_stay_as_they_are(
    tmp_path: Path, make: type[FormulaRunner]
) -> None:
    reports: list[Progress] = []
    with Database(tmp_path / "a.db") as database:
        task, runner = matmul(48, 48, 48), make(noise=0.5)
        found = rounds(search(task, runner, database=database, listener=reports.append), 8)
        before, records = list(found.history.finalists), database.records(task.key)
        found.retime()
        assert list(found.history.finalists) == before and len(before) > 1
        assert not found.history.retimed
        assert database.records(task.key) == records
    assert reports[-1].phase is Phase.RETIMED


@dataclass
class Compiling(FormulaRunner):
    """Its results name the code, which *version* is part of."""

    version: str = "1"

    def answer(self, task: Task, state: State) -> MeasureResult:
        return replace(super().answer(task, state), object_digest=self._digest(state))

    def retime(self, task: Task, candidates: Sequence[State]) -> list[MeasureResult]:
        timed = super().retime(task, candidates) or []
        digests = map(self._digest, candidates)
        return [replace(r, object_digest=d) for r, d in zip(timed, digests, strict=True)]

    def _digest(self, state: State) -> str:
        return f"{self.version}: {state.history}"


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_time_is_recorded_only_with_the_code_that_took_it(tmp_path: Path, version: str) -> None:
    task = matmul(48, 48, 48)
    with Database(tmp_path / "a.db") as database:
        rounds(search(task, Compiling(noise=0.5), database=database), 8)
        before = database.records(task.key)
    with Database(tmp_path / "a.db") as database:
        found = search(task, Compiling(version=version), database=database)
        found.resume()
        finalists = list(found.history.finalists)
        found.retime()
        assert len(finalists) > 1 and found.history.retimed == (version == "1")
        assert (found.history.finalists == finalists) == (version == "2")
        assert (database.records(task.key) == before) == (version == "2")


class FirstChanged(Compiling):
    """The first program is built to other code again."""

    def retime(self, task: Task, candidates: Sequence[State]) -> list[MeasureResult]:
        first, *others = super().retime(task, candidates)
        return [replace(first, object_digest="other"), *others]


def test_a_finalist_of_other_code_keeps_its_time(tmp_path: Path) -> None:
    found = rounds(search(matmul(48, 48, 48), FirstChanged(noise=0.5)), 8)
    first, *others = found.history.finalists
    found.retime()
    after = {best.state: best.seconds for best in found.history.finalists}
    assert found.history.retimed and after[first.state] == first.seconds
    assert len(after) == 1 + len(others) and after[others[1].state] != others[1].seconds


def test_finalists_of_a_run_that_stopped_are_timed_again_by_the_next(tmp_path: Path) -> None:
    task = matmul(48, 48, 48)
    with Database(tmp_path / "a.db") as database:
        found = rounds(search(task, FormulaRunner(noise=0.5), database=database), 8)
        found.retime()
        best, *_ = found.history.finalists
    near = MeasureResult(TrialKind.OK, (1.01 * best.seconds,))
    with Database(tmp_path / "a.db") as database:
        found = search(task, FormulaRunner(fails=lambda s, n: near), database=database)
        found.resume()
        assert found.history.retimed
        assert found.step(1) == 1 and found.history.best_s == best.seconds
        assert not found.history.retimed
    with Database(tmp_path / "a.db") as database:
        found = search(task, database=database)
        found.resume()
        assert not found.history.retimed
        found.retime()
    with Database(tmp_path / "a.db") as database:
        found = search(task, database=database)
        found.resume()
        assert found.history.retimed


def test_resume_goes_on_from_the_records(tmp_path: Path) -> None:
    task, runner = matmul(48, 48, 48), FormulaRunner()
    with Database(tmp_path / "a.db") as database:
        before = rounds(search(task, runner, database=database), 16)
    with Database(tmp_path / "a.db") as database:
        found = search(task, runner, database=database)
        found.resume()
        assert found.history.trials == 16
        assert found.history.best_s == before.history.best_s
        rounds(found, 24)
        assert database.trials(task.key) == 24
    assert len(runner.seen) == len(set(runner.seen)) == 24


def test_an_interrupt_keeps_finished_trials_and_takes_back_the_rest(tmp_path: Path) -> None:
    def stop(state: State, number: int) -> MeasureResult | None:
        if number == 7:
            raise KeyboardInterrupt
        return None

    task = matmul(48, 48, 48)
    with Database(tmp_path / "a.db") as database:
        found = search(task, FormulaRunner(fails=stop), database=database)
        with pytest.raises(KeyboardInterrupt):
            found.step(12)
        assert database.trials(task.key) == found.history.trials == 6
        stored = database.best(task.key)
        assert stored and found.history.best_s == stored.median_s


@dataclass
class Holding(FormulaRunner):
    """Counts how often the cores are held."""

    held: int = 0

    def computing(self) -> AbstractContextManager[None]:
        self.held += 1
        return nullcontext()

    def time_after(self, work: Future[Any]) -> None:
        """Nothing is timed."""


def test_the_cores_are_held_as_often_for_many_programs_as_for_one() -> None:
    runner = Holding()
    found = search(matmul(48, 48, 48), runner)
    found.step(2)
    held = []
    for trials in (1, 8):
        before = runner.held
        assert found.step(trials) == trials
        held.append(runner.held - before)
    assert held[0] == held[1]


def test_what_was_measured_since_it_was_asked_for_takes_no_trial() -> None:
    found = search(matmul(48, 48, 48), strategy=SAMPLING)
    found.step(2)
    asked = found.ask_ahead(4)
    assert asked is not None
    found.context.note(asked.result().best[:3])
    assert found.step(4) == 4


def test_genes_keep_the_factors_of_a_split_together() -> None:
    rng = np.random.default_rng(0)
    [sketch, *_] = sampler(matmul(24, 24, 24)).draw(1, rng)
    space = sketch.space
    groups = genes(space)
    assert sorted(c for g in groups for c in g) == list(range(len(space.columns)))
    one, other = space.sample(50, rng), space.sample(50, rng)
    child = crossover(space, one, other, rng)
    for columns in groups:
        from_one = (child[:, columns] == one[:, columns]).all(axis=1)
        from_other = (child[:, columns] == other[:, columns]).all(axis=1)
        assert (from_one | from_other).all()
    assert (child != one).any() and (child != other).any()


def test_evolution_improves_on_its_first_generation() -> None:
    task = dense_relu(64, 96, 128)
    source = sampler(task)

    def best(generations: int, seed: int) -> float:
        context = Context(task, source, AnalyticModel(), np.random.default_rng(seed))
        pool = Evolution(population=128, generations=generations).ask(context, 8)
        return max(c.score for c in pool.best)

    gains = [best(6, seed) / best(0, seed) for seed in range(2)]
    assert min(gains) >= 1
    assert np.mean(gains) > 1.01


def test_pools_hold_no_measured_candidate() -> None:
    task = matmul(12, 12, 12)
    context = Context(task, sampler(task), AnalyticModel(), np.random.default_rng(0))
    pool = EVOLUTION().ask(context, 8)
    context.note((*pool.best, *pool.random))
    again = EVOLUTION().ask(context, 8)
    assert not context.measured & {c.key for c in (*again.best, *again.random)}


def test_what_was_prepared_is_scored_by_the_model_of_the_day() -> None:
    task, trees = dense_relu(16, 32, 64), TREES()
    at = Context(task, sampler(task), trees, np.random.default_rng(0))
    strategy = EVOLUTION(population=128)
    picked = strategy.ask(at, 8).best[:8]
    at.note(picked)
    strategy.prepare(at, 8)  # before the results of these are told
    results = [MeasureResult(TrialKind.OK, (true_seconds(task, c.state()),)) for c in picked]
    strategy.tell(list(zip(picked, results, strict=True)))
    for sketch, table, numbers in by_sketch(picked):
        seconds = np.array([results[n].median_s for n in numbers])
        trees.learn(task, Programs(sketch.space, table), seconds)
    trees.refit()
    pool = strategy.ask(at, 8)
    offered = [*pool.best, *pool.random]
    assert len(pool.best) >= 8 and not at.measured & {c.key for c in offered}
    today = scored_again(offered, task, trees)
    assert [c.score for c in offered] == pytest.approx([c.score for c in today])
    state = at.rng.bit_generator.state
    assert len(strategy.ask(at, 8).best) >= 8
    assert at.rng.bit_generator.state != state  # nothing was prepared, so it breeds


def test_enough_is_prepared_after_many_measurements() -> None:
    task = matmul(48, 48, 48)
    at = Context(task, sampler(task), AnalyticModel(), np.random.default_rng(0))
    strategy = EVOLUTION(considered=16)
    for _ in range(5):
        picked = strategy.ask(at, 16).best[:16]
        assert len(picked) == 16
        at.note(picked)
        results = [MeasureResult(TrialKind.OK, (true_seconds(task, c.state()),)) for c in picked]
        strategy.prepare(at, 16)
        strategy.tell(list(zip(picked, results, strict=True)))


class Meanwhile(Evolution):
    """Tells when it prepares."""

    def __init__(self, began: Event) -> None:
        super().__init__(**EVOLUTION.keywords)
        self.began = began

    def prepare(self, context: Context, n: int) -> None:
        self.began.set()
        super().prepare(context, n)


class Waiting(FormulaRunner):
    """Measures its second batch only once the strategy prepares for the next one."""

    def __init__(self, began: Event) -> None:
        super().__init__()
        self.began = began

    def answer(self, task: Task, state: State) -> MeasureResult:
        if len(self.batches) == 3:  # the first round is two batches: the default comes last
            assert self.began.wait(20), "nobody prepares"
        return super().answer(task, state)


def test_a_round_is_prepared_while_the_one_before_is_measured() -> None:
    began = Event()
    found = search(dense_relu(16, 32, 64), Waiting(began), strategy=lambda: Meanwhile(began))
    assert found.step(8) == 8 and not began.is_set()
    assert found.step(8, ahead=True) == 8 and began.is_set()
    began.clear()
    assert found.step(8) == 8 and not began.is_set()
    assert len(found.context.measured) == found.history.trials


def test_an_error_while_preparing_ends_the_run_with_its_trials_kept(tmp_path: Path) -> None:
    class Broken(Evolution):
        def prepare(self, context: Context, n: int) -> None:
            raise MemoryError("no room")

    small = partial(Broken, **EVOLUTION.keywords)
    with Database(tmp_path / "tune.db") as database:
        found = search(dense_relu(16, 32, 64), database=database, strategy=small)
        found.step(8)
        with pytest.raises(MemoryError, match="no room"):
            found.step(8, ahead=True)
        assert database.trials(found.task.key) == 16


def test_measured_candidates_are_counted_by_sketch() -> None:
    task = matmul(12, 12, 12)
    context = Context(task, sampler(task), AnalyticModel(), np.random.default_rng(0))
    pool = EVOLUTION().ask(context, 8)
    for told in (pool.best, pool.random, pool.best):
        context.note(told)
    assert context.measured_of == Counter(c.sketch.key for c in pool.candidates())


def test_scores_belong_to_their_rows() -> None:
    task, rng = matmul(24, 24, 24), np.random.default_rng(1)
    [sketch, *_] = sampler(task).draw(1, rng)
    table = sample_valid(sketch, 20, rng)
    scored = score(task, AnalyticModel(), sketch, table)
    for row, value in zip(table, scored.scores, strict=True):
        [alone] = score(task, AnalyticModel(), sketch, row[None]).scores
        assert alone == value
    best = top([scored], 3)
    different = {c.key: c.score for c in scored.candidates()}
    assert [c.score for c in best] == sorted(different.values(), reverse=True)[:3]


def test_several_tables_are_scored_as_one_after_another() -> None:
    task, rng = dense_relu(24, 36, 20), np.random.default_rng(1)
    drawn = sampler(task).draw(4, rng)
    tables = [(s, sample_valid(s, n, rng)) for s, n in zip(drawn, (30, 0, 1, 17), strict=False)]
    taught = BoostedTrees()
    for sketch, table in tables[:1]:
        taught.learn(task, Programs(sketch.space, table), rng.random(len(table)))
    taught.refit()
    for model in (BoostedTrees(), taught, AnalyticModel(), Blind()):
        together = score_all(task, model, tables)
        for (sketch, table), found in zip(tables, together, strict=True):
            alone = score(task, model, sketch, table)
            np.testing.assert_array_equal(found.scores, alone.scores)
            assert found.sketch is sketch and found.table is table
    assert score_all(task, taught, []) == []


def test_random_search_asks_no_model_and_prefers_nothing() -> None:
    class Silent(Blind):
        """A model that must not be asked."""

        def predict(self, task: Task, programs: Programs) -> Floats:
            raise AssertionError("asked for scores")

    found = rounds(search(matmul(24, 36, 48), model=Silent(), strategy=RandomSearch), 24)
    assert found.history.trials == 24
    pool = RandomSearch().ask(found.context, 100)
    assert len({c.score for c in pool.best}) == 1 and len(pool.best) >= 100
    assert len({c.sketch.key for c in pool.best[:40]}) > 2
