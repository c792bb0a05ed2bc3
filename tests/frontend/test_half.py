"""Means and norms of 16-bit floats: no sum on the way to them overflows or loses its terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from ansorpy.graph import Network
from tests.frontend.models import graph_model, node
from tests.graph.executor import Array, compiled, run_network

TYPES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
KINDS = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
Numbers = Callable[[Array], Array]


def model_of(
    op_type: str, x: Array, held: dict[str, Array] | None = None, *, opset: int = 18,
    outputs: int = 1, **attributes: Any,
) -> ModelProto:  # fmt: skip
    """One operator on ``x`` and constants, whose first result is of the type of ``x``."""
    code = KINDS[x.dtype.name]
    names = [f"y{n}" for n in range(outputs)]
    one = node(op_type, ["x", *(held or {})], names, **attributes)
    types = {"x": code, "y0": code}
    return graph_model([one], {"x": x.shape}, names, held, opset, types)


def results(model: ModelProto, x: Array) -> tuple[Network, list[Array]]:
    network = compiled(model)
    return network, run_network(network, {"x": x})


def assert_close(got: Array, want: Array) -> None:
    """Assert that *got* is *want* but for the rounding of its own type."""
    kind = ml_dtypes.finfo(got.dtype)
    least = float(kind.smallest_subnormal)
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=float(kind.eps), atol=least)


def mean(x: Array) -> Array:
    return np.asarray(x.mean((2, 3), keepdims=True))


def standard(x: Array, axes: tuple[int, ...], epsilon: float = 0.0) -> Array:
    centred = x - x.mean(axes, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(axes, keepdims=True) + epsilon))


def softmax(x: Array) -> Array:
    raised = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True))


IMAGE, ROWS = (1, 2, 256, 256), (2, 70000)
CASES: dict[str, tuple[tuple[int, ...], float, Numbers, dict[str, Any]]] = {
    "GlobalAveragePool": (IMAGE, 8.0, mean, {}),
    "AveragePool": (
        IMAGE, 8000.0, lambda x: x.reshape(1, 2, 4, 64, 4, 64).mean((3, 5)),
        {"kernel_shape": [64, 64], "strides": [64, 64]},
    ),
    "GlobalLpPool": (IMAGE, 300.0, lambda x: np.sqrt((x**2).sum((2, 3), keepdims=True)), {}),
    "LpPool": (
        IMAGE, 300.0, lambda x: np.sqrt((x**2).reshape(1, 2, 64, 4, 64, 4).sum((3, 5))),
        {"kernel_shape": [4, 4], "strides": [4, 4]},
    ),
    "MeanVarianceNormalization": (IMAGE, 300.0, lambda x: standard(x, (0, 2, 3)), {}),
    "LpNormalization": (
        ROWS, 300.0, lambda x: x / np.sqrt((x**2).sum(-1, keepdims=True)), {}
    ),
    "ReduceMean": (IMAGE, 8.0, lambda x: x.mean(keepdims=True), {}),
    "ReduceL2": ((2, 768), 300.0, lambda x: np.sqrt((x**2).sum(keepdims=True)), {}),
    "ReduceLogSum": (ROWS, 8.0, lambda x: np.log(x.sum(keepdims=True)), {}),
    "ReduceLogSumExp": (ROWS, 1.0, lambda x: np.log(np.exp(x).sum(keepdims=True)), {}),
    "Softmax": (ROWS, 1.0, softmax, {}),
    "LogSoftmax": (ROWS, 1.0, lambda x: np.log(softmax(x)), {}),
    "LRN": ((1, 8, 4, 4), 300.0, lambda x: x * (1 + window(x**2, 5) / 5) ** -0.5,
            {"size": 5, "alpha": 1.0, "beta": 0.5}),
}  # fmt: skip
"""The shape of the operand, the size of its positive elements, the result and the attributes."""


def window(x: Array, size: int) -> Array:
    """Sums over neighbouring channels."""
    padded = np.pad(x, ((0, 0), (size // 2, size // 2), (0, 0), (0, 0)))
    return np.asarray(sum(padded[:, n : n + x.shape[1]] for n in range(size)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op_type", CASES)
def test_sums_are_of_single_precision(op_type: str, kind: str, rng: np.random.Generator) -> None:
    shape, size, numbers, attributes = CASES[op_type]
    x = rng.uniform(0.5 * size, size, shape).astype(TYPES[kind])
    model = model_of(op_type, x, **attributes)
    _, [y] = results(model, x)
    assert y.dtype == x.dtype
    assert_close(y, numbers(x.astype(np.float64)))


FUNCTIONS: dict[str, Numbers] = {
    "Acos": np.arccos, "Asin": np.arcsin, "Asinh": np.arcsinh, "Atan": np.arctan,
    "Atanh": np.arctanh, "Cos": np.cos, "Cosh": np.cosh, "Exp": np.exp, "Sin": np.sin,
    "Sinh": np.sinh, "Tan": np.tan, "Tanh": np.tanh,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op_type", FUNCTIONS)
def test_functions_of_16_bit_floats(op_type: str, kind: str, rng: np.random.Generator) -> None:
    x = rng.uniform(-0.95, 0.95, (3, 50)).astype(TYPES[kind])
    _, [y] = results(model_of(op_type, x, opset=22), x)
    assert y.dtype == x.dtype
    assert_close(y, FUNCTIONS[op_type](x.astype(np.float64)))


ANYWHERE: dict[str, Numbers] = {
    "Elu": lambda x: np.where(x < 0, np.expm1(x), x),
    "Selu": lambda x: 1.0507010221 * np.where(x < 0, 1.6732631922 * np.expm1(x), x),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op_type", ANYWHERE)
def test_activations_of_16_bit_floats_are_rounded_once(
    op_type: str, kind: str, rng: np.random.Generator
) -> None:
    x = (16 * rng.uniform(-1, 1, (3, 50)) ** 3).astype(TYPES[kind])
    _, [y] = results(model_of(op_type, x, opset=22), x)
    assert y.dtype == x.dtype
    assert_close(y, ANYWHERE[op_type](x.astype(np.float64)))


@pytest.mark.parametrize("kind", KINDS)
def test_powers_keep_odd_exponents_that_the_base_lacks(kind: str) -> None:
    x = np.array([[-1], [-3], [0.5]]).astype(TYPES[kind])
    exponents = np.array([255, 256, 257, 2049, 3, 0, -3])
    _, [y] = results(model_of("Pow", x, {"exponents": exponents}), x)
    with np.errstate(over="ignore"):
        want = np.power(x.astype(np.float64), exponents).astype(x.dtype)
    assert_close(y, want.astype(np.float64))


NORMS: dict[str, tuple[int, Numbers, dict[str, Any]]] = {
    "LayerNormalization": (17, lambda x: standard(x, (1, 2, 3), 1e-12), {"axis": 1}),
    "InstanceNormalization": (17, lambda x: standard(x, (2, 3), 1e-12), {}),
    "GroupNormalization": (
        21, lambda x: standard(x.reshape(2, 2, 10, 64, 64), (2, 3, 4), 1e-12).reshape(x.shape),
        {"num_groups": 2},
    ),
    "RMSNormalization": (
        23, lambda x: x / np.sqrt((x**2).mean((1, 2, 3), keepdims=True) + 1e-12), {"axis": 1}
    ),
}  # fmt: skip
"""The operator set, the result without scale and offset, and the attributes."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op_type", NORMS)
def test_statistics_of_norms_are_of_single_precision(
    op_type: str, kind: str, rng: np.random.Generator
) -> None:
    opset, numbers, attributes = NORMS[op_type]
    dtype = TYPES[kind]
    x = (rng.standard_normal((2, 20, 64, 64)) * 4 + 3).astype(dtype)
    x[1] = 0
    shape = x.shape[1:2] if op_type[0] in "IG" else x.shape[1:]
    held = {"s": np.ones(shape, dtype)} | (
        {} if op_type[0] == "R" else {"b": np.zeros(shape, dtype)}
    )
    model = model_of(op_type, x, held, opset=opset, epsilon=1e-12, **attributes)
    _, [y] = results(model, x)
    assert_close(y, numbers(x.astype(np.float64)))


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_of_a_layer_norm_are_float32(kind: str, rng: np.random.Generator) -> None:
    dtype = TYPES[kind]
    x = (rng.standard_normal((2, 5000)) * 4 + 30).astype(dtype)
    held = {"s": np.ones(5000, dtype), "b": np.zeros(5000, dtype)}
    _, [_, average, inverse] = results(model_of("LayerNormalization", x, held, outputs=3), x)
    wide = x.astype(np.float64)
    assert average.dtype == inverse.dtype == np.float32
    np.testing.assert_allclose(average[:, 0], wide.mean(1), rtol=1e-5)
    np.testing.assert_allclose(inverse[:, 0], 1 / np.sqrt(wide.var(1) + 1e-5), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("masked", [False, True])
def test_attention_over_many_keys(masked: bool, kind: str) -> None:
    dtype, keys = TYPES[kind], 4096
    feeds = {
        "q": np.zeros((1, 2, 8), dtype), "k": np.ones((1, 8, keys), dtype),
        "v": np.full((1, keys, 8), 20, dtype), "m": np.zeros((2, keys), dtype),
    }  # fmt: skip
    nodes = [
        node("MatMul", ["q", "k"], ["s"]),
        node("Add", ["s", "m"], ["t"]),
        node("Softmax", ["t" if masked else "s"], ["p"]),
        node("MatMul", ["p", "v"], ["y"]),
    ]
    nodes = nodes if masked else [nodes[0], *nodes[2:]]
    feeds = feeds if masked else {n: a for n, a in feeds.items() if n != "m"}
    types = dict.fromkeys([*feeds, "y"], KINDS[kind])
    shapes = {name: array.shape for name, array in feeds.items()}
    network = compiled(graph_model(nodes, shapes, ["y"], types=types))
    assert len(network.calls) == 1
    [y] = run_network(network, feeds)
    assert_close(y, np.full(y.shape, 20.0))


@pytest.mark.parametrize("op_type", ["ReduceSum", "Einsum"])
def test_sums_are_of_their_own_type(op_type: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 4, 5)).astype(np.float16)
    attributes = {"equation": "abc->"} if op_type == "Einsum" else {"keepdims": 0}
    _, [y] = results(model_of(op_type, x, **attributes), x)
    assert y.dtype == x.dtype
    np.testing.assert_allclose(y, x.astype(np.float64).sum(), rtol=2**-10)


@pytest.mark.parametrize("op_type", CASES)
def test_casts_take_no_kernels(op_type: str) -> None:
    shape, _, _, attributes = CASES[op_type]
    calls = []
    for dtype, code in ((np.float32, TensorProto.FLOAT), (np.float16, TensorProto.FLOAT16)):
        x = np.ones(shape, dtype)
        one = node(op_type, ["x"], ["y"], **attributes)
        model = graph_model([one], {"x": x.shape}, ["y"], opset=18, types={"x": code, "y": code})
        calls.append(len(compiled(model).calls))
    assert calls[0] == calls[1]
