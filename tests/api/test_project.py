"""Networks become tasks: weights, memory, sizes of dynamic dimensions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ansorpy as ap
from ansorpy.api.project import open_project
from ansorpy.api.request import Request
from ansorpy.errors import ForeignFile, MissingDependency, UsageError
from ansorpy.quantities import bytes_text
from ansorpy.target import Target
from tests.graph.nets import Net

REQUEST = Request.of(effort="none", threads=2)


@pytest.fixture
def network() -> onnx.ModelProto:
    """Three layers, two of them alike: y = relu(relu(relu(x A) B) C)."""
    rng = np.random.default_rng(0)
    sizes = {"A": (6, 10), "B": (10, 10), "C": (10, 10)}
    nodes, before = [], "x"
    for name in sizes:
        nodes.append(helper.make_node("MatMul", [before, name], [f"m{name}"]))
        nodes.append(helper.make_node("Relu", [f"m{name}"], [f"r{name}"]))
        before = f"r{name}"
    info = helper.make_tensor_value_info
    weights = [
        numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n)
        for n, s in sizes.items()
    ]
    graph = helper.make_graph(
        nodes,
        "mlp",
        [info("x", TensorProto.FLOAT, ["batch", 6])],
        [info(before, TensorProto.FLOAT, ["batch", 10])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_equal_layers_are_one_task(network: onnx.ModelProto) -> None:
    project = open_project(network, REQUEST, dims={"batch": 3})
    assert project.name == "mlp"
    assert sorted(project.weights.values()) == [1, 2]
    assert all(t.threads == 2 and t.reuse_distance_bytes == 0 for t in project.tasks)


def test_constants_are_where_a_run_of_the_network_leaves_them(network: onnx.ModelProto) -> None:
    host = Target.parse("x86-64-v4")

    def between(l2_bytes: int, l3_bytes: int) -> set[int]:
        target = replace(host, l2_bytes=l2_bytes, l3_bytes=l3_bytes)
        request = replace(REQUEST, target=target)
        return {
            task.reuse_distance_bytes
            for task in open_project(network, request, dims={"batch": 3}).tasks
        }

    project = open_project(network, REQUEST, dims={"batch": 3})
    touched = project.constant_bytes + project.network.arena.bytes + 4 * 3 * (6 + 10)
    assert project.touched_bytes == touched
    others = [touched - 4 * 6 * 10, touched - 4 * 10 * 10]
    assert between(touched // 2, 0) == {0}
    for cache in (touched, touched // 2):
        unit = cache // 8
        assert between(64, cache) == {round(size / unit) * unit for size in others}
    assert between(64, touched // 2 - 1) == {4 * (touched // 2 - 1)}
    assert between(64, 0) == {4 * 128}
    # What is little beside the caches of all cores is still not in them.
    assert between(touched // 2 - 1, 100 * touched) == {100 * touched // 8}


def test_memory_is_counted_and_limited(network: onnx.ModelProto) -> None:
    project = open_project(network, REQUEST, shapes={"x": (3, 6)})
    assert project.constant_bytes == 4 * (6 * 10 + 2 * 10 * 10)
    project.fit(None)
    project.fit(1 << 20)
    with pytest.raises(UsageError, match=r"(?s)than the 100 B allowed.*allow 1 MiB .*--memory"):
        project.fit(100)


def test_little_memory_leaves_the_ways_that_fit() -> None:
    net = Net(x=(8, 16, 8, 8))
    y = "x"
    for _ in range(3):
        y = net.relu(net.conv(y, 16, 16, 3))
    model = net.model(net.op("GlobalAveragePool", y))
    target = replace(Target.parse("x86-64-v4"), l2_bytes=1 << 10)
    project = open_project(model, replace(REQUEST, target=target))
    [region] = project.regions
    whole, pieces = project, project.decided([1])
    assert pieces.memory_bytes < whole.memory_bytes == project.memory_bytes
    assert {t.key for t in pieces.tasks} <= {t.key for t in project.all_tasks}
    [task] = [t for t in pieces.tasks if pieces.weights[t.key] == 16]
    assert pieces.packs[task.key] == 2

    fitting = project.fit(whole.memory_bytes - 1)
    assert [r.options for r in fitting.regions] == [region.options[1:]]
    assert fitting.network.arena.bytes == pieces.network.arena.bytes
    assert {t.key for t in fitting.all_tasks} == {t.key for t in pieces.tasks}
    assert project.fit(whole.memory_bytes).regions == (region,)
    with pytest.raises(UsageError, match=f"needs {bytes_text(pieces.memory_bytes)}"):
        project.fit(pieces.memory_bytes - 1)


def test_tensors_larger_than_the_machine_are_refused(network: onnx.ModelProto) -> None:
    with pytest.raises(MissingDependency, match=r"mlp needs .* GiB for its tensors, but this"):
        open_project(network, REQUEST, dims={"batch": 1 << 40})
    x = ap.placeholder((1 << 20, 1 << 20), name="x")
    y = ap.compute((1 << 20, 1 << 20), lambda i, j: x[i, j] + 1.0, name="y")
    with pytest.raises(MissingDependency, match="y needs 8192 GiB"):
        ap.tune([x, y], effort="none")


def test_only_the_least_sizes_must_fit_the_machine(network: onnx.ModelProto) -> None:
    """No call has all of the largest ones."""
    project = open_project(network, REQUEST, dims={"batch": (1, 1 << 40)})
    assert all(max(task.dag.args[0].shape) < 1 << 40 for task in project.tasks)
    with pytest.raises(MissingDependency, match=r"mlp needs .* GiB for its tensors, but this"):
        open_project(network, REQUEST, dims={"batch": (1 << 40, 1 << 41)})


def test_an_unknown_dimension_is_named(network: onnx.ModelProto) -> None:
    with pytest.raises(UsageError, match="no dynamic dimension named bach"):
        open_project(network, REQUEST, dims={"bach": 1})


def test_a_file_that_is_no_network(tmp_path: Path) -> None:
    (tmp_path / "n.onnx").write_bytes(b"nonsense")
    with pytest.raises(ForeignFile):
        open_project(tmp_path / "n.onnx", REQUEST)


def test_a_network_without_anything_to_compute_is_mentioned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    net = Net(x=("n", 3))
    model = net.model(net.relu("x"))
    assert open_project(model, REQUEST, dims={"n": 2}).tasks and not caplog.messages
    assert not open_project(model, REQUEST, dims={"n": 0}).tasks
    assert "has nothing to compute" in caplog.text
