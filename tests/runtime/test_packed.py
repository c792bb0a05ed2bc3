"""Inputs and outputs of narrow types, through compiled code: numpy has one element a byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper

import ansorpy as ap
from ansorpy.errors import UsageError
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.target import Target
from tests.codegen.cuda.simulated import GPU, SimulatedDevice
from tests.frontend.models import node
from tests.runtime.gpu.test_executable import attached, bound, gpu_task
from tests.runtime.programs import task_of

Array = NDArray[Any]


def halves(kind: str, shape: tuple[int | str, ...]) -> ModelProto:
    """``y = q // 2`` and ``z = q`` as float8e5m2, for q of a narrow type."""
    nodes = [
        node("Cast", ["q"], ["x"], to=TensorProto.INT32),
        node("BitShift", ["x", "one"], ["h"], direction="RIGHT"),
        node("Cast", ["h"], ["y"], to=getattr(TensorProto, kind)),
        node("Cast", ["x"], ["z"], to=TensorProto.FLOAT8E5M2),
    ]
    code = getattr(TensorProto, kind)
    graph = helper.make_graph(
        nodes, "halves", [helper.make_tensor_value_info("q", code, shape)],
        [helper.make_tensor_value_info("y", code, shape),
         helper.make_tensor_value_info("z", TensorProto.FLOAT8E5M2, shape)],
        [helper.make_tensor("one", TensorProto.INT32, [], [1])],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 26)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=12)


def compiled(model: ModelProto, **sizes: tuple[int, int]) -> CompiledModel:
    """*model* with plain schedules."""
    network, target = partition(optimize(load(model, dims=sizes))), Target.host()
    tasks = {
        w.key: task_of(w.dag, f"task{n}", target=target) for n, w in enumerate(network.workloads())
    }
    return CompiledModel.of(network, tasks, target=target, threads=1)


def values(kind: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    low, high = {"INT4": (-8, 8), "UINT4": (0, 16), "UINT2": (0, 4)}[kind]
    rng = np.random.default_rng(seed)
    return rng.integers(low, high, shape).astype(getattr(ml_dtypes, kind.lower()))


def assert_halves(q: Array, y: Array, z: Array) -> None:
    whole = q.astype(np.int64)
    assert (y.dtype, y.shape) == (q.dtype, q.shape)
    np.testing.assert_array_equal(y.astype(np.int64), whole >> 1)
    exact = q.astype(np.float32).astype(ml_dtypes.float8_e5m2)
    np.testing.assert_array_equal(z.view(np.uint8), exact.view(np.uint8))


@pytest.mark.parametrize("kind", ["INT4", "UINT4", "UINT2"])
@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 64)])
def test_arrays_of_ml_dtypes_come_and_go(kind: str, shape: tuple[int, ...]) -> None:
    model = compiled(halves(kind, shape))
    q = values(kind, shape)
    before = q.copy()
    assert_halves(q, *model.run(None, {"q": q}))
    np.testing.assert_array_equal(q, before)
    assert_halves(q, *model.run(None, {"q": np.asfortranarray(q)}))
    outputs = [np.zeros(shape, q.dtype), np.zeros(shape, ml_dtypes.float8_e5m2)]
    run = model.prepare({"q": q}, outputs)
    for seed in (1, 2):
        q[...] = values(kind, shape, seed)
        run()
        assert_halves(q, *outputs)


def test_a_prepared_run_tells_its_seconds_on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    attached(SimulatedDevice(), monkeypatch)
    network = partition(optimize(load(halves("INT4", (3, 5)))))
    tasks = {w.key: gpu_task(w.dag, f"task{n}", bound) for n, w in enumerate(network.workloads())}
    model = CompiledModel.of(network, tasks, target=GPU, threads=1)
    q = values("INT4", (3, 5))
    outputs = [np.zeros(q.shape, port.dtype) for port in model.get_outputs()]
    run: Any = model.prepare({"q": q}, outputs)
    run()
    assert_halves(q, *outputs)
    assert run.seconds(3) == pytest.approx(3 * run.seconds(1))


def test_libraries_take_packed_bytes(tmp_path: Path) -> None:
    path = compiled(halves("INT4", (3, 5))).export(tmp_path / "net.so")
    model, q = ap.load(path), values("INT4", (3, 5))
    assert [port.type for port in model.get_inputs()] == ["tensor(int4)"]
    assert [port.bytes for port in model.get_inputs()] == [8]
    assert_halves(q, *model.run(None, {"q": q}))
    assert "int4, 2 in a byte from its lowest bits on" in path.with_suffix(".h").read_text()


def test_sizes_may_be_open() -> None:
    model = compiled(halves("UINT4", ("n", 3)), n=(1, 40))
    for n in (1, 2, 7, 40):
        q = values("UINT4", (n, 3))
        assert_halves(q, *model.run(None, {"q": q}))


def test_other_arrays_are_refused() -> None:
    model = compiled(halves("INT4", (3, 5)))
    with pytest.raises(UsageError, match="input 'q' takes 3x5 of int4, got 3x5 of int8"):
        model.run(None, {"q": np.zeros((3, 5), np.int8)})
