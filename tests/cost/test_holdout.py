"""Held-out trials: which are held out, who has seen what, and models that know more rank better."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ansorpy.cost.boosted import BoostedOptions, BoostedTrees
from ansorpy.cost.dataset import TaskSamples
from ansorpy.cost.holdout import LEAST_HELD_OUT, Judged, Knowing, common_level, judge
from tests.cost.populations import SHAPE, population, true_seconds
from tests.cost.tasks import matmul_task

SOME = BoostedOptions(30)
"""Trees enough to rank well."""
FEW = BoostedOptions(8)
"""Few trees, where it does not matter how well they rank."""


def recorded(n: int, seed: int) -> TaskSamples:
    model, task = BoostedTrees(), matmul_task(*SHAPE)
    programs, columns = population(n, seed)
    model.learn(task, programs, true_seconds(columns))
    return model.data.tasks[task.key]


@pytest.fixture(scope="module")
def found() -> list[Judged]:
    tasks = {f"t{seed}": recorded(48, seed) for seed in range(4)}
    return judge({**tasks, "small": recorded(8 + LEAST_HELD_OUT - 1, 9)}, (8, 32), options=SOME)


def test_tasks_with_enough_trials_are_judged_by_every_model(found: list[Judged]) -> None:
    assert {j.task for j in found} == {"t0", "t1", "t2", "t3"}
    assert {j.held_out for j in found} == {16}
    models = {(j.knowing, j.known) for j in found}
    assert models == {
        (Knowing.NOTHING, 0), (Knowing.OTHERS, 0),
        *((knowing, n) for knowing in (Knowing.OWN, Knowing.LOADED) for n in (8, 32)),
    }  # fmt: skip
    assert len(found) == 4 * len(models)


def test_models_that_saw_the_machine_rank_better(found: list[Judged]) -> None:
    def mean(knowing: Knowing, known: int) -> float:
        these = [j for j in found if (j.knowing, j.known) == (knowing, known)]
        return float(np.mean([j.figures.correlation for j in these]))

    closed = mean(Knowing.NOTHING, 0)
    assert mean(Knowing.OTHERS, 0) > closed + 0.1
    assert min(mean(Knowing.OWN, 32), mean(Knowing.LOADED, 32)) > closed + 0.1


def test_a_single_task_is_ranked_by_what_its_own_trials_teach() -> None:
    found = judge({"t": recorded(48, 1)}, levels=(32,))
    by_model = {j.knowing: j.figures.correlation for j in found}
    assert by_model[Knowing.OTHERS] == by_model[Knowing.NOTHING]
    assert by_model[Knowing.OWN] == by_model[Knowing.LOADED] > by_model[Knowing.NOTHING]


def test_the_level_most_tasks_have_is_chosen_and_models_left_out() -> None:
    tasks = {f"t{n}": recorded(count, n) for n, count in enumerate((24, 48, 50, 90))}
    assert common_level(tasks) == 32
    assert common_level({"t": tasks["t0"]}) == 8
    found = judge(tasks, (8,), models=(Knowing.OTHERS,), options=FEW)
    assert [j.knowing for j in found] == [Knowing.OTHERS] * 4


def test_trees_without_trust_rank_as_the_closed_form_does() -> None:
    tasks = {f"t{seed}": recorded(48, seed).first(32) for seed in range(4)}
    assert all(len(samples.seconds) == 32 for samples in tasks.values())
    asked = (Knowing.NOTHING, Knowing.OTHERS)
    figures: dict[float, dict[Knowing, list[float]]] = {}
    for trust in (0.0, 1.0):
        found = judge(tasks, (8,), models=asked, options=replace(FEW, trust=trust))
        figures[trust] = {
            k: [j.figures.correlation for j in found if j.knowing is k] for k in asked
        }
    assert sorted(figures[0.0][Knowing.OTHERS]) == sorted(figures[0.0][Knowing.NOTHING])
    assert sorted(figures[1.0][Knowing.OTHERS]) != sorted(figures[1.0][Knowing.NOTHING])


def test_only_models_that_are_asked_for_are_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    trained, refit = [], BoostedTrees.refit

    def counted(model: BoostedTrees) -> None:
        trained.append(model)
        refit(model)

    monkeypatch.setattr(BoostedTrees, "refit", counted)
    judge({"t": recorded(48, 1)}, (8, 32), models=(Knowing.OTHERS,), options=FEW)
    assert len(trained) == 1
    judge({"t": recorded(48, 1)}, (8, 32), models=(Knowing.OWN,), options=FEW)
    assert len(trained) == 1 + 3


def test_nothing_to_hold_out_gives_nothing() -> None:
    failed = recorded(48, 2)
    failed.seconds[32:] = [np.inf] * 16
    assert judge({"t": failed}, levels=(32,)) == []
    assert judge({"t": recorded(20, 1)}) == [] == judge({})
