"""Regions are cut in the way that takes least: by records, else as predicted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import ansorpy as ap
from ansorpy.api.alternatives import decide, timed_regions
from ansorpy.api.networks import Networks, NetworkSpec, tune_networks
from ansorpy.api.project import Project, open_project
from ansorpy.api.request import Request
from ansorpy.api.tuner import Tuner, open_tuner
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.graph.alternatives import DOUBT, Alternatives
from ansorpy.ir.task import Task
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.schedule.state import State
from ansorpy.search.task_search import SearchOptions
from ansorpy.target import Target
from ansorpy.tasks.alternatives import SETTLED
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.outcome import Ending, Tuning
from ansorpy.tasks.tune import TuneOptions, WeightedTask
from tests.graph.attentions import transformer
from tests.peer import peer
from tests.search.runners import FormulaRunner
from tests.search.small import SAMPLING
from tests.search.tasks import sampler
from tests.tasks.anew import tune_anew

REQUEST = Request.of(effort="none", threads=1)
SPEC = NetworkSpec("transformer.onnx")


@cache
def project() -> Project:
    """Two layers with one head, one with two: two attentions to be cut."""
    return open_project(transformer(1, 1, 2), REQUEST)


@cache
def layer() -> Project:
    """One layer with two heads."""
    return open_project(transformer(2), REQUEST)


def table(seconds: Mapping[str, float | None]) -> dict[str, float | None]:
    """Task key -> seconds: by the alternative's name for tasks that only it calls, else 1."""
    found: dict[str, float | None] = {task.key: 1.0 for task in project().all_tasks}
    for region in project().regions:
        for option in region.options:
            found |= {key: seconds[option.name] for key in option.calls}
    return found


def calls_of(region: Alternatives[str], name: str) -> Mapping[str, float]:
    [calls] = [option.calls for option in region.options if option.name == name]
    return calls


def taken(seconds: Mapping[str, float | None]) -> list[int]:
    times = table(seconds)
    return [r.fastest for r in timed_regions(project(), lambda task: times[task.key])]


def test_calls_of_regions_and_of_all_ways_add_up() -> None:
    net = project()
    assert [region.name.split()[0] for region in net.regions] == ["attention", "attention"]
    assert not set(net.common) & {k for r in net.regions for k in r.most_calls}
    assert {*net.most_calls} == {task.key for task in net.all_tasks} > set(net.weights)
    assert net.decided([0, 0]).weights == net.weights
    both = net.decided([1, 1])
    assert not both.regions and both.all_tasks == both.tasks
    three = [calls_of(region, "three kernels") for region in net.regions]
    assert both.weights == {k: n for k, n in net.most_calls.items()
                            if k in net.common or any(k in calls for calls in three)}  # fmt: skip


def test_the_clearly_cheaper_sum_wins() -> None:
    assert taken({"one kernel": 2.9, "three kernels": 1.0}) == [0, 0]
    assert taken({"one kernel": 3.2, "three kernels": 1.0}) == [1, 1]


def test_only_ways_that_are_known_in_full_are_compared() -> None:
    assert taken({"one kernel": None, "three kernels": 50.0}) == [1, 1]
    assert taken({"one kernel": 50.0, "three kernels": None}) == [0, 0]
    assert taken({"one kernel": None, "three kernels": None}) == [0, 0]


def plant(tuner: Tuner, net: Project, seconds: Mapping[str, float | None]) -> None:
    """Record the default schedule of each task as so fast."""
    for task in net.all_tasks:
        median_s = seconds[task.key]
        if median_s is not None:
            made = tuner.database.start(task, State.initial(task.dag))
            tuner.database.complete(made, MeasureResult(TrialKind.OK, (median_s,)))


