"""TLP: scores follow from primitives alone, and records of other machines help MTL-TLP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

from ansorpy.api.train_model import train_network
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.metrics import rank_correlation
from ansorpy.cost.models import MODELS
from ansorpy.cost.neural.mtl_tlp import MultiTaskTLP
from ansorpy.cost.neural.tlp import TLP
from ansorpy.cost.neural.training import Fitting
from ansorpy.cost.programs import Programs
from ansorpy.ir.task import Task
from ansorpy.measure.program_dataset import ProgramDataset
from ansorpy.measure.records.database import Database
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from ansorpy.search.task_search import SearchOptions
from ansorpy.target import Target
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.tune import TuneOptions, WeightedTask, tune_tasks
from tests.cost.neural.spaces import drawn, seconds_of, task_of
from tests.datasets import small_dataset
from tests.search.runners import FormulaRunner
from tests.search.small import SAMPLING
from tests.search.tasks import matmul, sampler


def learned(n: int = 200) -> tuple[TLP, list[Programs]]:
    model, seen = TLP(), []
    for size in (32, 64):
        programs = drawn(task_of(size), n, size)
        model.learn(task_of(size), programs, seconds_of(programs))
        seen.append(programs)
    model.refit()
    return model, seen


def test_it_ranks_a_task_it_has_not_seen_and_lowers_nothing() -> None:
    model, seen = learned()
    task = task_of(128)
    programs = drawn(task, 150, 5)
    score = model.predict(task, programs)
    assert rank_correlation(score, -seconds_of(programs)) > 0.6
    assert not any("nest" in vars(p) for p in (*seen, programs))


def test_the_order_of_the_primitives_counts() -> None:
    model, _ = learned(40)
    task = task_of()

    def scored(*splits: tuple[str, int]) -> float:
        state = State.initial(task.dag)
        for name, factor in splits:
            state, _ = state.split("C", name, (factor,))
        return float(model.predict(task, Programs.of(state))[0])

    assert scored(("i", 4), ("j", 8)) != scored(("j", 8), ("i", 4))
    assert scored(("i", 4), ("j", 8)) != scored(("j", 4), ("i", 8))
    default = Programs(Space(State.initial(task.dag)), np.zeros((2, 0), dtype=np.int64))
    assert np.isfinite(model.predict(task, default)).all()


def on(target: str) -> Task:
    return Task(task_of().dag, Target.parse(target), 2)


def learned_by_heads(auxiliary: bool) -> float:
    model = MultiTaskTLP(fitting=Fitting(batch=64))
    few, many = drawn(task_of(), 21, 7), drawn(task_of(), 300, 8)
    model.learn(on("x86-64-v4"), few, seconds_of(few))
    if auxiliary:  # another machine: the same taste, but for the vector axis
        model.learn(on("x86-64-v3"), many, seconds_of(many) * (1 + many.table[:, 1] / 64))
    model.min_programs = 21
    model.refit()
    unseen = drawn(task_of(), 200, 9)
    return rank_correlation(model.predict(on("x86-64-v4"), unseen), -seconds_of(unseen))


def test_another_machines_records_help_where_there_are_few() -> None:
    assert learned_by_heads(auxiliary=True) > learned_by_heads(auxiliary=False) + 0.02


def test_heads_of_other_machines_are_masked_and_there_are_only_so_many() -> None:
    model = MultiTaskTLP(machines=2, min_programs=8)
    programs = drawn(task_of(), 16, 1)
    model.learn(on("x86-64-v4"), programs, seconds_of(programs))
    model.refit()
    before = model.weights()
    model.data.tasks.clear()
    programs = drawn(task_of(), 32, 2)
    model.learn(on("x86-64-v3"), programs, seconds_of(programs))
    model.refit()
    after = model.weights()
    heads = [[n for n in before if n.startswith(f"heads.{head}.")] for head in range(2)]
    changed = [np.mean([np.abs(after[n] - before[n]).max() for n in names]) for names in heads]
    assert changed[0] < 1e-3 < changed[1]  # weight decay alone moves the first
    assert model.targets == [
        target.key for target in (on("x86-64-v4").target, on("x86-64-v3").target)
    ]
    beyond = model.predict(on("sm_90"), programs)  # shares the last head, and takes none
    np.testing.assert_array_equal(beyond, model.predict(on("x86-64-v3"), programs))
    assert len(model.targets) == 2


def test_a_new_machine_is_scored_as_the_one_with_the_most_programs() -> None:
    model = MultiTaskTLP(machines=1, min_programs=8)
    for target, n in (("x86-64-v3", 8), ("x86-64-v4", 24)):
        programs = drawn(task_of(), n, n)
        model.learn(on(target), programs, seconds_of(programs))
    model.refit()
    unseen = drawn(task_of(), 20, 9)
    few, most, new = (
        model.predict(on(target), unseen) for target in ("x86-64-v3", "x86-64-v4", "sm_90")
    )
    np.testing.assert_array_equal(new, most)
    assert (few != most).any() and model.machines == 3


@pytest.fixture
def small_mtl_tlp() -> Iterator[str]:
    """The name of a small network that is trained in a moment."""
    MODELS.register("small")(partial(MultiTaskTLP, hidden=16, fitting=Fitting(epochs=1)))
    yield "small"
    MODELS.remove("small")


HERE, THERE = Target.parse("x86-64-v4"), Target.parse("x86-64-v3")


def test_training_takes_the_programs_of_all_machines(small_mtl_tlp: str) -> None:
    dataset = ProgramDataset()
    for each in small_dataset().tasks.values():
        dataset.add(each)
        dataset.add(replace(each, task=replace(each.task, target=THERE)))
    assert train_network(dataset, small_mtl_tlp, HERE).targets == [HERE.key, THERE.key]


def test_training_takes_the_trials_of_all_machines(small_mtl_tlp: str) -> None:
    tasks = [replace(matmul(24, 40, 36), target=target) for target in (HERE, THERE)]
    entries = [WeightedTask(task, sampler(task)) for task in tasks]
    options = TuneOptions(SearchOptions(SAMPLING), model=AnalyticModel, retime=False)
    with Database() as database:
        tune_tasks(entries, Budget(trials=40), FormulaRunner(), database, options=options)
        model = train_network(database, small_mtl_tlp, HERE)
    assert {*model.targets} == {HERE.key, THERE.key}
