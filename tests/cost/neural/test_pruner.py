"""Pruner: the network is asked about the draft's best only, and decides their order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.bound import least_seconds
from ansorpy.cost.metrics import rank_correlation
from ansorpy.cost.neural.pruner import Pruner
from ansorpy.cost.neural.training import Fitting
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import predictions
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.search.strategies.evolution import Evolution
from ansorpy.search.task_search import SearchOptions, TaskSearch
from ansorpy.search.trials import MeasuredTrials
from benchmarks.spaces.grid import read_grid
from benchmarks.spaces.grid_source import GridRunner, GridSource
from tests.cost.neural.spaces import drawn, seconds_of, task_of
from tests.tensor_cores import GPU, matmul

FEW = Fitting(examples=512)
SPACE = Path(__file__).parents[3] / "benchmarks" / "spaces" / "recorded" / "odd_matmul.npz"


def test_the_network_orders_the_drafts_best_and_leaves_the_others_behind() -> None:
    task, model = task_of(), Pruner(hidden=32, moves=16)
    programs = drawn(task, 200, 1)
    draft = AnalyticModel().predict(task, programs)
    np.testing.assert_array_equal(model.predict(task, programs), draft)
    assert model.calls == 0
    model.learn(task, programs, seconds_of(programs))
    model.refit()
    score = model.predict(task, programs)
    assert model.calls == 50
    best, rest = np.argsort(-draft, kind="stable")[:50], np.argsort(-draft, kind="stable")[50:]
    assert score[best].min() >= score[rest].max()
    np.testing.assert_array_equal(np.argsort(-score[rest], kind="stable"), np.arange(150))
    verified = rank_correlation(score[best], -seconds_of(programs)[best])
    assert verified > rank_correlation(draft[best], -seconds_of(programs)[best]) + 0.2


def test_scores_of_several_tables_and_of_several_calls_are_comparable() -> None:
    task, model = task_of(), Pruner(hidden=32, moves=16, fitting=FEW)
    programs = drawn(task, 200, 1)
    model.learn(task, programs, seconds_of(programs))
    model.refit()
    whole = model.predict(task, programs)
    halves = [Programs(programs.space, table) for table in np.split(programs.table, 2)]
    apart = np.concatenate(predictions(model, task, halves))
    np.testing.assert_allclose(apart, whole, rtol=1e-4)
    draft = AnalyticModel().predict(task, programs)
    last = np.argsort(draft, kind="stable")[:100]
    alone = model.predict(task, Programs(programs.space, programs.table[last]))
    np.testing.assert_allclose(alone[:70], whole[last[:70]], rtol=1e-4)
    few = Programs(programs.space, programs.table[last[:8]])
    assert (model.predict(task, few) > alone[:8].max()).all()  # the network scores few all


def test_the_drafts_order_is_kept_where_the_bound_is_no_time() -> None:
    dag = ComputeDAG.of(matmul("narrow", 64, 64, 64))
    task, model = Task(dag, GPU, 1), Pruner(hidden=8, moves=8, fitting=FEW)
    assert least_seconds(task, dag) <= 0
    sketch = SketchSampler(task).place(0, np.random.default_rng(0))
    table = sketch.sample(64, np.random.default_rng(1))
    programs = Programs(sketch.space, table[sketch.valid(table)])
    draft = model.predict(task, programs)
    model.learn(task, programs, 1 / draft)
    model.refit()
    scores = model.predict(task, programs)
    last = np.argsort(-draft, kind="stable")[max(len(draft) // 4, 16) :]
    assert len(set(draft[last])) > 8 and (scores > 0).all()
    assert (np.diff(scores[last]) <= 0).all()
    assert len(set(scores[last])) == len(set(draft[last]))


def searched(verified: float) -> tuple[float, int]:
    """The best time after 40 trials on a recorded space, and how often the network was asked."""
    grid = read_grid(SPACE)
    source = GridSource(grid)
    model = Pruner(verified=verified, hidden=32, moves=16, min_programs=16, fitting=FEW)
    options = SearchOptions(strategy=lambda: Evolution(population=64, generations=1))
    trials = MeasuredTrials(GridRunner(source), Database())
    search = TaskSearch(grid.task, source, model, trials, options)
    while search.history.trials < 40:
        search.step(8)
    assert search.history.best_s is not None
    return search.history.best_s / grid.best_s, model.calls


def test_a_search_asks_the_network_less_and_finds_as_good_a_program() -> None:
    (drafted, few), (all_verified, many) = searched(0.25), searched(1.0)
    assert 0 < few < 0.3 * many
    assert drafted <= 1.05 * all_verified


def test_the_draft_ranks_measured_programs() -> None:
    grid = read_grid(SPACE)
    rows = np.arange(0, len(grid.rows), 20)
    programs = Programs(GridSource(grid).sketch.space, grid.rows[rows])
    draft = Pruner(hidden=8).predict(grid.task, programs)
    assert rank_correlation(draft, -grid.times[rows]) > 0.5
