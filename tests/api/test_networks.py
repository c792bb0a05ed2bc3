"""Several networks under one budget: shared tasks once, each network's aim counts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import ansorpy as ap
from ansorpy.api.networks import Networks, NetworkSpec, open_networks
from ansorpy.api.project import Project, open_project
from ansorpy.api.request import Request
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.errors import UsageError
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.search.task_search import SearchOptions
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.objective import Objective
from ansorpy.tasks.objectives.latency_bounds import LatencyBounds
from ansorpy.tasks.objectives.weighted_sum import WeightedSum
from ansorpy.tasks.outcome import Ending, Tuning
from ansorpy.tasks.tune import TuneOptions, WeightedTask
from tests.graph.nets import Net
from tests.search.runners import FormulaRunner
from tests.search.small import SAMPLING
from tests.tasks.anew import tune_anew

REQUEST = Request.of(effort="none", target="x86-64-v4", threads=2)


def spec(weight: float = 1.0, latency_bound: float | None = None) -> NetworkSpec:
    """What a network should achieve; its model does not matter."""
    return NetworkSpec("net.onnx", weight, latency_bound)


def network(depth: int, width: int = 8) -> onnx.ModelProto:
    """*depth* equal layers of *width* units, then a mean."""
    net = Net(x=(9, width))
    value = "x"
    for _ in range(depth):
        value = net.relu(net.gemm(value, width, width))
    return net.model(net.op("ReduceMean", value, axes=[1]))


@cache
def project(depth: int, width: int = 8) -> Project:
    return open_project(network(depth, width), REQUEST)


@cache
def sampler(task: Task) -> SketchSampler:
    return SketchSampler(task)


def tuned(networks: Networks, budget: Budget, objective: Objective | None = None) -> Tuning:
    entries = [
        WeightedTask(task, sampler(task), networks.weights[key])
        for key, task in networks.tasks.items()
    ]
    options = TuneOptions(
        SearchOptions(SAMPLING),
        model=AnalyticModel,
        objective=objective or WeightedSum(),
        networks=networks.tuned,
        retime=False,
    )
    return tune_anew(entries, budget, FormulaRunner(), options=options)


def test_shared_tasks_are_one_and_weigh_for_all() -> None:
    small, deep, other = project(2), project(5), project(2, width=12)
    networks = Networks([small, deep, other], [spec(), spec(weight=3.0), spec()])
    assert set(networks.tasks) == {*small.weights, *deep.weights, *other.weights}
    assert len(networks.tasks) < sum(len(p.tasks) for p in networks.projects)
    for key, weight in networks.weights.items():
        calls = [p.weights.get(key, 0) for p in networks.projects]
        assert weight == calls[0] + 3 * calls[1] + calls[2]
        at = list(networks.tasks).index(key)
        assert [network.calls[at] for network in networks.tuned] == calls


def test_a_run_over_all_measures_shared_tasks_once() -> None:
    networks = Networks([project(2), project(4)], [spec(), spec()])
    result = tuned(networks, Budget(trials=40))
    assert sum(o.history.trials for o in result.outcomes) == 40
    assert all(o.best is not None for o in result.outcomes)
    assert result.ended is Ending.TRIALS


def test_networks_within_their_bounds_leave_the_budget_to_others() -> None:
    fast, slow = project(2), project(2, width=12)
    networks = Networks([fast, slow], [spec(latency_bound=10.0), spec(latency_bound=1e-12)])
    result = tuned(networks, Budget(trials=64), LatencyBounds())
    trials = {o.task.key: o.history.trials for o in result.outcomes}
    only_fast = [trials[key] for key in fast.weights if key not in slow.weights]
    only_slow = [trials[key] for key in slow.weights if key not in fast.weights]
    assert max(only_fast) <= 32 and sum(only_slow) > 2 * sum(only_fast)


def test_a_run_ends_when_every_bound_is_met() -> None:
    networks = Networks([project(2)], [spec(latency_bound=10.0)])
    result = tuned(networks, Budget(trials=100), LatencyBounds())
    assert result.ended is Ending.OBJECTIVE
    assert sum(o.history.trials for o in result.outcomes) < 100


def test_compiling_many_gives_a_model_for_each(tmp_path: Path) -> None:
    path = tmp_path / "deep.onnx"
    onnx.save(network(2), path)
    wanted: list[ap.NetworkSpec | onnx.ModelProto] = [
        ap.NetworkSpec(path, weight=2.0, latency_bound=1.0),
        network(1),
    ]
    models = ap.compile_many(wanted, objective="latency_bounds", effort="none", threads=1)
    x = np.random.default_rng(3).standard_normal((9, 8)).astype(np.float32)
    for model in models:
        [out] = model.run(None, {"x": x})
        assert out.shape == (9, 1) and np.isfinite(out).all()


@pytest.mark.parametrize(
    ("objective", "figures", "message"),
    [
        ("weighted_sum", {"latency_bound": 1.0}, "a latency bound(.|\n)*objective latency_bounds"),
        ("early_stop", {"latency_bound": 1.0}, "a latency bound is given, which"),
        ("geomean", {"latency_bound": 1.0, "baseline": 1.0}, "a latency bound is given, which"),
        ("latency_bounds", {"baseline": 1.0}, "a baseline is given, which(.|\n)*geomean"),
    ],
)
def test_figures_an_objective_ignores_are_refused(
    objective: str, figures: dict[str, float], message: str
) -> None:
    wanted = ap.NetworkSpec(network(1), **figures)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=message):
        ap.compile_many([network(1), wanted], objective=objective, trials=1, threads=1)


def test_figures_an_objective_reads_are_taken() -> None:
    for objective in ("latency_bounds", LatencyBounds()):
        request = Request.of(effort="none", objective=objective)
        specs = [NetworkSpec(network(1), latency_bound=1.0), NetworkSpec(network(2), weight=2.0)]
        assert [network.weight for network in open_networks(specs, request).tuned] == [1.0, 2.0]


def test_wrong_requests_are_refused() -> None:
    none: tuple[Any, ...] = ([], iter([]))
    for given in none:
        with pytest.raises(UsageError, match="no network to compile"):
            ap.compile_many(given)
    with pytest.raises(UsageError, match='unknown objective "fastest"'):
        ap.compile_many(["absent.onnx"], objective="fastest", trials=1, threads=1)
    with pytest.raises(UsageError, match="'cloud' is not an address of workers"):
        ap.compile_many([network(1)], workers="cloud", trials=1, threads=1)
    with pytest.raises(UsageError, match="5 is not a network(.|\n)*as a path or loaded"):
        ap.compile(5)
    wrong: tuple[Any, ...] = ("net.onnx", None, 5)
    for given in wrong:
        with pytest.raises(UsageError, match="networks are given by a list"):
            ap.compile_many(given)
        with pytest.raises(UsageError, match=r"engines are given by a list\s.*\['onnxruntime'\]"):
            ap.bench("net.onnx", against=given)
        with pytest.raises(UsageError, match=r"plugins are given by a list(.|\n)*\['ops.py'\]"):
            ap.bench("net.onnx", plugins=given)
    once: Any = iter(["ops.py"])  # three parts of a timing read them
    with pytest.raises(UsageError, match="plugins are given by a list"):
        ap.bench("net.onnx", plugins=once)
    with pytest.raises(UsageError, match="a plugin is given by its path, not by int"):
        ap.bench("net.onnx", plugins=[5])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="name must be text, got 5"):
        NetworkSpec("net.onnx", name=5)  # type: ignore[arg-type]


def test_other_arguments_are_refused() -> None:
    takers: tuple[Callable[..., Any], ...] = (
        ap.compile, ap.compile_many, ap.verify, ap.bench, ap.report,
    )  # fmt: skip
    for called in takers:
        with pytest.raises(UsageError, match='^there is no option "trails"\n'):
            called("net.onnx", trails=3)


def test_bytes_are_not_printed_whole() -> None:
    with pytest.raises(UsageError, match=r"is not a network(.|\n)*load_from_string") as told:
        ap.compile(network(2).SerializeToString())
    assert len(told.value.message) < 80


@pytest.mark.parametrize(
    "given",
    [{"shapes": (9, 8)}, {"dims": "n=8"}, {"bounds": 100}, {"constants": [5]},
     {"alias": [("y", "x")]}],
)  # fmt: skip
def test_what_is_given_by_name_is_a_mapping(given: dict[str, Any]) -> None:
    [name] = given
    for called in (ap.compile, ap.verify):
        with pytest.raises(UsageError, match=rf"{name}= takes values by name(.|\n)*{name}={{"):
            called("net.onnx", **given)


@pytest.mark.parametrize(
    "given",
    [{"shapes": {1: (9, 8)}}, {"dims": {b"n": 8}}, {"bounds": {None: 100}}, {"constants": {0: 5}},
     {"alias": {1: "x"}}],
)  # fmt: skip
def test_names_are_text(given: dict[str, Any]) -> None:
    [(argument, values)] = given.items()
    [name] = values
    for called in (ap.compile, ap.verify):
        with pytest.raises(UsageError, match=f"^{name!r} is no name for {argument}=\nhint"):
            called("net.onnx", **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dims": {"n": b"8"}}, "b'8' is not a size of n"),
        ({"dims": {"n": True}}, "True is not a size of n"),
        ({"shapes": {"x": b"98"}}, "b'98' is not the shape of x"),
        ({"shapes": {"x": 9}}, "9 is not the shape of x"),
        ({"memory": True}, "True is not a size"),
    ],
)
def test_values_of_other_types_are_refused(given: dict[str, Any], message: str) -> None:
    net = Net(x=("n", 8))
    with pytest.raises(UsageError, match=f"^{message}"):
        ap.compile(net.model(net.relu("x")), effort="none", **given)


def test_a_shape_is_none_where_the_model_states_none() -> None:
    model = network(1)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(UsageError, match="^9 is not the shape of x"):
        ap.compile(model, shapes={"x": 9}, effort="none")  # type: ignore[dict-item]


def test_latencies_may_be_text() -> None:
    spec = NetworkSpec("net.onnx", latency_bound="5ms", baseline=2)
    assert (spec.latency_bound, spec.baseline) == (5e-3, 2.0)
    for wrong in ({"latency_bound": "soon"}, {"latency_bound": 0}, {"baseline": float("nan")},
                  {"weight": "2"}, {"weight": True}, {"baseline": True}):  # fmt: skip
        with pytest.raises(UsageError, match=f"^({[*wrong][0]} must be a positive|'soon' is not)"):
            NetworkSpec("net.onnx", **wrong)
