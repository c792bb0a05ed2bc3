"""The peers agree with each other and reuse their buffers; unknown or missing ones are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from ansorpy.cli.main import main
from ansorpy.errors import ForeignFile, MissingDependency, UsageError
from ansorpy.evaluation.engines.names import ENGINES
from ansorpy.evaluation.engines.protocol import open_engine, open_peer
from ansorpy.evaluation.inputs import random_feeds
from ansorpy.evaluation.onnx_inputs import input_specs, read_model
from tests.frontend.models import graph_model, node


@pytest.fixture
def model(tmp_path: Path) -> Path:
    f32 = TensorProto.FLOAT
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["a", "b"], ["c"]),
            helper.make_node("Tanh", ["c"], ["y"]),
            helper.make_node("Neg", ["a"], ["n"]),
        ],
        "g",
        [info("a", f32, ["batch", 5]), info("b", f32, [5, 7])],
        [info("y", f32, ["batch", 7]), info("n", f32, ["batch", 5])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "reference"])
def test_an_engine_computes_in_place(name: str, model: Path) -> None:
    pytest.importorskip("onnx" if name == "reference" else name)
    feeds = random_feeds(input_specs(read_model(model), dims={"batch": 3}), seed=1)
    engine = open_engine(name, str(model), feeds, threads=1)
    engine.run()
    engine.run()
    out = engine.outputs()
    assert list(out) == ["y", "n"]
    assert np.allclose(out["y"], np.tanh(feeds["a"] @ feeds["b"]), atol=1e-6)
    assert np.array_equal(out["n"], -feeds["a"])


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
def test_the_reference_flattens_softmaxes_of_older_operator_sets(
    operator: str, rng: np.random.Generator, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    x = rng.standard_normal((2, 3, 5), np.float32)
    given: list[tuple[int, dict[str, Any]]] = [(9, {}), (12, {"axis": 2}), (13, {"axis": 1})]
    for opset, options in given:
        nodes = [node(operator, "x", "y", **options)]
        model = graph_model(nodes, {"x": x.shape}, ["y"], opset=opset)
        onnx.save(model, tmp_path / "m.onnx")
        found = []
        for name in ("reference", "onnxruntime"):
            engine = open_engine(name, str(tmp_path / "m.onnx"), {"x": x}, threads=1)
            engine.run()
            found.append(engine.outputs()["y"])
        np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_open_peer_takes_json_arguments(model: Path) -> None:
    engine = open_peer("reference", str(model), threads=1, seed=1, shapes={"a": [2, 5]})
    engine.run()
    assert engine.outputs()["y"].shape == (2, 7)


def test_feeds_depend_on_seed_and_name_only(model: Path) -> None:
    specs = input_specs(read_model(model), dims={"batch": 3})
    one, same, other = random_feeds(specs, 1), random_feeds(specs[::-1], 1), random_feeds(specs, 2)
    assert all(np.array_equal(one[n], same[n]) for n in ("a", "b"))
    assert not np.array_equal(one["a"], other["a"])


def test_open_sizes_are_usual_ones(model: Path) -> None:
    found = read_model(model)
    assert input_specs(found, dims={"batch": [1, 7, 7]})[0].shape == (7, 5)
    assert 1 <= input_specs(found)[0].shape[0] <= 32


def test_open_sizes_that_must_be_equal_are_equal() -> None:
    model = graph_model(
        [node("Add", ["x", "m"], ["y"])], {"x": (None, "seq"), "m": ("n", "total")}, ["y"]
    )
    x, m = input_specs(model)
    assert x.shape == m.shape
    x, m = input_specs(model, dims={"seq": 7})
    assert x.shape[1] == m.shape[1] == 7


@pytest.mark.parametrize(
    ("shapes", "dims", "message"),
    [
        ({}, {"rows": 3}, "no dynamic dimension named rows"),
        ({"z": [1]}, {}, "no input named z"),
        ({"a": [2, 6]}, {}, r"the shape of a: the model fixes \['batch', 5\], not 2x6"),
        ({"a": [2]}, {}, "the model's input has 2 dimensions, not 1"),
    ],
)
def test_bad_shapes(
    model: Path, shapes: dict[str, list[int]], dims: dict[str, int], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        input_specs(read_model(model), shapes, dims)


def test_files_that_are_not_models(tmp_path: Path) -> None:
    for name, content in (("text", b"hello, this is no model"), ("empty", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ForeignFile, match="is not an ONNX model"):
            read_model(tmp_path / name)
    with pytest.raises(ForeignFile, match="cannot read"):
        read_model(tmp_path / "absent")


def test_models_whose_weights_are_gone_or_cut_short(tmp_path: Path) -> None:
    weight = {"w": np.ones((4, 40), np.float32)}
    made = graph_model([node("MatMul", ["x", "w"], ["y"])], {"x": (3, 4)}, ["y"], weight)
    path, beside = tmp_path / "net.onnx", tmp_path / "w.bin"
    onnx.save(made, path, save_as_external_data=True, location=beside.name, size_threshold=0)
    for change in (lambda: beside.write_bytes(bytes(7)), beside.unlink):
        change()
        with pytest.raises(ForeignFile, match="the weights of .* cannot be read"):
            read_model(path)


def test_a_model_without_nodes_is_one(tmp_path: Path) -> None:
    made = graph_model([node("Neg", ["x"], ["y"])], {"x": (3,)}, ["y"])
    del made.graph.node[:]
    made.graph.output[0].name = "x"
    onnx.save(made, tmp_path / "net.onnx")
    assert read_model(tmp_path / "net.onnx") == made


def test_unknown_and_missing_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="unknown engine 'tvm'"):
        open_engine("tvm", "x", {}, 1)
    monkeypatch.setitem(ENGINES, "ghost", ("ghost_engine:Ghost", "ghost", "bench"))
    with pytest.raises(MissingDependency, match="ghost cannot be loaded") as caught:
        open_engine("ghost", "x", {}, 1)
    assert "pip install ghost" in str(caught.value.hint)


@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "reference"])
def test_what_an_engine_does_not_run_is_said_in_one_line(name: str, tmp_path: Path) -> None:
    pytest.importorskip("onnx" if name == "reference" else name)
    nodes = [node("Unheard", "x", "y", domain="test.ops")]
    onnx.save(graph_model(nodes, {"x": (2,)}, ["y"], domains=["test.ops"]), tmp_path / "m.onnx")
    with pytest.raises(UsageError, match="does not run this model: .*Unheard") as caught:
        open_engine(name, str(tmp_path / "m.onnx"), {"x": np.ones(2, np.float32)}, 1)
    assert "\n" not in caught.value.message and caught.value.hint is None


def test_another_engine_is_suggested_for_operators_of_onnx(model: Path) -> None:
    pytest.importorskip("onnxruntime")
    feeds = {"a": np.ones((3, 4), np.float32), "b": np.ones((5, 7), np.float32)}
    with pytest.raises(UsageError, match=r"onnxruntime .* does not run this model") as caught:
        open_engine("onnxruntime", str(model), feeds, 1)
    assert "--against reference" in str(caught.value.hint)
    with pytest.raises(UsageError, match="reference evaluator of onnx .* does not run this model"):
        open_engine("reference", str(model), feeds, 1).run()


def test_an_input_that_is_no_tensor_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = helper.make_tensor_sequence_value_info("xs", TensorProto.FLOAT, [2])
    made = helper.make_tensor_value_info("y", TensorProto.INT64, [])
    graph = helper.make_graph([node("SequenceLength", "xs", "y")], "g", [given], [made])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    assert main(["verify", str(path)]) == 2
    assert "input 'xs' is not a tensor of a known type" in capsys.readouterr().err
