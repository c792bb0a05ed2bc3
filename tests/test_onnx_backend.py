"""Models through the interface of onnx's test runner."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

from ansorpy import onnx_backend
from ansorpy.errors import OutOfBounds, UnsupportedModel, UsageError
from ansorpy.target import Target
from tests.codegen.cuda.simulated import GPU
from tests.frontend.test_pinned import summed
from tests.peer import peer


def test_only_inputs_that_decide_shapes_are_specialised() -> None:
    rng, ready = np.random.default_rng(1), onnx_backend.prepare(summed())
    assert ready.pinned == ("axes",) and ready.versions == 0
    for axis, versions in ((0, 1), (0, 1), (1, 2), (0, 2)):
        x, times = rng.standard_normal((3, 5), np.float32), np.float32(rng.standard_normal())
        [found] = ready.run([x, np.array([axis]), times])
        np.testing.assert_allclose(found, x.sum(axis) * times, rtol=1e-5, atol=1e-6)
        assert ready.versions == versions


def test_inputs_may_be_named() -> None:
    x = np.ones((3, 5), np.float32)
    feeds = {"x": x, "axes": np.array([0]), "times": np.float32(2)}
    [found] = onnx_backend.run_model(summed(), feeds)
    np.testing.assert_array_equal(found, np.full(5, 6, np.float32))


def test_a_node_alone() -> None:
    x = np.random.default_rng(2).standard_normal((2, 3), np.float32)
    [found] = onnx_backend.run_node(helper.make_node("Transpose", ["x"], ["y"]), [x])
    np.testing.assert_array_equal(found, x.T)


def sequence(name: str, *, maybe: bool = False) -> ValueInfoProto:
    """An input or output that is a sequence of floats, or none if *maybe*."""
    kind = helper.make_sequence_type_proto(
        helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    )  # fmt: skip
    return helper.make_value_info(name, helper.make_optional_type_proto(kind) if maybe else kind)


def test_sequences_are_lists() -> None:
    nodes = [
        helper.make_node("SequenceInsert", ["s", "x", "first"], ["longer"]),
        helper.make_node("SequenceAt", ["longer", "last"], ["one"]),
        helper.make_node("Exp", ["one"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "g", [sequence("s"), helper.make_tensor_value_info("x", TensorProto.FLOAT, (2,))],
        [sequence("longer"), helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(n), m) for n, m in ((0, "first"), (-1, "last"))],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    assert onnx_backend.is_compatible(model)
    ready = onnx_backend.prepare(model)
    rng = np.random.default_rng(3)
    for shapes, versions in (([(3,), (2, 4)], 1), ([(3,), (2, 4)], 1), ([(5,)], 2)):
        given = [rng.standard_normal(shape, np.float32) for shape in shapes]
        x = rng.standard_normal(2, np.float32)
        longer, y = ready.run([given, x])
        for got, want in zip(longer, [x, *given], strict=True):
            np.testing.assert_array_equal(got, want)
        np.testing.assert_allclose(y, np.exp(given[-1]), rtol=1e-5)
        assert ready.versions == versions


def test_optional_values_may_be_none() -> None:
    has = helper.make_node("OptionalHasElement", ["s"], ["y"])
    output = helper.make_tensor_value_info("y", TensorProto.BOOL, ())
    graph = helper.make_graph([has], "g", [sequence("s", maybe=True)], [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    for given in ([np.ones(2, np.float32)], None):
        [found] = onnx_backend.run_model(model, [given])
        assert found == (given is not None)


def test_models_run_on_a_gpu_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANSORPY_DEVICE", raising=False)
    monkeypatch.setattr(Target, "parse", lambda name: GPU)
    monkeypatch.setattr(Target, "gpus", lambda target: (0, 1))
    assert onnx_backend.supports_device("CUDA") and onnx_backend.supports_device("cuda:0")
    assert not onnx_backend.supports_device("CUDA:1")  # ANSORPY_DEVICE names the GPU to use
    assert onnx_backend.prepare(summed(), "CUDA").arguments["target"] == "cuda"
    monkeypatch.setattr(Target, "gpus", lambda target: ())
    assert not onnx_backend.supports_device("CUDA")


def test_what_is_refused() -> None:
    assert onnx_backend.supports_device("CPU") and not onnx_backend.supports_device("TPU")
    with pytest.raises(UsageError, match="models do not run on 'TPU' here"):
        onnx_backend.prepare(summed(), "TPU")
    info = helper.make_tensor_value_info("x", TensorProto.STRING, (2,))
    output = helper.make_tensor_value_info("y", TensorProto.STRING, (2,))
    texts = helper.make_model(
        helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [info], [output])
    )
    assert not onnx_backend.is_compatible(texts) and onnx_backend.is_compatible(summed())
    assert not onnx_backend.is_compatible(summed(), "TPU")
    with pytest.raises(UnsupportedModel):
        onnx_backend.prepare(texts)
    texts.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    assert not onnx_backend.is_compatible(texts)
    with pytest.raises(UsageError, match="2 inputs were given, but the model takes 3"):
        onnx_backend.run_model(summed(), [np.ones((3, 5), np.float32), np.array([0])])
    with pytest.raises(UsageError, match="was not given input 'axes'"):
        onnx_backend.run_model(summed(), {"x": np.ones((3, 5), np.float32), "times": np.float32()})


def test_inputs_that_are_found_to_be_needed_later() -> None:
    """The rank of a computed shape is not known before the first input is."""
    infos = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 6)),
        helper.make_tensor_value_info("shape", TensorProto.INT64, ("rank",)),
        helper.make_tensor_value_info("axes", TensorProto.INT64, (1,)),
    ]
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["r"]),
        helper.make_node("ReduceSum", ["r", "axes"], ["y"], keepdims=0),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", infos, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    ready = onnx_backend.prepare(model)
    x = np.random.default_rng(3).standard_normal((2, 6), np.float32)
    for shape, axis, versions in (((3, 4), 1, 1), ((12,), 0, 2), ((3, 4), 1, 2)):
        [found] = ready.run([x, np.array(shape), np.array([axis])])
        np.testing.assert_allclose(found, x.reshape(shape).sum(axis), rtol=1e-5, atol=1e-6)
        assert (set(ready.pinned), ready.versions) == ({"shape", "axes"}, versions)


def test_shapes_are_fixed_where_open_ones_are_refused() -> None:
    """A sequence has a known number of tensors."""
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["s"]),
        helper.make_node("SequenceErase", ["s"], ["y"]),
    ]
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 2))
    graph = helper.make_graph(nodes, "g", [info], [sequence("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    ready, rng = onnx_backend.prepare(model), np.random.default_rng(6)
    for n, versions in ((3, 1), (3, 1), (2, 2)):
        x = rng.standard_normal((n, 2), np.float32)
        [found] = ready.run([x])
        np.testing.assert_array_equal(found, np.split(x[:-1], n - 1))
        assert ready.versions == versions


def made(op_type: str, *names: str) -> ModelProto:
    """A model of one node that takes whole numbers, and gives some that depend on these."""
    node = helper.make_node(op_type, names, ["y"])
    kind = TensorProto.INT64 if op_type == "Range" else TensorProto.FLOAT
    infos = [helper.make_tensor_value_info(name, TensorProto.INT64, ()) for name in names]
    output = helper.make_tensor_value_info("y", kind, None)
    graph = helper.make_graph([node], "g", infos, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_one_program_makes_windows_of_all_sizes() -> None:
    """Its bounds grow with what calls need."""
    ready = onnx_backend.prepare(made("HannWindow", "size"))
    for size, most in ((7, 16), (16, 16), (0, 16), (1, 16), (19, 32), (7, 32)):
        [found] = ready.run([np.array(size)])
        turns = 2 * np.pi * np.arange(size) / max(size, 1)
        np.testing.assert_allclose(found, 0.5 - 0.5 * np.cos(turns), atol=1e-6)
        assert (ready.pinned, ready.bounds, ready.versions) == ((), {"size": [most]}, 1)
    with pytest.raises(OutOfBounds, match="out of its bounds"):
        ready.run([np.array(-1)])


def test_a_number_of_rows_that_is_computed_has_a_bound() -> None:
    ready = onnx_backend.prepare(made("Range", "start", "limit", "delta"))
    for ends, most in (((3, 12, 2), 16), ((5, -9, -1), 16), ((0, 90, 1), 128)):
        [found] = ready.run([np.array(end) for end in ends])
        np.testing.assert_array_equal(found, np.arange(*ends))
        assert (ready.pinned, ready.bounds, ready.versions) == ((), {"y": [most]}, 1)


def test_mel_filters_follow_rates_and_edges() -> None:
    names = ("bins", "length", "rate", "low", "high")
    model = made("MelWeightMatrix", *names)
    for info in model.graph.input[3:]:
        info.type.tensor_type.elem_type = TensorProto.FLOAT
    ready = onnx_backend.prepare(model)
    other = peer(model)
    for rate, low, high in ((8000, 0.0, 4000.0), (22050, 100.0, 7600.0), (8000, 300.0, 320.0)):
        edges = [np.array(edge, np.float32) for edge in (low, high)]
        feeds = dict(zip(names, [*map(np.array, (11, 128, rate)), *edges], strict=True))
        np.testing.assert_allclose(ready.run(feeds)[0], other.run(None, feeds)[0], atol=1e-6)
        assert (ready.pinned, ready.versions) == (("bins", "length"), 1)
