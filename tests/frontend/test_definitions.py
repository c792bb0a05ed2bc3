"""Operators that onnx defines by others: its own cases, other sizes, operands left out."""

from __future__ import annotations

import importlib
import warnings
from functools import cache
from typing import Any

import numpy as np
import onnx.backend.test.case.node as node_cases
import pytest
from onnx import ModelProto, helper, numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.reference import ReferenceEvaluator

from ansorpy.frontend.onnx import load
from ansorpy.frontend.onnx.definitions import with_definitions
from tests.frontend.models import graph_model, node
from tests.frontend.test_onnx_cases import array, made_quickly
from tests.graph.executor import compiled, random_feeds, run_network

MODULES = ("flexattention", "causal_conv_with_state", "linear_attention")


@cache
def cases() -> dict[str, TestCase]:
    """The cases of operators that have no importer of their own."""
    for module in MODULES:
        with warnings.catch_warnings(action="ignore"), made_quickly():
            importlib.import_module(f"{node_cases.__name__}.{module}")
    beginnings = ("test_flexattention", "test_causal_conv", "test_linear_attention")
    return {
        case.name: case for case in node_cases._NodeTestCases
        if case.name.startswith(beginnings) and "expanded" not in case.name
    }  # fmt: skip


def operators(model: ModelProto) -> set[str]:
    return {one.op_type for one in model.graph.node}


@pytest.mark.parametrize("operator", ["flexattention", "causal_conv"])
def test_cases_of_onnx(operator: str) -> None:
    for name, case in cases().items():
        if operator not in name:
            continue
        assert case.model is not None and case.data_sets is not None
        inputs, outputs = (list(map(array, values)) for values in case.data_sets[0])
        network = compiled(case.model)
        feeds = dict(zip((info.name for info in network.inputs), inputs, strict=True))
        for got, want in zip(run_network(network, feeds), outputs, strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype), name
            last = float(np.finfo(got.dtype).eps)
            np.testing.assert_allclose(got, want, max(1e-3, last), max(1e-6, last), err_msg=name)


def test_recurrences_become_scans_whatever_is_left_out() -> None:
    found = [case for name, case in cases().items() if "linear_attention" in name]
    assert any("" in case.model.graph.node[0].input for case in found if case.model)
    for case in found:
        assert case.model is not None
        model = with_definitions(case.model, case.model.graph.node)
        assert "LinearAttention" not in operators(model) and "Scan" in operators(model), case.name


@pytest.mark.parametrize("activation", ["none", "silu"])
@pytest.mark.parametrize("given", [("x", "w"), ("x", "w", "b"), ("x", "w", "", "s")])
def test_convolutions_that_continue(activation: str, given: tuple[str, ...]) -> None:
    shapes = {"x": (2, 3, 7), "w": (3, 1, 4), "b": (3,), "s": (2, 3, 3)}
    one = node("CausalConvWithState", list(given), ["y", "state"], activation=activation)
    model = graph_model([one], {n: shapes[n] for n in given if n}, ["y", "state"], opset=27)
    assert_as_reference(model)


@pytest.mark.parametrize("opset", [27, 28])
def test_weights_may_be_constants_in_later_operator_sets(opset: int) -> None:
    w = np.random.default_rng(0).standard_normal((3, 1, 4), np.float32)
    one = node("CausalConvWithState", ["x", "w", "", "s"], ["y", "state"], activation="silu")
    shapes = {"x": (2, 3, 7), "s": (2, 3, 3)}
    assert_as_reference(graph_model([one], shapes, ["y", "state"], {"w": w}, opset=opset))
    given = {n: (1, 5, 6) for n in ("q", "k", "v", "decay")}
    names = ["q", "k", "v", "", "decay"]
    one = node(
        "LinearAttention", names, ["y", "state"], update_rule="gated", q_num_heads=2,
        kv_num_heads=2,
    )  # fmt: skip
    assert_as_reference(graph_model([one], given, ["y", "state"], opset=opset))


def assert_as_reference(model: ModelProto) -> list[str]:
    """The names of the calls, once the outputs equal those of onnx's reference."""
    network = compiled(model)
    feeds = random_feeds(network, np.random.default_rng(2))
    expected = ReferenceEvaluator(model).run(None, feeds)
    for got, want in zip(run_network(network, feeds), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * float(np.abs(want).max()))
    return [call.name for call in network.calls]


def flexible(modifier: str | None, heads: int, batch: int | str = 2) -> ModelProto:
    """FlexAttention whose modifier *modifier* turns numbers x into ``x * 0.5``."""
    attributes: dict[str, Any] = {}
    if modifier is not None:
        info = helper.make_tensor_value_info
        halved = helper.make_node("Mul", ["given", "half"], ["made"])
        half = numpy_helper.from_array(np.asarray(0.5, np.float32), "half")
        attributes[modifier] = helper.make_graph(
            [halved], "modifier", [info("given", 1, [None] * 4)], [info("made", 1, [None] * 4)],
            [half],
        )  # fmt: skip
    one = node("FlexAttention", ["q", "k", "v"], ["y"], domain="ai.onnx.preview", **attributes)
    shapes = {"q": (batch, 6, 5, 8), "k": (batch, heads, 7, 8), "v": (batch, heads, 7, 3)}
    return graph_model([one], shapes, ["y"], opset=26, domains=["ai.onnx.preview"])


@pytest.mark.parametrize("modifier", [None, "score_mod", "prob_mod"])
@pytest.mark.parametrize("heads", [1, 2, 6])
def test_attention_with_bodies(modifier: str | None, heads: int) -> None:
    names = assert_as_reference(flexible(modifier, heads))
    assert modifier == "prob_mod" or any("attention" in name for name in names)


def test_attention_of_any_batch() -> None:
    graph = load(flexible(None, 2, "batch"), dims={"batch": (1, 4)})
    assert str(graph.types[graph.outputs[0].value].shape) == "(batch, 6, 5, 3)"
