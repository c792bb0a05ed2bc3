"""Ways to cut a network: what they change, which are decided together, and their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from ansorpy.frontend.onnx import load
from ansorpy.graph import Graph, Network, cuts
from ansorpy.graph.choices import Choices
from ansorpy.graph.cuts import Cuts, cuts_of
from ansorpy.graph.ir import GraphBuilder
from ansorpy.graph.ops import Elementwise, Fn
from tests.frontend.models import graph_model
from tests.frontend.test_branches import Branch, branching
from tests.frontend.test_loops import assert_same
from tests.graph.attentions import attend_batch, transformer
from tests.graph.executor import assert_same_as_onnxruntime
from tests.graph.nets import Net


def calls(network: Network) -> Counter[str]:
    return Counter({w.key: w.weight for w in network.workloads()})


def assert_calls_add_up(found: Cuts) -> None:
    """Any choice gives the calls that all ways share and those of the ways taken."""
    first = Counter[str]()
    for region in found.regions:
        first += Counter(region.options[0].calls)
    common = calls(found.network) - first
    for taken in product(*(range(len(region.options)) for region in found.regions)):
        expected = common.copy()
        for region, at in zip(found.regions, taken, strict=True):
            expected += Counter(region.options[at].calls)
        assert calls(found.taking(taken)) == expected


def test_equal_attentions_are_decided_together() -> None:
    model = transformer(2, 2)
    found = cuts_of(load(model))
    [region] = found.regions
    assert region.name == "attention of 1x2x12x4 1x2x4x12 1x2x12x4"
    assert [option.name for option in region.options] == ["one kernel", "three kernels"]
    one, three = (list(option.calls.values()) for option in region.options)
    assert one == [2] and three == [2, 2, 2]
    assert {w.key for w in found.others.values()} == set(region.options[1].calls)
    assert_calls_add_up(found)


def test_every_way_computes_the_same() -> None:
    model = transformer(2, 1)
    found = cuts_of(load(model))
    assert len(found.regions) == 2
    assert_calls_add_up(found)
    for taken in product(range(2), range(2)):
        network = found.taking(taken)
        assert_same_as_onnxruntime(model, np.random.default_rng(5), network)
        joined = sum("attention" in call.name for call in network.calls)
        assert joined == 2 - sum(taken)


ROWS = (8, 32, 6)


def widened(net: Net, x: str, width: int) -> str:
    """*x*, of shape ROWS, as a value of *width* columns and back."""
    wide = net.relu(net.op("MatMul", x, net.normal(ROWS[-1], width)))
    return net.op("MatMul", wide, net.normal(width, ROWS[-1]))


def assert_all_cuts_right(model: ModelProto, cache_bytes: int) -> list[str]:
    """The only region's ways; each of them equals onnxruntime, and their calls add up."""
    found = cuts_of(load(model), cache_bytes)
    assert_calls_add_up(found)
    [region] = found.regions
    for number in range(len(region.options)):
        assert_same_as_onnxruntime(model, np.random.default_rng(7), found.taking([number]))
    return [option.name for option in region.options]


def test_pieces_depend_on_the_size_of_scores() -> None:
    net = Net(x=ROWS)
    model = net.model(widened(net, attend_batch(net, "x", ROWS, 3), 20))
    assert assert_all_cuts_right(model, 1 << 13) == [
        "one kernel, whole",
        "one kernel, in 4 up to 32x6",
        "three kernels, whole",
        "three kernels, in 8 up to 32x6",
        "three kernels, in 8 up to 32x3x2",
    ]


def test_only_large_scores_are_cut_into_pieces() -> None:
    net = Net(x=ROWS)
    model = net.model(attend_batch(net, "x", ROWS, 3))
    assert assert_all_cuts_right(model, 1 << 15) == [
        "one kernel",
        "three kernels, whole",
        "three kernels, in 4 up to 32x3x2",
    ]
    [region] = cuts_of(load(model), 1 << 15).regions
    assert region.name.endswith("8x3x32x2, batch of 8")


def test_pieces_up_to_equal_shapes_may_end_in_different_places() -> None:
    net = Net(x=ROWS)
    x = widened(net, "x", 100)
    q, k, v = (net.op("MatMul", x, net.normal(6, 6)) for _ in range(3))
    scores = net.op("MatMul", q, net.op("Transpose", k, perm=[0, 2, 1]))
    model = net.model(net.op("MatMul", net.op("Softmax", scores, axis=-1), v))
    assert assert_all_cuts_right(model, 1 << 14) == [
        "one kernel, whole",
        "one kernel, in 8 up to 32x6",
        "three kernels, whole",
        "three kernels, in 8 up to 32x6",
    ]


