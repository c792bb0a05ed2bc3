"""Operators that users define: their results, and what is said of wrong definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import ansorpy as ap
from ansorpy.errors import UnsupportedModel, UsageError
from ansorpy.frontend.onnx import load
from ansorpy.frontend.onnx.custom import CUSTOM
from tests.frontend.models import graph_model, node
from tests.graph.executor import compiled, random_feeds, run_network

DOMAIN = "com.example"


@pytest.fixture(autouse=True)
def no_operator_stays() -> Iterator[None]:
    before = set(CUSTOM)
    yield
    for name in set(CUSTOM) - before:
        CUSTOM.remove(name)


def model_of(
    inputs: Mapping[str, tuple[int | str, ...]], outputs: int = 1, **attributes: Any
) -> ModelProto:
    """A model of the operator ``Own`` on *inputs*, between others."""
    results = [f"y{n}" for n in range(outputs)]
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("Own", ["r", *list(inputs)[1:]], results, domain=DOMAIN, **attributes),
        *(node("Neg", [result], [f"n{n}"]) for n, result in enumerate(results)),
    ]
    return graph_model(nodes, inputs, [f"n{n}" for n in range(outputs)], domains=[DOMAIN])


def defined(function: Callable[..., object]) -> None:
    ap.register_op(DOMAIN, "Own")(function)


def row_norm(
    x: ap.Tensor, scale: ap.Tensor | None = None, *, power: int = 2
) -> tuple[ap.Tensor, ap.Tensor]:
    k = ap.reduce_axis(x.shape[-1], name="k")

    def term(*i: ap.Expr) -> ap.Expr:
        return ap.sum(x[(*i, k)] if power == 1 else x[(*i, k)] * x[(*i, k)], axis=k)

    total = ap.compute(x.shape[:-1], term, name="data")  # the name of a placeholder, too

    def share(*i: ap.Expr) -> ap.Expr:
        value = x[i] / (total[i[:-1]] + 1.0)
        return value if scale is None else value * scale[i[-1]]

    return ap.compute(x.shape, share, name="share"), total


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("scaled", [False, True])
def test_results_operands_and_attributes(power: int, scaled: bool) -> None:
    defined(row_norm)
    inputs: dict[str, tuple[int | str, ...]] = {"x": (3, 5, 7)}
    if scaled:
        inputs["scale"] = (7,)
    network = compiled(model_of(inputs, 2, power=power))
    feeds = random_feeds(network, np.random.default_rng(1))
    x = np.maximum(feeds["x"], 0)
    total = (x**power).sum(-1)
    share = x / (total[..., None] + 1) * (feeds["scale"] if scaled else 1)
    for got, want in zip(run_network(network, feeds), (-share, -total), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_attributes_are_numbers_texts_and_tuples() -> None:
    seen: dict[str, object] = {}

    def own(x: ap.Tensor, **given: object) -> ap.Tensor:
        seen.update(given)
        return ap.compute(x.shape, lambda *i: x[i] + 1.0, name="y")

    defined(own)
    load(model_of({"x": (2, 3)}, n=3, f=0.5, s="text", ints=[1, 2], texts=["a", "b"]))
    assert seen == {"n": 3, "f": 0.5, "s": "text", "ints": (1, 2), "texts": ("a", "b")}


def test_any_number_of_rows_and_constant_operands() -> None:
    defined(row_norm)
    graph = load(model_of({"x": ("n", 4)}), dims={"n": (1, 9)})
    assert str(graph.types[graph.outputs[0].value].shape) == "(n, 4)"
    held = np.asarray([[1.0, 2.0]], np.float32)
    nodes = [node("Own", ["c"], ["y"], domain=DOMAIN), node("Add", ["x", "y"], ["z"])]
    model = graph_model(nodes, {"x": (1, 2)}, ["z"], {"c": held}, domains=[DOMAIN])
    network = compiled(model)
    (got,) = run_network(network, {"x": np.zeros((1, 2), np.float32)})
    np.testing.assert_allclose(got, held / 6, rtol=1e-6)


def ramp(x: ap.Tensor) -> object:
    return ap.compute(x.shape, lambda i, j: (3 * i + j).astype("float32"), name="ramp")


def test_an_operator_that_reads_only_the_shape_of_its_operand() -> None:
    defined(ramp)
    network = compiled(model_of({"x": (2, 3)}))
    [got] = run_network(network, random_feeds(network, np.random.default_rng(3)))
    np.testing.assert_array_equal(got, -np.arange(6, dtype=np.float32).reshape(2, 3))


def identity(x: ap.Tensor) -> object:
    return x


def number(x: ap.Tensor) -> object:
    return 3


def stranger(x: ap.Tensor) -> object:
    table = ap.placeholder((3,), name="table")
    return ap.compute(x.shape, lambda i, j: x[i, j] * table[j], name="y")


def failing(x: ap.Tensor) -> object:
    return ap.compute(x.shape, lambda i: x[i, 0], name="y")


def tuned(x: ap.Tensor, *, alpha: float) -> object:
    return ap.compute(x.shape, lambda *i: x[i] * alpha, name="y")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (identity, "returned the operand x"),
        (number, "returned 3, which ap.compute did not make"),
        (stranger, "reads table, which is none of its operands"),
        (failing, r"failed on operands \[2, 3\]: line \d+: TypeError"),
        (tuned, "missing a required argument: 'alpha'"),
    ],
)
def test_wrong_functions_are_named(function: Callable[..., object], said: str) -> None:
    defined(function)
    with pytest.raises(UsageError, match=said) as caught:
        load(model_of({"x": (2, 3)}))
    assert "com.example.Own" in str(caught.value)


def test_attributes_and_operands_that_the_function_does_not_take() -> None:
    defined(row_norm)
    with pytest.raises(UsageError, match="unexpected keyword argument 'other'"):
        load(model_of({"x": (2, 3)}, other=1))
    with pytest.raises(UsageError, match="too many positional arguments"):
        load(model_of({"x": (2, 3), "scale": (3,), "more": (3,)}))


def test_too_few_results() -> None:
    defined(row_norm)
    with pytest.raises(UsageError, match="returned 2 tensors, but the node y0 has 3 outputs"):
        load(model_of({"x": (2, 3)}, 3))


def test_results_are_of_the_type_that_the_model_declares() -> None:
    defined(lambda x: ap.compute((x.shape[0],), lambda i: x[i, 0], name="y"))
    model = model_of({"x": (2, 3)})
    model.graph.value_info.append(helper.make_tensor_value_info("y0", TensorProto.FLOAT, (2, 3)))
    with pytest.raises(UsageError, match=r"gives float32\[2\] for y0, .* float32\[2, 3\]"):
        load(model)


def test_operators_are_registered_once_and_in_domains_of_their_own() -> None:
    defined(row_norm)
    with pytest.raises(UsageError, match='there is a custom operator "com.example.Own" already'):
        defined(lambda x: x)
    defined(row_norm)  # as a cell that runs again
    ap.unregister_op(DOMAIN, "Own")
    defined(lambda x: x)
    ap.unregister_op(DOMAIN, "Own")
    with pytest.raises(
        UsageError, match='no script registered a custom operator "com.example.Own"'
    ):
        ap.unregister_op(DOMAIN, "Own")
    for domain in ("", "ai.onnx.ml"):
        with pytest.raises(UsageError, match="are defined by onnx"):
            ap.register_op(domain, "Own")
    with pytest.raises(UsageError, match="ansorpy defines com.microsoft.Gelu itself"):
        ap.register_op("com.microsoft", "Gelu")


def test_other_operators_are_refused_with_the_way_to_define_them() -> None:
    with pytest.raises(UnsupportedModel, match="register_op") as caught:
        load(model_of({"x": (2, 3)}))
    assert caught.value.rows[0].op == "Own"


def test_operands_have_elements_and_attributes_are_no_tensors() -> None:
    defined(row_norm)
    with pytest.raises(UnsupportedModel, match="give operands that have elements"):
        load(model_of({"x": (0, 3)}))
    with pytest.raises(UnsupportedModel, match="give it as an operand"):
        load(model_of({"x": (2, 3)}, t=helper.make_tensor("t", TensorProto.FLOAT, [1], [1.0])))
