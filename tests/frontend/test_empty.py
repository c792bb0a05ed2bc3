"""Values without elements: they are constants, and join, broadcast and reduce as in onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph import Network, optimize, partition
from tests.frontend.models import graph_model, node, operator_model
from tests.frontend.sized import assert_same_at, import_sized
from tests.graph.executor import Array, assert_same_as_onnxruntime, compiled, run_network
from tests.graph.nets import Net

DECODER = {"past_keys": (1, 2, "past", 4), "past_values": (1, 2, "past", 4)}
TOKENS = dict.fromkeys("qkv", (1, 2, 3, 4))


def rotated(net: Net, x: str, width: int) -> str:
    """The first *width* columns turned by angles, the others as they are."""
    halves = [net.op("Slice", x, *(net.constant([v], np.int64) for v in cut))
              for cut in ((0, width, -1), (width, 1 << 40, -1))]  # fmt: skip
    turned = net.op("Mul", halves[0], net.normal(5, width))
    return net.op("Concat", turned, halves[1], axis=-1)


@pytest.mark.parametrize("width", [4, 8])
def test_a_rotary_embedding_may_turn_whole_rows(width: int, rng: np.random.Generator) -> None:
    net = Net(x=(2, 3, 5, 8))
    assert_same_as_onnxruntime(net.model(rotated(net, net.op("Tanh", "x"), width)), rng)


def test_a_split_may_leave_nothing_to_a_part(rng: np.random.Generator) -> None:
    sizes = np.asarray([2, 0, 3, 0], np.int64)
    assert_same_as_onnxruntime(operator_model("Split", [(5, 3)], [sizes], outputs=4), rng)


@pytest.mark.parametrize("shapes", [((3, 2, 0), (3, 0, 5)), ((0,), (0, 4)), ((2, 0), (0,))])
def test_a_product_of_nothing_is_zero(shapes: tuple[tuple[int, ...], ...]) -> None:
    """In numpy and onnx's reference; onnxruntime leaves some of these results as the memory was."""
    network = compiled(operator_model("MatMul", shapes))
    a, b = (np.ones(shape, np.float32) for shape in shapes)
    [found] = run_network(network, dict(zip((i.name for i in network.inputs), (a, b), strict=True)))
    np.testing.assert_array_equal(found, a @ b, strict=True)