def test_pieces_and_small_scores_behind_them_are_decided_apart() -> None:
    net = Net(x=ROWS)
    model = net.model(attend_batch(net, widened(net, "x", 1600), ROWS, 3))
    found = cuts_of(load(model), 1 << 17)
    assert {region.name[:5]: len(region.options) for region in found.regions} == {
        "atten": 2,
        "batch": 2,
    }
    assert_calls_add_up(found)


def test_branches_with_other_pieces_are_decided_apart(rng: np.random.Generator) -> None:
    def branch(name: str, width: int) -> Branch:
        wide, narrow = f"{name}_wide", f"{name}_narrow"
        nodes = [
            helper.make_node("MatMul", ["x", wide], [f"{name}1"]),
            helper.make_node("Relu", [f"{name}1"], [f"{name}2"]),
            helper.make_node("MatMul", [f"{name}2", narrow], [f"{name}3"]),
        ]
        shapes = {wide: (32, width), narrow: (width, 4)}
        held = {key: rng.uniform(-0.1, 0.1, shape) for key, shape in shapes.items()}
        return nodes, {key: array.astype(np.float32) for key, array in held.items()}

    chosen = branching("c", "y", branch("then", 64), branch("other", 256))
    shapes: dict[str, tuple[int, ...]] = {"x": (8, 16, 32), "c": ()}
    model = graph_model([chosen], shapes, ["y"], types={"c": TensorProto.BOOL})
    found = cuts_of(load(model), 1 << 13)
    assert {region.name: region.options[1].name for region in found.regions} == {
        "batch of 8": "in 4 up to 16x4",
        "batch of 8 (2)": "in 8 up to 16x4",
    }
    x = rng.standard_normal(shapes["x"]).astype(np.float32)
    for taken, holds in product(product(range(2), range(2)), (False, True)):
        assert_same(found.taking(taken), model, {"x": x, "c": np.asarray(holds)})


def test_one_row_of_queries_is_not_asked_about() -> None:
    net = Net(q=(2, 1, 4), k=(2, 4, 9), v=(2, 9, 4))
    scores = net.op("MatMul", "q", "k")
    found = cuts_of(load(net.model(net.op("MatMul", net.op("Softmax", scores, axis=-1), "v"))))
    assert not found.regions and not found.others
    assert "attention" in found.network.calls[0].name


FUNCTIONS = {"as it is": None, "tanh": Fn.TANH, "erf": Fn.ERF}


def asking(questions: Mapping[str, tuple[int, ...]]) -> object:
    """A pass that asks whether to replace the functions of the nodes with these numbers."""

    def arrange(graph: Graph, choices: Choices) -> Graph:
        ways = {q: choices.way(q, FUNCTIONS) for q in questions}
        builder = GraphBuilder.like(graph)
        for at, node in enumerate(graph.nodes):
            changed = [fn for q, nodes in questions.items() if at in nodes and (fn := ways[q])]
            op = Elementwise(changed[0]) if changed else node.op
            builder.add_node(replace(node, op=op))
        return builder.finish(graph.outputs)

    return arrange


def separate(count: int) -> Graph:
    """Functions of inputs of different sizes, with one call for each."""
    inputs: dict[str, Any] = {f"x{n}": (n + 2,) for n in range(count)}
    net = Net(**inputs)
    return load(net.model(*(net.op("Exp", f"x{n}") for n in range(count))))


def test_questions_that_change_the_same_calls_are_one_region(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuts, "MOST_ALTERNATIVES", 9)
    monkeypatch.setattr(cuts, "arrange", asking({"a": (0, 1), "b": (3,), "c": (1, 2), "d": ()}))
    found = cuts_of(separate(4))
    assert {region.name: len(region.options) for region in found.regions} == {"b": 3, "a, c": 9}
    assert_calls_add_up(found)
    names = [o.name for region in found.regions for o in region.options if len(o.answers) == 2]
    assert names[0] == "as it is, as it is" and "tanh, erf" in names


def test_a_region_of_too_many_ways_leaves_questions_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "arrange", asking({"a": (0,), "b": (0,), "c": (0,)}))
    [region] = cuts_of(separate(1)).regions
    assert region.name == "a" and len(region.options) == 3


def test_a_way_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="layer has no way 'other', only one, two"):
        Choices({"layer": "other"}).way("layer", {"one": 1, "two": 2})
