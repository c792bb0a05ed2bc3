"""A search for a GPU from the request to the kernel, on a simulated one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import ansorpy as ap
from ansorpy.errors import UsageError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.task import Precision, Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.measure.gpu import devices
from ansorpy.measure.gpu.runner import GpuRunner
from ansorpy.measure.records.database import Database
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from ansorpy.tasks.recorded_request import read_request
from tests.codegen.cuda.simulated import GPU, SimulatedDevice
from tests.measure.gpu.simulated import simulated_built
from tests.rules.attentions import attend
from tests.tensor_cores import values


class _Builder:
    """Builds any schedule for the simulated GPU, and the reference for the CPU."""

    def build(self, task: Task, states: Sequence[State]) -> list[Built | MeasureResult]:
        if task.target.backend == "llvm":
            return [build_lowered(lower(state), task.target, "reference") for state in states]
        return [simulated_built(state, seconds=0.2) for state in states]

    def close(self) -> None:
        """Nothing to give up."""


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> SimulatedDevice:
    """The GPU of this process; the run worker has one of its own."""
    made = SimulatedDevice()
    monkeypatch.setattr(Target, "gpus", lambda self: (0,) if self.backend == "cuda" else ())
    monkeypatch.setattr(devices, "bus_place", lambda number: f"simulated-{number}")
    runner = partial(GpuRunner, builder=_Builder(), module="tests.measure.gpu.simulated")
    monkeypatch.setattr(devices, "GpuRunner", runner)
    monkeypatch.setattr("ansorpy.runtime.gpu.runtime.device_for", lambda target: made)
    return made


@pytest.mark.parametrize(("dtype", "precision"), [("float16", "default"), ("float32", "tf32")])
def test_products_are_tuned_for_tensor_cores(
    dtype: str, precision: Precision, device: SimulatedDevice, tmp_path: Path,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    a, b = ap.placeholder((16, 16), dtype, name="A"), ap.placeholder((16, 8), dtype, name="B")
    k = ap.reduce_axis(16, name="k")

    def product(i: Expr, j: Expr) -> Expr:
        return ap.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k)

    tensors = [a, b, ap.compute((16, 8), product, name="C")]
    db = tmp_path / "tune.db"
    kernel = ap.tune(tensors, trials=3, target=GPU, precision=precision, db=db)
    with Database(db) as database:
        (row,) = database.tasks()
        records = database.records(row.key)
    assert any("mma" in r.steps and r.median_s is not None for r in records)
    assert not any(r.kind is TrialKind.WRONG_RESULT for r in records), [r.reason for r in records]
    x, y = (rng.standard_normal(op.shape).astype(op.dtype.numpy) for op in (a, b))
    want = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(kernel(x, y), want, rtol=0, atol=0.02)


def test_tuning_measures_on_the_gpu_and_gives_a_kernel_that_runs_there(
    device: SimulatedDevice, tmp_path: Path, rng: np.random.Generator
) -> None:
    a, b = ap.placeholder((8, 12), name="A"), ap.placeholder((12, 8), name="B")
    k = ap.reduce_axis(12, name="k")
    c = ap.compute((8, 8), lambda i, j: ap.sum(a[i, k] * b[k, j], axis=k), name="C")
    db = tmp_path / "tune.db"
    kernel = ap.tune([a, b, c], trials=3, target=GPU, db=db)
    assert kernel.median_ms is not None and kernel.median_ms >= 19
    assert "blockIdx" in kernel.program
    x, y = (rng.standard_normal(op.shape, dtype=np.float32) for op in (a, b))
    np.testing.assert_allclose(kernel(x, y), x @ y, rtol=1e-4, atol=1e-4)
    assert any(call.startswith("launch") for call in device.calls)
    task = Task(ap.ComputeDAG.of([a, b, c]), GPU, 1)
    with Database(db) as database:
        assert database.trials(task.key) == 3
        request = read_request(database.sessions.events(1)[0], database)
        assert request.options.at("ahead") is True
    again = ap.tune([a, b, c], trials=3, target=GPU, db=db)  # nothing is left to measure
    assert again.median_ms == kernel.median_ms


def test_clusters_and_threads_are_refused_for_gpus(device: SimulatedDevice) -> None:
    a = ap.placeholder((8,), name="A")
    tensors = [a, ap.compute((8,), lambda i: a[i] + 1.0, name="B")]
    with pytest.raises(UsageError, match="a cluster's GPUs"):
        ap.tune(tensors, trials=2, target=GPU, workers="ray://head:10001")
    with pytest.raises(UsageError, match="make no difference to a GPU"):
        ap.tune(tensors, trials=2, target=GPU, threads=3)


def test_attention_is_tuned_in_the_registers_of_warps(
    device: SimulatedDevice, tmp_path: Path, rng: np.random.Generator
) -> None:
    tensors = attend(1, 16, 16, 16, 8)
    db = tmp_path / "tune.db"
    kernel = ap.tune(tensors, trials=2, target=GPU, db=db)
    with Database(db) as database:
        (row,) = database.tasks()
        records = database.records(row.key)
    assert not any(r.kind is TrialKind.WRONG_RESULT for r in records), [r.reason for r in records]
    assert any('"carry"' in r.steps and r.median_s is not None for r in records)
    data = values(tensors, rng)
    (want,) = run_dag(ComputeDAG.of(tensors), dict(data), dtype=DType.FLOAT64)
    np.testing.assert_allclose(kernel(*data.values()), want, rtol=0, atol=0.01)
