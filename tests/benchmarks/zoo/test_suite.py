from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from ansorpy.errors import UsageError
from benchmarks.zoo.__main__ import main
from benchmarks.zoo.suite import ALL, Entry, with_batch
from tests.frontend.models import graph_model, node, operator_model
from tests.graph.nets import Net


def test_names_with_and_without_a_batch() -> None:
    assert Entry.parse("resnet50.b16") == Entry("resnet50", 16)
    assert Entry.parse("dcgan", 4).label == "dcgan.b4"
    assert [Entry.parse(name).label for name in ALL] == list(ALL)
    for wrong in ("resnet51", "resnet50.bx", "dcgan.16"):
        with pytest.raises(UsageError, match="no network"):
            Entry.parse(wrong)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.onnx"
    onnx.save(operator_model("Relu", [(2, 3)]), path)
    entry = Entry.parse(str(path))
    assert entry.label == "mine" and entry.file(0, tmp_path / "elsewhere") == path
    with pytest.raises(UsageError, match="no file"):
        Entry.parse(str(tmp_path / "other.onnx"))
    with pytest.raises(UsageError, match="the batch of .* cannot be changed"):
        Entry.parse(str(path), 4)


def test_a_file_is_written_once(tmp_path: Path) -> None:
    path = Entry("dcgan").file(0, tmp_path)
    onnx.checker.check_model(path)
    before = path.stat().st_mtime_ns
    assert Entry("dcgan").file(0, tmp_path) == path and path.stat().st_mtime_ns == before


def test_a_batch_changes_inputs_outputs_and_reshapes() -> None:
    net = Net(x=(1, 3, 4, 4))
    y = net.gemm(net.reshape(net.relu("x"), 1, 48), 48, 5)
    model = onnx.shape_inference.infer_shapes(with_batch(net.model(y), 3), strict_mode=True)
    shapes = [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.output]
    assert shapes == [[3, 5]]


def test_a_batch_that_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match="no batch of 1"):
        with_batch(operator_model("Relu", [(2, 3)]), 4)
    fixed = graph_model([node("Add", ["x", "z"], ["y"])], {"x": (1, 3), "z": (1, 3)}, ["y"])
    del fixed.graph.output[0].type.tensor_type.shape.dim[:]
    fixed.graph.output[0].type.tensor_type.shape.dim.add().dim_value = 1
    with pytest.raises(UsageError, match="cannot have a batch of 4"):
        with_batch(fixed, 4)


def test_the_command_writes_a_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.onnx"
    assert main(["dcgan.b2", str(path)]) == 0
    [image] = onnx.load(path).graph.input
    assert image.type.tensor_type.shape.dim[0].dim_value == 2
    assert main(["nothing", str(path)]) == 2
    assert "choose from" in capsys.readouterr().err
