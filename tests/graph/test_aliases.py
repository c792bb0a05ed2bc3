"""Outputs that continue inputs: which may, where they lie, and what is copied."""

from __future__ import annotations

import pytest

from ansorpy.errors import UsageError
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from ansorpy.graph.aliases import capacities_in, with_aliases
from ansorpy.graph.ir import Graph
from ansorpy.graph.network import Network
from ansorpy.ir.alias import Alias
from ansorpy.ir.symbols import Dim
from ansorpy.size_ranges import SizeRange
from tests.graph.nets import Net

DIMS = {"past": (0, 30)}


def aliased(net: Net, *outputs: str, of: str = "past", output: int = 0) -> Graph:
    graph = load(net.model(*outputs), dims=DIMS)
    return with_aliases(graph, {outputs[output]: of})


def cut(graph: Graph) -> Network:
    return partition(optimize(graph))


def written(network: Network) -> list[str]:
    return [name for call in network.calls for name in call.outputs]


def test_rows_that_lie_in_turns_have_the_strides_of_a_capacity() -> None:
    net = Net(past=(1, 3, "past", 5), x=(1, 3, 2, 5))
    made = net.op("Concat", "past", net.op("Tanh", "x"), axis=2)
    graph = aliased(net, made, net.op("ReduceSum", made, keepdims=0))
    capacity = Dim("capacity(past + 2)", 2, 32)
    network = cut(graph)
    assert network.aliases == (Alias(0, 0, 2, capacity),)
    assert capacities_in(graph) == {capacity: SizeRange(2, 32, calls=((32, 1),))}
    tanh, total = network.calls
    [strides] = tanh.dag.strides.values()
    assert str(strides[1]) == "5*max(capacity(past + 2), past + 2)"
    assert total.inputs == (made,) and capacity in total.dag.dims
    assert capacity not in total.dag.shape_dims
    [(part, view)] = network.subviews.items()
    assert tanh.outputs == (part,) and view.of == made and str(view.offset_bytes) == "20*past"


def test_rows_one_behind_the_other_have_no_capacity() -> None:
    net = Net(past=(1, "past", 3, 5), x=(1, 1, 3, 5))
    made = net.op("Concat", "past", net.op("Tanh", "x"), axis=1)
    network = cut(aliased(net, made))
    assert network.aliases == (Alias(0, 0, 1),)
    assert [call.dag.strides for call in network.calls] == [{}]
    assert written(network) != [made]


def test_the_input_is_read_in_the_memory_of_the_output() -> None:
    net = Net(past=(2, "past", 5), x=(2, 1, 5))
    made = net.op("Concat", "past", net.op("Tanh", "x"), axis=1)
    network = cut(aliased(net, made, net.op("ReduceSum", "past", keepdims=0)))
    assert network.subviews["past"].of == made
    assert "past" in network.calls[1].inputs and network.calls[1].dag.strides


@pytest.mark.parametrize("origin", ["input", "constant", "output", "two caches", "product"])
def test_rows_that_cannot_be_written_in_place_are_copied(origin: str) -> None:
    net = Net(past=(1, 3, "past", 5), other=(1, 3, "past", 5), x=(1, 3, 1, 5))
    row = {
        "input": lambda: "x",
        "constant": lambda: net.normal(1, 3, 1, 5),
        "product": lambda: net.reshape(
            net.op("MatMul", net.reshape("x", 1, 15), net.normal(15, 15)), 1, 3, 1, 5
        ),
    }.get(origin, lambda: net.op("Tanh", "x"))()
    outputs = [net.op("Concat", name, row, axis=2) for name in ("past", "other")]
    if origin not in ("two caches", "product"):
        outputs[1] = row if origin == "output" else net.op("Neg", "other")
    if origin == "product":
        outputs = outputs[:1]
        net.inputs.pop("other")
        net.nodes.pop()
    graph = load(net.model(*outputs), dims=DIMS)
    alias = {outputs[0]: "past"}
    if origin == "two caches":
        alias[outputs[1]] = "other"
    network = cut(with_aliases(graph, alias))
    parts = [name for name, view in network.subviews.items() if view.of in alias]
    assert set(parts) <= set(written(network)) and set(alias).isdisjoint(written(network))
    assert len([call for call in network.calls if call.name.startswith("slice")]) == len(alias)


def refusal(net: Net, *outputs: str, of: str = "past", output: int = 0) -> str:
    with pytest.raises(UsageError) as caught:
        aliased(net, *outputs, of=of, output=output)
    assert "first operand of the Concat" in str(caught.value.hint)
    return caught.value.message.partition(": ")[2]


def test_outputs_that_do_not_continue_an_input_are_refused() -> None:
    def net() -> Net:
        return Net(past=(2, "past", 4), x=(2, 1, 4), other=(2, 1, 4))

    n = net()
    message = refusal(n, n.op("Neg", "past"))
    assert message == "it is the result of neg, which does not append to the input"
    n = net()
    assert refusal(n, n.op("Concat", "x", "past", axis=1)) == "other parts come before it"
    n = net()
    joined = n.op("Concat", "past", "x", axis=1)
    assert refusal(n, joined, n.op("Neg", "other"), of="other") == "it is no part of that output"
    n = net()
    twice = n.op("Concat", "past", "past", axis=1)
    assert refusal(n, twice) == "it is several parts of that output"
    n = net()
    assert refusal(n, "past") == "no operator computes it"


def test_graphs_without_aliases_stay_as_they_are() -> None:
    net = Net(x=(2, 3))
    graph = load(net.model(net.op("Neg", "x")))
    assert with_aliases(graph, {}) is graph
    assert cut(graph).aliases == ()
