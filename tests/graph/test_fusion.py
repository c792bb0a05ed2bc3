"""Groups of nodes: what joins, what does not, and in which order groups come."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx
import pytest

from ansorpy.frontend.onnx import load
from ansorpy.graph.fusion import MOST_CHAINED, fuse
from ansorpy.graph.optimize import optimize
from ansorpy.graph.placement import place_values
from tests.graph.nets import Net


def groups(net: Net, *outputs: str) -> list[str]:
    graph = optimize(load(net.model(*outputs)))
    found = fuse(graph, place_values(graph).views)
    return [" ".join(node.op.label for node in group.nodes) for group in found]


def test_an_elementwise_diamond_is_one_group() -> None:
    net = Net(x=(3, 5))
    a = net.op("Exp", "x")
    y = net.op("Mul", net.op("Tanh", a), net.op("Sigmoid", a))
    assert groups(net, y) == ["exp tanh sigmoid mul"]


def test_an_epilogue_diamond_joins_its_convolution() -> None:
    net = Net(x=(1, 3, 5, 5))
    a = net.conv("x", 3, 4, 3, bias=False)
    y = net.op("GlobalMaxPool", net.op("Mul", a, net.op("Sigmoid", a)))
    assert groups(net, y) == ["transpose conv sigmoid mul", "reduce_max"]


def test_a_branch_through_another_convolution_stops_fusion() -> None:
    net = Net(x=(1, 3, 5, 5))
    a = net.relu(net.conv("x", 3, 4, 3, bias=False))
    y = net.op("GlobalMaxPool", net.op("Add", a, net.conv(a, 4, 4, 3, bias=False)))
    assert groups(net, y) == ["transpose conv relu", "conv add", "reduce_max"]


def test_two_convolutions_never_share_a_group() -> None:
    net = Net(x=(3, 4))
    a, b = net.op("MatMul", "x", net.normal(4, 5)), net.op("MatMul", "x", net.normal(4, 5))
    assert groups(net, net.op("Add", a, b)) == ["matmul", "matmul add"]


def test_an_epilogue_that_grows_the_result_is_not_taken() -> None:
    net = Net(x=(3, 4), z=(2, 3, 5))
    y = net.op("Add", net.op("MatMul", "x", net.normal(4, 5)), "z")
    assert groups(net, y) == ["matmul", "add"]


def test_arithmetic_joins_the_reduction_behind_it() -> None:
    net = Net(x=(3, 4))
    assert groups(net, net.op("ReduceMean", net.op("Mul", "x", "x"), axes=[1])) == [
        "mul reduce_sum mul"
    ]


def test_softmax_stays_alone() -> None:
    net = Net(x=(3, 4))
    assert groups(net, net.relu(net.op("Softmax", net.relu("x")))) == ["relu", "softmax", "relu"]


def test_groups_come_in_an_order_that_runs() -> None:
    net = Net(x=(1, 4, 6, 6))
    values = [net.conv("x", 4, 4, 3)]
    for _ in range(5):
        values.append(net.op("Add", net.conv(values[-1], 4, 4, 3), values[0]))
    graph = optimize(load(net.model(net.op("GlobalMaxPool", values[-1]))))
    ready = {*graph.inputs, *graph.constants}
    for group in fuse(graph, place_values(graph).views):
        inside = {node.output for node in group.nodes}
        assert {i for n in group.nodes for i in n.inputs} <= ready | inside
        ready.add(group.output)


def test_a_group_is_no_deeper_than_expressions_may_be() -> None:
    net = Net(x=(3, 5))
    y = "x"
    for _ in range(2 * MOST_CHAINED + 5):
        y = net.op("Tanh", y)
    assert [len(group.split()) for group in groups(net, y)] == [MOST_CHAINED, MOST_CHAINED, 5]


def test_arithmetic_behind_a_product_is_as_deep_as_a_group_may_be() -> None:
    net = Net(x=(3, 4))
    y = net.op("MatMul", "x", net.normal(4, 5))
    for _ in range(2 * MOST_CHAINED):
        y = net.op("Tanh", y)
    assert [len(group.split()) for group in groups(net, y)] == [MOST_CHAINED, MOST_CHAINED, 1]


def test_branches_count_for_the_depth_of_a_group() -> None:
    net = Net(x=(3, 5))
    y = "x"
    for _ in range(MOST_CHAINED - 1):
        y = net.op("Mul", net.op("Tanh", y), net.op("Exp", y))
    sizes = [len(group.split()) for group in groups(net, y)]
    assert sizes == [3 * MOST_CHAINED // 2, 3 * (MOST_CHAINED // 2 - 1)]


def test_a_group_may_be_wider_than_deep() -> None:
    names = [f"x{n}" for n in range(2 * MOST_CHAINED)]
    net = Net()
    net.inputs.update(dict.fromkeys(names, (2, 3)))
    y = net.op("Concat", *(net.op("Exp", name) for name in names), axis=1)
    assert groups(net, y) == [" ".join(["exp"] * len(names) + ["concat"])]


def test_the_walks_to_a_late_reader_of_all_states_are_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    visited: list[str] = []

    def counted(flow: nx.DiGraph[str], name: str) -> Iterator[str]:
        visited.append(name)
        return iter(flow.adj[name])

    net = Net(x=(1, 3), y=(1, 3))
    states = ["x"]
    for _ in range(200):
        states.append(net.op("Tanh", net.op("Mul", states[-1], "y")))
    graph = optimize(load(net.model(net.op("Concat", *states, axis=1))))
    views = place_values(graph).views
    monkeypatch.setattr(nx.DiGraph, "successors", counted)
    found = fuse(graph, views)
    assert len(visited) < 2 * MOST_CHAINED * len(graph.nodes)
    assert {len(group.nodes) for group in found[:-1]} == {2}
