"""Batches in pieces: what may be cut, where pieces are put together, that all ways are right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import ModelProto

from ansorpy.frontend.onnx import load
from ansorpy.graph import Graph, partition
from ansorpy.graph.choices import Choices
from ansorpy.graph.cuts import cuts_of
from ansorpy.graph.ir import GraphBuilder, Output
from ansorpy.graph.ops import (
    ArgReduce,
    Attention,
    Cast,
    Concat,
    Cumulative,
    Elementwise,
    Expand,
    Fn,
    Gather,
    GatherElements,
    GatherND,
    LayerNorm,
    Lrn,
    MatMul,
    Op,
    Pad,
    PadMode,
    Reduce,
    ReduceKind,
    Repeat,
    Reshape,
    Shape,
    Shuffle,
    Slice,
    Softmax,
    TensorType,
    Transpose,
)
from ansorpy.graph.optimize import simplify
from ansorpy.graph.passes.split_batch import WHOLE, Front, split_batch
from ansorpy.ir.dtypes import DType
from tests.budget import some
from tests.graph.executor import assert_same_as_onnxruntime, random_feeds, run_network
from tests.graph.nets import Net
from tests.graph.test_random_networks import RandomNetwork

BATCH = 4
X = (BATCH, 6, 5)
ADD, LOOK_UP = Elementwise(Fn.ADD), Gather(0)


Case = tuple[Op, Sequence[Shape], Sequence[np.ndarray]]
"""An operator, the shapes of its inputs in the network, and the constants behind them."""


def one_op(case: Case) -> Graph:
    """A network of one operator; integers where it reads places."""
    op, shapes, constants = case
    reads_places = isinstance(op, GatherElements | GatherND)
    builder = GraphBuilder()
    names = [
        builder.add_input(
            f"x{n}", TensorType(shape, DType.INT64 if reads_places and n else DType.FLOAT32)
        )
        for n, shape in enumerate(shapes)
    ]
    if op == LOOK_UP:
        constants, names = [], [builder.add_constant("table", constants[0]), *names]
        names[1] = builder.emit(Cast(DType.INT64), names[1:], "places")
    names += [builder.add_constant("c", array) for array in constants]
    return builder.finish([Output("y", builder.emit(op, names, "y.1"))])


def in_pieces(graph: Graph) -> Graph | None:
    """*graph* with as much in pieces as can be; None where nothing can."""
    choices = Choices(cache_bytes=1)
    split_batch(graph, choices)
    if not choices.asked:
        return None
    [(question, ways)] = choices.asked.items()
    _, last, *_ = ways
    return split_batch(graph, Choices({question: last}, cache_bytes=1))


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(2).standard_normal(shape).astype(np.float32)


def whole(shape: Shape, **changes: tuple[int, ...]) -> Slice:
    """The slice that takes all, but for *changes*."""
    given = {"starts": (0,) * len(shape), "sizes": shape, "steps": (1,) * len(shape)} | changes
    return Slice(**given)


CUT: list[Case] = [
    (ADD, [X, X], []),
    (ADD, [X], [floats(5)]),
    (ADD, [X], [floats(1, 6, 1)]),
    (ADD, [X], [np.tile(floats(1, 6, 1), (BATCH, 1, 1))]),
    (MatMul(), [X], [floats(5, 3)]),
    (MatMul((0, 2, 1)), [X], [floats(1, 5, 3)]),
    (MatMul(), [(BATCH, 5)], [floats(5, 3)]),
    (MatMul(), [X, X[:1] + (5, 2)], []),
    (Attention(0.5, (0, 2, 1)), [X, (BATCH, 5, 3), (BATCH, 3, 2)], [floats(6, 3)]),
    (Concat(1), [X, (BATCH, 2, 5)], []),
    (Gather(1), [X], [np.array([3, 0])]),
    (LOOK_UP, [(BATCH, 2)], [floats(7, 3)]),
    (GatherElements(1), [X, (BATCH, 2, 5)], []),
    (GatherND(1), [X, (BATCH, 3, 1)], []),
    (Softmax((2,)), [X], []),
    (LayerNorm((1, 2), 1e-5), [X], []),
    (Reduce(ReduceKind.SUM, (1,), False), [X], []),
    (ArgReduce(ReduceKind.MAX, 2), [X], []),
    (Cumulative(ReduceKind.SUM, 1), [X], []),
    (Lrn(3, 1e-4, 0.75, 1.0, 2), [X], []),
    (Transpose((0, 2, 1)), [X], []),
    (Reshape((BATCH, 30)), [X], []),
    (Reshape((2 * BATCH, 3, 5)), [X], []),
    (Expand((BATCH, 6, 5)), [(BATCH, 1, 5)], []),
    (whole(X, starts=(0, 2, 0), sizes=(BATCH, 3, 5)), [X], []),
    (Pad((0, 1, 0), (0, 0, 2), PadMode.CONSTANT, 0.5), [X], []),
    (Repeat((1, 2, 1)), [X], []),
    (Shuffle(1, (2, 3), (1, 0)), [X], []),
]


@pytest.mark.parametrize("case", CUT, ids=lambda case: case[0].label)
def test_pieces_of_an_operator_are_its_rows(
    case: Case,
) -> None:
    graph, op = one_op(case), case[0]
    split = in_pieces(graph)
    assert split is not None
    assert sum(node.op.label == op.label for node in split.nodes) >= BATCH
    before, after = partition(graph), partition(split)
    feeds = random_feeds(before, np.random.default_rng(3))
    for a, b in zip(run_network(before, feeds), run_network(after, feeds), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


REFUSED: list[Case] = [
    (ADD, [X], [floats(BATCH, 6, 1)]),
    (MatMul(), [(BATCH, BATCH), (BATCH, BATCH)], []),
    (MatMul((1, 0, 2)), [X], [floats(5, 3)]),
    (Attention(0.5, (1, 0, 2)), [X, (BATCH, 5, 3), (BATCH, 3, 2)], []),
    (Concat(0), [X, X], []),
    (GatherElements(0), [X, X], []),
    (GatherND(0), [X, (BATCH, 1)], []),
    (Softmax((0,)), [X], []),
    (LayerNorm((0, 1), 1e-5), [X], []),
    (Reduce(ReduceKind.SUM, (0,), True), [X], []),
    (ArgReduce(ReduceKind.MAX, 0), [X], []),
    (Cumulative(ReduceKind.SUM, 0), [X], []),
    (Transpose((1, 0, 2)), [X], []),
    (Reshape((6, BATCH, 5)), [X], []),
    (Expand((2, BATCH, 6, 5)), [X], []),
    (whole(X, starts=(1, 0, 0), sizes=(BATCH - 1, 6, 5)), [X], []),
    (whole(X, starts=(3, 0, 0), steps=(-1, 1, 1)), [X], []),
    (Pad((BATCH, 0, 0), (0, 0, 0), PadMode.CONSTANT, 0.0), [X], []),
    (Repeat((2, 1, 1)), [X], []),
    (Shuffle(0, (2, 2), (1, 0)), [X], []),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0].label)
def test_what_mixes_rows_is_not_cut(
    case: Case,
) -> None:
    assert in_pieces(one_op(case)) is None


def assert_all_ways_right(model: ModelProto, seed: int) -> list[str]:
    """Every way to cut *model*, where nothing is held by a cache, equals onnxruntime."""
    found = cuts_of(load(model), cache_bytes=1)
    [region] = found.regions
    for number in range(len(region.options)):
        assert_same_as_onnxruntime(model, np.random.default_rng(seed), found.taking([number]))
    return [option.name for option in region.options]


@pytest.mark.parametrize("seed", some(range(200, 216)))
@pytest.mark.parametrize("block", [1, 16])
def test_random_networks_in_pieces_equal_onnxruntime(seed: int, block: int) -> None:
    model = RandomNetwork(seed, 10, block, batch=3).model()
    assert assert_all_ways_right(model, seed)[0] == WHOLE


def narrowing(batch: int) -> ModelProto:
    """Images that become smaller twice, and a classifier."""
    net = Net(x=(batch, 16, 16, 16))
    a = net.relu(net.conv("x", 16, 16, 3))
    b = net.relu(net.conv(a, 16, 16, 3, strides=[2, 2]))
    c = net.relu(net.conv(net.op("Add", b, net.conv(b, 16, 16)), 16, 16, 3, strides=[4, 4]))
    return net.model(net.gemm(net.op("Flatten", c), 64, 5))


def test_pieces_go_on_to_where_values_are_small() -> None:
    names = assert_all_ways_right(narrowing(6), 4)
    assert names == [WHOLE, "in 6 up to 2x2x16", "in 6 up to 8x8x16"]


def test_a_value_may_have_the_name_of_a_piece() -> None:
    model = narrowing(6)
    first, *_, last = model.graph.node
    last.output[0] = model.graph.output[0].name = f"{first.output[0]}.2"
    assert len(assert_all_ways_right(model, 4)) == 3


def test_pieces_share_kernels_and_constants_and_copy_nothing() -> None:
    found = cuts_of(load(narrowing(6)), cache_bytes=1)
    whole_calls, split = len(found.network.calls), found.taking([1])
    assert len(split.calls) == 6 * (whole_calls - 1) + 1
    assert len(split.workloads()) == whole_calls
    assert {id(a) for call in split.calls for a in call.constants.values()} == {
        id(a) for call in split.calls[-whole_calls:] for a in call.constants.values()
    }
    assert split.arena.bytes < found.network.arena.bytes
    a_piece = max(w.touched_bytes for w in split.workloads()[:-1])
    assert a_piece < min(w.touched_bytes for w in found.network.workloads())


@pytest.mark.parametrize(("cache", "pieces"), [(1 << 15, 3), (1 << 14, 6), (1, 6)])
def test_pieces_are_as_large_as_the_caches_hold(cache: int, pieces: int) -> None:
    [region] = cuts_of(load(narrowing(6)), cache).regions
    assert region.options[1].name.startswith(f"in {pieces} ")


@pytest.mark.parametrize(("batch", "cache"), [(6, 0), (6, 1 << 20), (1, 1), (7, 56 << 10)])
def test_what_is_small_or_one_image_is_left_whole(batch: int, cache: int) -> None:
    assert not cuts_of(load(narrowing(batch)), cache).regions


def test_inputs_of_different_first_axes_have_no_batch() -> None:
    net = Net(x=(4, 6), y=(8, 6))
    model = net.model(net.relu("x"), net.relu("y"))
    assert not cuts_of(load(model), 1).regions


def test_where_pieces_may_be_joined_is_found_in_one_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    handed_on = Front.handed_on

    def counted(front: Front, end: int) -> tuple[str, ...]:
        asked.append(end)
        return handed_on(front, end)

    net = Net(x=(4, 64))
    large = net.op("Exp", "x")
    a, b = (net.op(op, large, axes=[1]) for op in ("ReduceMax", "ReduceMin"))
    for _ in range(20):
        a, b = net.op("Tanh", a), net.op("Tanh", b)
    graph = simplify(load(net.model(net.op("Softmax", net.op("Add", a, b), axis=0))))
    monkeypatch.setattr(Front, "handed_on", counted)
    assert in_pieces(graph) is not None
    assert set(asked) == {len(graph.nodes) - 1}
