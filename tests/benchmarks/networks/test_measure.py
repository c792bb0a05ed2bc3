from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import onnx
import pytest

from ansorpy.api.project import open_project
from ansorpy.api.request import Request
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.rows import Record
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.schedule.state import State
from benchmarks.common.peak import Peak
from benchmarks.networks import measure as measuring
from benchmarks.networks.measure import NetworkSettings, Tuned, kernels_s, measure, roofline_s
from benchmarks.zoo.suite import Entry
from tests.graph.nets import Net
from tests.search.runners import FormulaRunner

pytestmark = pytest.mark.usefixtures("short_turns")


def two_products() -> onnx.ModelProto:
    net = Net(x=(4, 8))
    y = net.op("MatMul", net.op("MatMul", "x", net.normal(8, 8)), net.normal(8, 8))
    return net.model(net.op("Softmax", y))


def test_the_roofline_adds_up_the_kernels() -> None:
    project = open_project(two_products(), Request.of(threads=1))
    flops = 2 * 4 * 8 * 8
    moved = 4 * (4 * 8 + 8 * 8 + 4 * 8)
    products = [t for t in project.tasks if "matmul" in t.name]
    assert [project.weights[t.key] for t in products] == [2]
    rest = roofline_s(project, Peak(1e30, 1.0, 0.0)) - 2 * moved
    assert rest == sum(t.bytes for t in project.tasks if "softmax" in t.name)
    fast = roofline_s(project, Peak(1.0, 1e30, 0.0))
    assert fast == 2 * flops + sum(t.flops for t in project.tasks if "softmax" in t.name)


@pytest.mark.parametrize(
    ("tuned", "text"),
    [(Tuned("none"), "none"), (Tuned(trials_per_task=8), "8 trials a task"),
     (Tuned("full", 8, 90.0), "1.5 min, 8 trials a task")],
)  # fmt: skip
def test_how_long_in_words(tuned: Tuned, text: str) -> None:
    assert tuned.text == text


def test_a_network_is_measured_checked_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Entry, "model", lambda entry, seed: two_products())
    settings = NetworkSettings(tmp_path / "n.db", tmp_path, peers=("onnxruntime",))
    said: list[str] = []
    found = measure(Entry("dcgan"), 1, Tuned("none"), settings, said.append, "none")
    assert not found.failures and list(found.engines) == ["ansorpy", "onnxruntime"]
    assert found.error is not None and found.error < 2e-5
    assert (found.kernels, found.tasks) == (3, 2) and found.roofline_ms > 0
    assert found.ratio is not None and np.isfinite(found.ratio) and len(said) == 1


def test_kernels_have_no_sum_where_one_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_project(two_products(), Request.of(threads=1))
    settings = NetworkSettings(tmp_path / "n.db", tmp_path)
    with Database(settings.db) as database:
        for task in project.tasks:
            trial = database.start(task, State.initial(task.dag))
            assert not isinstance(trial, Record)
            database.complete(trial, MeasureResult(TrialKind.OK, (1e-6,)))
    crash = MeasureResult(TrialKind.CRASH, reason="it crashed")
    failing = FormulaRunner(fails=lambda state, number: crash)
    for runner, is_known in ((FormulaRunner(), True), (failing, False)):
        monkeypatch.setattr(measuring, "LocalRunner", lambda _, r=runner: nullcontext(r))
        found = kernels_s(project, settings)
        assert (found is not None) == is_known and found != float("inf")
