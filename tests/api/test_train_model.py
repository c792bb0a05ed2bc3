"""What is learnt from all trials of a database: of one kind of machine, kept or made again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ansorpy.api.parts import Parts
from ansorpy.api.train_model import fit_weights, load_trials
from ansorpy.cost.boosted import BoostedTrees
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import dim
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.measure.records.database import Database
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.schedule.state import State
from ansorpy.search.task_search import SearchOptions
from ansorpy.target import Target
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.tune import TuneOptions, WeightedTask, tune_tasks
from tests.measure.raw import execute
from tests.search.runners import FormulaRunner
from tests.search.small import SAMPLING, TREES
from tests.search.tasks import dense_relu, matmul, sampler

OPTIONS = TuneOptions(SearchOptions(strategy=SAMPLING), model=TREES, retime=False)


def record(path: Path, *tasks: Task) -> None:
    entries = [WeightedTask(task, sampler(task)) for task in tasks]
    budget = Budget(trials_per_task=12)
    with Database(path) as database:
        tune_tasks(entries, budget, FormulaRunner(), database=database, options=OPTIONS)


def test_every_trial_is_learnt_whether_its_features_were_kept_or_not(tmp_path: Path) -> None:
    path, tasks = tmp_path / "t.db", (matmul(24, 24, 24), dense_relu(32, 32, 32))
    record(path, *tasks)
    with Database(path) as database:
        whole = load_trials(database, tasks[0].target)
        execute(database.path, "DELETE FROM samples WHERE trial % 3 = 0")
        again = load_trials(database, tasks[0].target)
    assert {key: len(t.seconds) for key, t in whole.data.tasks.items()} == {
        task.key: 12 for task in tasks
    }
    for key, samples in whole.data.tasks.items():
        assert samples.seconds == again.data.tasks[key].seconds
        np.testing.assert_allclose(samples.prior_s, again.data.tasks[key].prior_s)
        for one, other in zip(samples.features, again.data.tasks[key].features, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)


def test_programs_for_all_sizes_are_left_out(tmp_path: Path) -> None:
    n = dim("n", 1, 64)
    x = placeholder((n, 8), name="x")
    general = ComputeDAG.of([x, compute((n, 8), lambda i, j: x[i, j] * 2.0, name="y")])
    here = matmul(24, 24, 24)
    at_seven = replace(here, dag=dag_at(general, {general.main_dim: 7}), at=(("n", 7),))
    record(tmp_path / "t.db", here)
    with Database(tmp_path / "t.db") as database:
        trial = database.start(at_seven, State.initial(general))
        database.complete(trial, MeasureResult(TrialKind.OK, (1e-6,)))
        assert set(load_trials(database, here.target).data.tasks) == {here.key}


def test_trials_for_other_machines_are_left_out(tmp_path: Path) -> None:
    here = matmul(24, 24, 24)
    arm = Task(here.dag, Target.parse("cortex-a76"), here.threads, name="arm")
    threads = Task(here.dag, here.target, here.threads + 1, name="threads")
    record(tmp_path / "t.db", here, arm, threads)
    with Database(tmp_path / "t.db") as database:
        assert set(load_trials(database, here.target).data.tasks) == {here.key, threads.key}
        other = replace(arm.target, name="x", cpu="cortex-a78")
        assert set(load_trials(database, other).data.tasks) == {arm.key}
        nothing = load_trials(database, Target.parse("sm_90"))
    assert isinstance(nothing, BoostedTrees) and not nothing.data.tasks


def test_a_task_of_unknown_precision_is_refused(tmp_path: Path) -> None:
    task = matmul(24, 24, 24)
    record(tmp_path / "t.db", task)
    with Database(tmp_path / "t.db") as database:
        execute(database.path, "UPDATE tasks SET precision = 'exact'")
        with pytest.raises(ForeignFile, match="a TaskRow that .*: column precision"):
            load_trials(database, task.target)


def test_weights_are_fitted_to_the_trials_and_chosen_by_their_file(tmp_path: Path) -> None:
    path, tasks = tmp_path / "t.db", (matmul(24, 24, 24), dense_relu(32, 32, 32))
    record(path, *tasks)
    with Database(path) as database:
        found = fit_weights(database, tasks[0].target)
        with pytest.raises(UsageError, match="0 programs for aarch64"):
            fit_weights(database, Target.parse("cortex-a76"))
    assert (found.programs, found.tasks) == (24, 2) and found.correlation > 0.5
    file = tmp_path / "weights.json"
    file.write_text(found.model.text())
    assert Parts(cost_model=str(file)).model() == found.model
