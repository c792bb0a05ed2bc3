"""Operators with random attributes and shapes equal onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers
from onnx import ModelProto

from ansorpy.frontend.onnx import load
from tests.budget import examples
from tests.frontend.models import graph_model, node, operator_model
from tests.graph.executor import Array, assert_same_as_onnxruntime, compiled, run_network

Rng = np.random.Generator


def count(rng: Rng, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


def each(rng: Rng, rank: int, low: int, high: int) -> list[int]:
    return [count(rng, low, high) for _ in range(rank)]


def normal(rng: Rng, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def image(rng: Rng, channels: int, reach: list[int]) -> tuple[int, ...]:
    """An image in which windows of *reach* have at least three places along each axis."""
    return (count(rng, 1, 2), channels, *(r + count(rng, 2, 6) for r in reach))


def conv(rng: Rng) -> ModelProto:
    rank, groups = count(rng, 1, 3), int(rng.choice([1, 1, 2, 5]))
    inputs, outputs = count(rng, 1, 3), count(rng, 1, 3)
    kernel, dilations = each(rng, rank, 1, 3), each(rng, rank, 1, 2)
    given: dict[str, Any] = {"strides": each(rng, rank, 1, 3)}
    if rng.random() < 0.6:
        given["dilations"], given["pads"] = dilations, each(rng, 2 * rank, 0, 4)
    else:  # onnxruntime knows no dilation here
        given["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    weight = normal(rng, outputs * groups, inputs, *kernel)
    shape = image(rng, inputs * groups, reach)
    return operator_model("Conv", [shape], [weight], group=groups, **given)


def conv_transpose(rng: Rng) -> ModelProto:
    rank, groups = count(rng, 1, 3), int(rng.choice([1, 1, 3]))
    inputs, outputs = count(rng, 1, 3), count(rng, 1, 3)
    strides, dilations = each(rng, rank, 1, 4), each(rng, rank, 1, 2)
    given: dict[str, Any] = {"dilations": dilations, "strides": strides}
    if rng.random() < 0.5:
        given["pads"] = each(rng, 2 * rank, 0, 2)
        given["output_padding"] = [count(rng, 0, s - 1) for s in strides]
    else:
        given["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    weight = normal(rng, inputs * groups, outputs, *each(rng, rank, 1, 5))
    shape = image(rng, inputs * groups, [3] * rank)
    return operator_model("ConvTranspose", [shape], [weight], group=groups, **given)


def pool(rng: Rng) -> ModelProto:
    rank, op_type = count(rng, 1, 3), str(rng.choice(["MaxPool", "AveragePool"]))
    kernel, dilations = each(rng, rank, 1, 3), each(rng, rank, 1, 2)
    given: dict[str, Any] = {"kernel_shape": kernel}
    if rng.random() < 0.7:
        given["strides"] = each(rng, rank, 1, 3)
        given["pads"] = [count(rng, 0, k - 1) for k in (*kernel, *kernel)]
        given["ceil_mode"] = count(rng, 0, 1)
        given["dilations"] = dilations
    else:  # where onnxruntime leaves dilations out, and refuses strides beyond the kernel
        given["strides"] = [count(rng, 1, k) for k in kernel]
        given["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    if op_type == "AveragePool":
        given["count_include_pad"] = count(rng, 0, 1)
    shape = image(rng, count(rng, 1, 5), [2 * k for k in kernel])
    return operator_model(op_type, [shape], opset=19, **given)


def reduction(rng: Rng) -> ModelProto:
    shape, rank = each(rng, 4, 1, 5), 4
    axes = rng.choice(rank, count(rng, 1, rank), replace=False) - rank * count(rng, 0, 1)
    kinds = ["Sum", "Mean", "Max", "Min", "L1", "L2", "LogSumExp", "SumSquare"]
    name = f"Reduce{rng.choice(kinds)}"
    given = np.asarray(axes, np.int64)
    nodes = [
        node("Transpose", ["x"], ["turned"], perm=[int(p) for p in rng.permutation(rank)]),
        node(name, ["turned", "axes"], ["reduced"], keepdims=count(rng, 0, 1)),
        node("Neg", ["reduced"], ["y"]),
    ]
    return graph_model(nodes, {"x": shape}, ["y"], {"axes": given}, opset=18)


def product(rng: Rng) -> ModelProto:
    batch, k = each(rng, count(rng, 0, 3), 1, 4), count(rng, 1, 9)

    def shape(*matrix: int) -> tuple[int, ...]:
        broadcast = [1 if rng.random() < 0.3 else e for e in batch]
        return (*broadcast[count(rng, 0, len(batch)) :], *matrix)

    left = (k,) if rng.random() < 0.2 else shape(count(rng, 1, 9), k)
    right = (k,) if rng.random() < 0.2 else shape(k, count(rng, 1, 18))
    if rng.random() < 0.5:
        return operator_model("MatMul", [left, right])
    return operator_model("MatMul", [left], [normal(rng, *right)])


FAMILIES: dict[str, Callable[[Rng], ModelProto]] = {
    "conv": conv,
    "conv_transpose": conv_transpose,
    "pool": pool,
    "reduction": reduction,
    "product": product,
}


SEEDS = integers(0, 2**32 - 1)


@pytest.mark.parametrize("family", FAMILIES)
@examples(25)
@given(seed=SEEDS)
def test_random_attributes(family: str, seed: int) -> None:
    rng = np.random.default_rng([seed, *map(ord, family)])
    assert_same_as_onnxruntime(FAMILIES[family](rng), rng)


@examples(200)
@given(seed=SEEDS)
def test_pools_have_as_many_windows_as_onnx_infers(seed: int) -> None:
    """Also where pads are wider than the kernel, which onnxruntime refuses.

    Before opset 22 onnx infers windows that it does not compute.
    """
    rng = np.random.default_rng([seed, 199])
    rank = count(rng, 1, 3)
    kernel, dilations = each(rng, rank, 1, 4), each(rng, rank, 1, 3)
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    shape = (1, 1, *(r + count(rng, 0, 6) for r in reach))
    model = operator_model(
        "MaxPool", [shape], opset=22, kernel_shape=kernel, strides=each(rng, rank, 1, 4),
        dilations=dilations, pads=each(rng, 2 * rank, 0, 5), ceil_mode=count(rng, 0, 1),
    )  # fmt: skip
    graph = load(model)
    inferred = tuple(d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim)
    assert graph.types[graph.outputs[0].value].shape == inferred


def test_a_window_of_end_padding_alone_is_left_out() -> None:
    model = operator_model("MaxPool", [(1, 1, 1, 4)], kernel_shape=[1, 2], strides=[1, 2],
                           pads=[0, 0, 0, 2], ceil_mode=1)  # fmt: skip
    x = np.asarray([3, 1, -4, -2], np.float32).reshape(1, 1, 1, 4)
    (got,) = run_network(compiled(model), {"x0": x})
    np.testing.assert_array_equal(got, [[[[3, -2]]]])
