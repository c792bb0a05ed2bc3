"""Sequences and optional values: lists of tensors while a model is imported."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, parser

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from ansorpy.size_ranges import SizeRange
from tests.frontend.models import graph_model, node
from tests.frontend.sized import assert_same_at, import_sized
from tests.frontend.test_loops import assert_same, compiled, floats
from tests.graph.executor import Array, run_network


def ints(*values: int) -> Array:
    return np.asarray(values, np.int64)


def test_sequences_are_lists_of_values(rng: np.random.Generator) -> None:
    nodes = [
        node("SequenceConstruct", ["x", "z"], ["s0"]),
        node("Exp", ["x"], ["e"]),
        node("SequenceInsert", ["s0", "e", "one"], ["s1"]),
        node("SequenceInsert", ["s1", "z"], ["s2"]),
        node("SequenceErase", ["s2", "minus"], ["s3"]),
        node("Identity", ["s3"], ["s4"]),
        node("SequenceLength", ["s4"], ["count"]),
        node("SequenceAt", ["s4", "one"], ["at"]),
        node("ConcatFromSequence", ["s4"], ["joined"], axis=1),
        node("ConcatFromSequence", ["s4"], ["stacked"], axis=-1, new_axis=1),
    ]
    model = graph_model(
        nodes, {"x": (2, 3), "z": (2, 3)}, ["count", "at", "joined", "stacked"],
        {"one": np.asarray(1), "minus": np.asarray(-3)}, types={"count": TensorProto.INT64},
    )  # fmt: skip
    assert_same(compiled(model), model, {"x": floats(rng, 2, 3), "z": floats(rng, 2, 3)})


@pytest.mark.parametrize(("split", "axis"), [(None, 0), (2, 1), ((1, 0, 4), 1), (5, -1)])
def test_a_tensor_is_split_to_a_sequence(
    split: int | tuple[int, ...] | None, axis: int, rng: np.random.Generator
) -> None:
    held = {} if split is None else {"split": np.asarray(split, np.int64)}
    nodes = [
        node("SplitToSequence", ["x", *held], ["s"], axis=axis),
        node("SequenceAt", ["s", "last"], ["y"]),
        node("SequenceLength", ["s"], ["count"]),
    ]
    model = graph_model(
        nodes, {"x": (3, 5)}, ["y", "count"], {**held, "last": np.asarray(-1)},
        types={"count": TensorProto.INT64},
    )  # fmt: skip
    assert_same(compiled(model), model, {"x": floats(rng, 3, 5)})


def test_a_computed_position_chooses_among_equal_shapes(rng: np.random.Generator) -> None:
    nodes = [
        node("SplitToSequence", ["x"], ["s"], axis=0, keepdims=0),
        node("SequenceAt", ["s", "n"], ["y"]),
    ]
    model = graph_model(
        nodes, {"x": (3, 5), "n": ()}, ["y"], types={"n": TensorProto.INT64}
    )  # fmt: skip
    network = compiled(model)
    for place in (0, 2, -1):
        assert_same(network, model, {"x": floats(rng, 3, 5), "n": np.int64(place)})


def test_a_loop_that_carries_a_sequence_is_unrolled(rng: np.random.Generator) -> None:
    body = parser.parse_graph(
        """step (int64 i, bool c, seq(float[?]) s) => (bool c2, seq(float[?]) s2) {
        c2 = Identity(c)
        end = Add(i, one)
        part = Slice(x, start, end)
        s2 = SequenceInsert(s, part)
    }"""
    )
    nodes = [
        node("SequenceEmpty", [], ["none"]),
        node("Loop", ["trips", "", "none"], ["all"], body=body),
        node("ConcatFromSequence", ["all"], ["y"], axis=0),
    ]
    model = graph_model(
        nodes, {"x": (7,)}, ["y"], {"trips": np.asarray(6), "start": ints(0), "one": ints(1)}
    )
    assert_same(compiled(model), model, {"x": floats(rng, 7)})


def test_a_map_applies_its_body_to_each_tensor(rng: np.random.Generator) -> None:
    body = parser.parse_graph(
        """each (float[?] a, float[?] b) => (float[?] p, float[?] m) {
        p = Add(a, b)
        m = Sub(a, b)
    }"""
    )
    nodes = [
        node("SequenceConstruct", ["x", "z"], ["s"]),
        node("SequenceMap", ["s", "x"], ["ps", "ms"], body=body),
        node("ConcatFromSequence", ["ps"], ["p"], axis=0),
        node("SequenceAt", ["ms", "one"], ["m"]),
    ]
    model = graph_model(nodes, {"x": (3,), "z": (3,)}, ["p", "m"], {"one": np.asarray(1)})
    network = partition(optimize(load(model)))
    assert_same(network, model, {"x": floats(rng, 3), "z": floats(rng, 3)})


def test_optional_values(rng: np.random.Generator) -> None:
    none = helper.make_tensor_type_proto(TensorProto.FLOAT, (2,))
    nodes = [
        node("Optional", ["x"], ["some"]),
        node("Optional", [], ["nothing"], type=none),
        node("OptionalHasElement", ["some"], ["has"]),
        node("OptionalHasElement", ["nothing"], ["has_not"]),
        node("OptionalGetElement", ["some"], ["e"]),
        node("Exp", ["e"], ["y"]),
    ]
    kinds = dict.fromkeys(("has", "has_not"), TensorProto.BOOL)
    model = graph_model(nodes, {"x": (2,)}, ["y", "has", "has_not"], opset=18, types=kinds)
    network = compiled(model)
    x = floats(rng, 2)
    y, has, has_not = run_network(network, {"x": x})
    np.testing.assert_allclose(y, np.exp(x), rtol=1e-5)
    assert (bool(has), bool(has_not)) == (True, False)


def test_an_open_axis_is_split_to_rows(rng: np.random.Generator) -> None:
    nodes = [
        node("SplitToSequence", ["x"], ["s"], axis=1, keepdims=0),
        node("SequenceLength", ["s"], ["n"]),
        node("SequenceAt", ["s", "minus"], ["last"]),
        node("ConcatFromSequence", ["s"], ["joined"], axis=0),
        node("ConcatFromSequence", ["s"], ["stacked"], axis=-1, new_axis=1),
        node("SplitToSequence", ["z", "two"], ["pairs"], axis=-1),
        node("ConcatFromSequence", ["pairs"], ["again"], axis=1),
    ]
    outputs = ["n", "last", "joined", "stacked", "again"]
    model = graph_model(
        nodes, {"x": (2, "t"), "z": (2, "twice")}, outputs,
        {"minus": np.asarray(-1), "two": np.asarray(2)},
        types={"n": TensorProto.INT64},
    )  # fmt: skip
    graph = import_sized(model, t=(1, 9), twice=SizeRange(2, 8, 2))
    assert_same_at(model, graph, rng, [{"t": t, "twice": z} for t, z in ((1, 2), (7, 8))])


def test_parts_of_stated_lengths_give_the_axis_its_size(rng: np.random.Generator) -> None:
    nodes = [
        node("SplitToSequence", ["x", "split"], ["s"], axis=0),
        node("SequenceAt", ["s", "one"], ["y"]),
    ]
    held = {"one": np.asarray(1), "split": np.asarray([2, 3], np.int64)}
    model = graph_model(nodes, {"x": ("t", 4)}, ["y"], held)
    assert_same(compiled(model), model, {"x": floats(rng, 5, 4)})


@pytest.mark.parametrize(
    ("split", "used", "said"),
    [
        ([2, 3], "SequenceLength", "they must be equal"),
        (2, "SequenceLength", "parts of 2 of t elements"),
        (1, "SequenceErase", "a sequence of t tensors"),
    ],
)
def test_open_axes_that_do_not_make_rows(split: int | list[int], used: str, said: str) -> None:
    nodes = [
        node("SplitToSequence", ["x", "split"], ["s"], axis=0),
        node(used, ["s"], ["y"]),
    ]
    model = graph_model(nodes, {"x": ("t", 4)}, ["y"], {"split": np.asarray(split, np.int64)})
    with pytest.raises(UnsupportedModel, match=said):
        load(model, dims={"t": (1, 9)})


def test_what_needs_a_known_length_is_refused() -> None:
    nodes = [
        node("SequenceConstruct", ["x"], ["s"]),
        node("SequenceAt", ["s", "three"], ["y"]),
    ]
    model = graph_model(nodes, {"x": (3,)}, ["y"], {"three": np.asarray(3)})
    with pytest.raises(UnsupportedModel, match="it must be from -1 to 0"):
        load(model)


def test_equal_maps_of_two_sequences_count_what_each_has() -> None:
    body = parser.parse_graph("each (float[4] t) => (int64[?, ?] p) { p = NonZero(t) }")
    nodes = [
        made
        for x, y in (("x", "y"), ("z", "w"))
        for made in (
            node("SequenceConstruct", [x], [f"{x}s"]),
            node("SequenceMap", [f"{x}s"], [f"{y}s"], body=body),
            node("SequenceAt", [f"{y}s", "zero"], [y]),
        )
    ]
    model = graph_model(
        nodes, {"x": (4,), "z": (4,)}, ["y", "w"], {"zero": np.asarray(0)},
        types=dict.fromkeys("yw", TensorProto.INT64),
    )  # fmt: skip
    model.graph.node[4].CopyFrom(model.graph.node[1])  # shape inference names their sizes apart
    model.graph.node[4].input[0], model.graph.node[4].output[0] = "zs", "ws"
    feeds = {
        "x": np.asarray([0, 1, 0, 2], np.float32), "z": np.asarray([3, 1, 0, 2], np.float32),
    }  # fmt: skip
    assert_same(compiled(model), model, feeds)
