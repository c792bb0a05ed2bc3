"""Networks whose inputs have dimensions: one model for every size, beside onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest

import ansorpy as ap
from ansorpy.api.project import open_project
from ansorpy.api.request import Request
from ansorpy.api.sized.task_group import sizes_for
from ansorpy.errors import UsageError
from ansorpy.ir.extents import dims_of
from ansorpy.ir.sizes import at, fixed_all
from ansorpy.ir.symbols import Dim
from ansorpy.runtime.model import Model
from ansorpy.size_ranges import SizeRange
from tests.graph.nets import Net
from tests.peer import peer

Rng = np.random.Generator


def encoder() -> onnx.ModelProto:
    """A layer of attention over any number of rows, with residuals and a masked softmax."""
    net = Net(x=(1, "seq", 12), mask=(1, 1, 1, "seq"))

    def dense(value: str, k: int, n: int) -> str:
        return net.op("Add", net.op("MatMul", value, net.normal(k, n)), net.normal(n))

    def heads(value: str, *perm: int) -> str:
        return net.op("Transpose", net.reshape(value, 0, -1, 3, 4), perm=perm)

    q, v = (heads(dense("x", 12, 12), 0, 2, 1, 3) for _ in range(2))
    scores = net.op("MatMul", q, heads(dense("x", 12, 12), 0, 2, 3, 1))
    scores = net.op("Add", net.op("Div", scores, net.constant(8.0)), "mask")
    mixed = net.op("MatMul", net.op("Softmax", scores, axis=-1), v)
    joined = net.reshape(net.op("Transpose", mixed, perm=[0, 2, 1, 3]), 0, -1, 12)
    return net.model(net.op("Tanh", net.op("Add", dense(joined, 12, 12), "x")))


def images() -> onnx.ModelProto:
    """Convolutions over images of any width in batches of any size, with a concatenation."""
    net = Net(x=("batch", 3, 8, "w"))
    x = net.relu(net.batch_norm(net.conv("x", 3, 5, 3, strides=[2, 2]), 5))
    x = net.op("Concat", net.relu(net.conv(x, 5, 5, 3)), x, axis=1)
    return net.model(net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 1], pads=[1, 1, 1, 1]))


def assert_same(model: onnx.ModelProto, found: Model, sizes: Mapping[str, int], rng: Rng) -> None:
    feeds = {}
    for port in found.get_inputs():
        known = {dim: sizes[dim.name] for dim in dims_of(port.shape)}
        shape = fixed_all(at(extent, known) for extent in port.shape)
        feeds[port.name] = rng.standard_normal(shape).astype(port.dtype)
    session = peer(model)
    for got, want in zip(found.run(None, feeds), session.run(None, feeds), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * np.abs(want).max())


@pytest.mark.usefixtures("few_sizes")
def test_one_model_runs_at_every_size(tmp_path: Path, rng: Rng) -> None:
    network = encoder()
    model = ap.compile(
        network, dims={"seq": (1, 12)}, effort="none", db=tmp_path / "n.db", threads=2
    )
    loaded = ap.load(model.export(tmp_path / "net.so"))
    for seq in (1, 2, 7, 9, 12, 7):
        assert_same(network, model, {"seq": seq}, rng)
        assert_same(network, loaded, {"seq": seq}, rng)
    with pytest.raises(UsageError, match="seq is from 1 to 12"):
        assert_same(network, model, {"seq": 13}, rng)


@pytest.mark.usefixtures("few_sizes")
def test_several_dimensions_and_programs_that_are_predicted(tmp_path: Path, rng: Rng) -> None:
    network = images()
    model = ap.compile(
        network, dims={"batch": "1,4", "w": (5, 12)}, effort="none", db=tmp_path / "n.db", threads=1
    )
    for batch, w in ((1, 5), (1, 12), (4, 11), (3, 6)):
        assert_same(network, model, {"batch": batch, "w": w}, rng)


def test_tasks_are_tuned_at_the_sizes_that_were_observed() -> None:
    request = Request.of(effort="none", target="x86-64-v4", threads=2)
    project = open_project(encoder(), request, dims={"seq": [3, 3, 3, 17]})
    assert {task.name.partition("[")[2] for task in project.tasks} == {"seq=3]", "seq=17]"}
    [group, *_] = project.groups
    assert group.shares(group.tasks) == [0.75, 0.25]
    # A second counts by its share of the network's time: eight times as much in a short run.
    assert [*group.weights((1.0, 8.0)).values()] == [0.75 * 8, 0.25]
    few, many = (sum(group.least[n] * project.weights[task.key] / group.shares(group.tasks)[n]
                     for group in project.groups for task in [[*group.tasks][n]])
                 for n in (0, 1))  # fmt: skip
    assert few == pytest.approx(many)  # the least times of whole runs


def test_observed_sizes_stand_for_others() -> None:
    n = Dim("n", 1, 512)

    def of(*calls: tuple[int, int]) -> list[object]:
        return [sizes[n] for sizes in sizes_for([n], {n: SizeRange(1, 512, calls=calls)})]

    assert of((1, 6), (300, 2), (512, 1)) == [1, 300, 512]
    assert of(*((size, 1) for size in (1, 2, 3, 4, 5, 6, 400, 512))) == [2, 4, 6, 512]