def decoder() -> ModelProto:
    """Attention over a cache and new keys, which become the next cache."""
    nodes = [
        node("Concat", ["past_keys", "k"], ["keys"], axis=2),
        node("Concat", ["past_values", "v"], ["values"], axis=2),
        node("Transpose", ["keys"], ["turned"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q", "turned"], ["scores"]),
        node("Softmax", ["scores"], ["weights"]),
        node("MatMul", ["weights", "values"], ["mixed"]),
        node("Shape", ["past_keys"], ["shape"]),
        node("Gather", ["shape", "two"], ["start"]),
        node("Cast", ["start"], ["place"], to=1),
        node("Add", ["mixed", "place"], ["y"]),
    ]
    names = ["y", "keys", "values", "start"]
    two: dict[str, Array] = {"two": np.asarray(2)}
    return graph_model(nodes, {**DECODER, **TOKENS}, names, two, types={"start": 7})


@pytest.mark.parametrize("past", [0, 2])
def test_a_decoder_may_begin_without_a_past(past: int, rng: np.random.Generator) -> None:
    network = partition(optimize(load(decoder(), dims={"past": past})))
    assert_same_as_onnxruntime(decoder(), rng, network)
    assert [t.shape for t in network.inputs[:2]] == [(1, 2, past, 4)] * 2


def test_a_decoder_may_begin_without_a_past_in_a_batch_of_any_size(
    rng: np.random.Generator,
) -> None:
    """It reads the length of the past from a shape that is otherwise open."""
    model = decoder()
    for info in model.graph.input:
        info.type.tensor_type.shape.dim[0].dim_param = "batch"
    graph = import_sized(model, past=0, batch=(1, 4))
    assert_same_at(model, graph, rng, [{"batch": 1}, {"batch": 3}])


def test_an_attention_operator_may_begin_without_a_past() -> None:
    shapes = {"q": (1, 2, 3, 4), "k": (1, 2, 3, 4), "v": (1, 2, 3, 4)}
    past = {"pk": (1, 2, 0, 4), "pv": (1, 2, 0, 4)}
    one = node("Attention", [*shapes, "", *past], ["y", "pres_k", "pres_v"], is_causal=1)
    model = graph_model([one], {**shapes, **past}, ["y", "pres_k"], opset=23)
    plain = node("Attention", [*shapes], ["y"], is_causal=1)
    same = compiled(graph_model([plain], shapes, ["y"], opset=23))
    rng = np.random.default_rng(3)
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    empty = {name: np.zeros(shape, np.float32) for name, shape in past.items()}
    y, keys = run_network(compiled(model), {**feeds, **empty})
    np.testing.assert_array_equal(y, run_network(same, feeds)[0])
    np.testing.assert_array_equal(keys, feeds["k"])


OPERATORS: dict[str, tuple[str, Sequence[tuple[int, ...]], Mapping[str, Any]]] = {
    "broadcast": ("Add", [(3, 0), (3, 1)], {}),
    "broadcast_one": ("Mul", [(1, 0), (3, 1)], {}),
    "product": ("MatMul", [(0, 4), (4, 5)], {}),
    "batches": ("MatMul", [(0, 3, 4), (4, 5)], {}),
    "sum": ("ReduceSum", [(3, 0)], {"keepdims": 0}),
    "mean": ("ReduceMean", [(0, 0)], {"axes": [1]}),
    "softmax": ("Softmax", [(3, 0)], {}),
    "transpose": ("Transpose", [(3, 0, 2)], {}),
    "flatten": ("Flatten", [(3, 0, 2)], {}),
    "where_nothing_is_chosen": ("Gather", [(3, 0), (2,)], {}),
}


@pytest.mark.parametrize("case", OPERATORS)
def test_operators_on_nothing(case: str, rng: np.random.Generator) -> None:
    op_type, shapes, attributes = OPERATORS[case]
    inputs = {f"x{n}": [f"d{n}{d}" for d in range(len(s))] for n, s in enumerate(shapes)}
    pins = {f"x{n}": shape for n, shape in enumerate(shapes)}
    types = {"x1": 7} if op_type == "Gather" else {}
    one = node(op_type, list(inputs), ["y"], **attributes)
    model = graph_model([one], inputs, ["y"], types=types)
    network: Network = partition(optimize(load(model, shapes=pins)))
    assert_same_as_onnxruntime(model, rng, network)


@pytest.mark.parametrize("op_type", ["ArgMax", "GlobalMaxPool", "LogSoftmax"])
def test_what_takes_the_largest_of_nothing_is_refused(op_type: str) -> None:
    attributes: dict[str, Any] = {} if "Pool" in op_type else {"axis": 2}
    model = operator_model(op_type, [(1, 2, 0)], **attributes)
    model.graph.output[0].type.tensor_type.elem_type = 7 if op_type == "ArgMax" else 1
    with pytest.raises(UnsupportedModel):
        load(model)


def test_rows_of_an_empty_table_are_refused() -> None:
    nodes = [node("Gather", ["table", "at"], ["y"])]
    table: dict[str, Array] = {"table": np.zeros((0, 4), np.float32)}
    model = graph_model(nodes, {"at": (3,)}, ["y"], table, types={"at": 7})
    with pytest.raises(UnsupportedModel, match="without elements"):
        load(model)


@pytest.mark.parametrize("initial", [False, True])
@pytest.mark.parametrize(("op_type", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_no_steps_leave_the_states_as_they_are(
    op_type: str, gates: int, initial: bool, rng: np.random.Generator
) -> None:
    states = ["h", "c"] if op_type == "LSTM" else ["h"]
    shapes: dict[str, tuple[int, ...]] = {"w": (1, gates * 4, 3), "r": (1, gates * 4, 4)}
    first = dict.fromkeys((f"{name}0" for name in states), (1, 2, 4)) if initial else {}
    outputs = ["y", *states]
    one = node(op_type, ["x", *shapes, "", "", *first], outputs, hidden_size=4)
    model = graph_model([one], {"x": ("seq", 2, 3), **shapes, **first}, outputs)
    feeds = {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in {"x": (0, 2, 3), **shapes, **first}.items()
    }
    y, *last = run_network(partition(optimize(load(model, dims={"seq": 0}))), feeds)
    assert y.shape == (0, 1, 2, 4)
    for name, found in zip(states, last, strict=True):
        want = feeds[f"{name}0"] if initial else np.zeros((1, 2, 4), np.float32)
        np.testing.assert_array_equal(found, want)


def test_a_sum_of_nothing_needs_the_sizes_of_its_result(rng: np.random.Generator) -> None:
    """It is computed when the model is read, by onnx's reference, which takes arrays."""
    one = node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    model = graph_model([one], {"x": (0, "n")}, ["y"], {"axes": np.asarray([0])})
    with pytest.raises(UnsupportedModel, match="choose one size, for example with --dim n="):
        load(model, dims={"n": (1, 9)})
    network = partition(optimize(load(model, dims={"n": 5})))
    assert_same_as_onnxruntime(model, rng, network)
    assert network.outputs[0].shape == (5,)