@pytest.mark.parametrize(("single", "number"), [(2.9, 1), (3.2, 3)])
def test_records_decide_what_is_linked(single: float, number: int, tmp_path: Path) -> None:
    model = transformer(1, 1, 2)
    with open_tuner(replace(REQUEST, db=tmp_path / "t.db")) as tuner:
        plant(tuner, project(), table({"one kernel": single, "three kernels": 1.0}))
    compiled = ap.compile(model, effort="none", threads=1, db=tmp_path / "t.db")
    feeds = {"x": np.random.default_rng(3).standard_normal((12, 8)).astype(np.float32)}
    names = [name for name, _ in compiled.profile(feeds, runs=1)]
    assert sum("softmax" in name or "attention" in name for name in names) == 3
    assert len(names) == 3 * (number + 4)
    [expected] = peer(model).run(None, feeds)
    np.testing.assert_allclose(compiled.run(None, feeds)[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("single", "number"), [(3.0, 0), (3.0 / DOUBT * 1.01, 1), (3.0 / DOUBT * 0.99, 0)]
)
def test_without_records_the_prediction_decides(
    single: float, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = table({"one kernel": single, "three kernels": 1.0})

    def predicted_s(self: Tuner, tasks: list[Task]) -> dict[str, float | None]:
        return {task.key: times[task.key] for task in tasks}

    monkeypatch.setattr(Tuner, "predicted_s", predicted_s)
    with open_tuner(replace(REQUEST, db=tmp_path / "t.db")) as tuner:
        found = decide(tuner, project())
    kernels = [call.name for call in found.network.calls]
    assert sum("attention" in name for name in kernels) == (0 if number else 3)


def test_what_was_predicted_stays_when_it_is_recorded(tmp_path: Path) -> None:
    """The second run finds records of one way only, and takes it again."""
    request, found = replace(REQUEST, db=tmp_path / "t.db"), []
    for _ in range(2):
        [finished] = tune_networks(Networks([layer()], [SPEC]), request)
        found.append([(c.task.key, c.built.digest) for c in finished.chosen])
    assert found[0] == found[1]


class Slow(FormulaRunner):
    """Tasks of one way take a hundred times as long."""

    def __init__(self, keys: set[str]) -> None:
        super().__init__()
        self.keys = keys

    def answer(self, task: Task, state: State) -> MeasureResult:
        result = super().answer(task, state)
        slower = 100 if task.key in self.keys else 1
        return replace(result, seconds=tuple(s * slower for s in result.seconds))


def tuned(networks: Networks, budget: Budget, slow: set[str]) -> Tuning:
    entries = [
        WeightedTask(task, sampler(task), networks.weights[key])
        for key, task in networks.tasks.items()
    ]
    options = TuneOptions(
        SearchOptions(SAMPLING), model=AnalyticModel, networks=networks.tuned, retime=False
    )
    return tune_anew(entries, budget, Slow(slow), options=options)


@pytest.mark.parametrize("slow", ["one kernel", "three kernels"])
def test_a_way_that_is_far_behind_is_measured_no_further(slow: str) -> None:
    networks = Networks([layer()], [SPEC])
    [region] = networks.projects[0].regions
    behind = set(calls_of(region, slow))
    [ahead] = [set(option.calls) for option in region.options if option.name != slow]
    result = tuned(networks, Budget(trials=140), behind)
    trials = {o.task.key: o.history.trials for o in result.outcomes}
    assert result.ended is Ending.TRIALS and sum(trials.values()) == 140
    # One task that is known and too slow is enough: then the others of its way are left.
    assert SETTLED <= max(trials[key] for key in behind) < SETTLED + 7
    assert max(trials[key] for key in ahead) > 1.5 * SETTLED


def test_a_gpu_is_asked_in_the_same_way(tmp_path: Path) -> None:
    """By the model of its kernels, of which the attention is one in the first way."""
    request = replace(REQUEST, target=Target.parse("sm_80"), db=tmp_path / "t.db")
    net = open_project(transformer(2), request)
    (region,) = net.regions
    with open_tuner(request) as tuner:
        seconds = tuner.predicted_s(net.all_tasks)
        chosen = decide(tuner, net)
    one, three = (option.seconds for option in region.timed(seconds).options)
    assert one is not None and three is not None and 0 < one < three / DOUBT
    assert chosen.weights == net.decided([0]).weights
