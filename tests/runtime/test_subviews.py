"""Networks whose values are parts of others, compiled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

from ansorpy.errors import UsageError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.model import load
from ansorpy.runtime.planner import plan_kernel
from ansorpy.target import Target
from tests.graph.executor import compiled, random_feeds, run_network
from tests.graph.nets import Net
from tests.runtime import programs


def cut(net: Net, x: str, start: int, stop: int) -> str:
    return net.op("Slice", x, *(net.constant([v], np.int64) for v in (start, stop, 1)))


def branches() -> ModelProto:
    """Parts in the arena, in the caller's output, and slices of the caller's input."""
    net = Net(x=(2, 32), z=(2, 16))
    a, b = net.op("Tanh", "z"), net.op("MatMul", cut(net, "x", 16, 32), net.normal(16, 16))
    inner = net.op("Concat", a, b, axis=1)
    outer = net.op("Concat", inner, net.op("MatMul", inner, net.normal(32, 16)), axis=1)
    y = net.op("Concat", net.relu(cut(net, outer, 16, 48)), net.op("Neg", "z"), axis=1)
    return net.model(y, net.op("ReduceSum", outer, net.constant([1], np.int64)))


def test_parts_lie_where_the_plan_says(tmp_path: Path) -> None:
    network = compiled(branches())
    assert len({view.of for view in network.subviews.values()}) == 3
    tasks = {w.key: programs.task_of(w.dag, f"part{n}") for n, w in enumerate(network.workloads())}
    feeds = random_feeds(network, np.random.default_rng(2))
    expected = run_network(network, feeds)
    model = CompiledModel.of(network, tasks, target=Target.host(), threads=1, name="parts")
    for compiled_model in (model, load(model.export(tmp_path / "parts.so"))):
        for got, want in zip(compiled_model.run(None, feeds), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())


def test_a_kernel_of_its_own_takes_whole_tensors() -> None:
    a = placeholder((3, 4), name="A")
    b = compute((3, 4), lambda i, j: a[i, j] + 1.0, name="B")
    task = programs.task_of(ComputeDAG([b], [a], {"A": (8, 1)}), "apart")
    with pytest.raises(UsageError, match="A is a part of a larger tensor"):
        plan_kernel(task, {}, target=Target.host(), threads=1)
