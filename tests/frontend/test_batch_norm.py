"""Batch normalisation with computed parameters and in training; determinants."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from tests.frontend.models import operator_model
from tests.graph.executor import (
    Array,
    assert_same_as_onnxruntime,
    compiled,
    run_network,
    run_reference,
)

SHAPES = [(2, 3, 5, 7), (4, 1, 3), (5, 3), (1, 2, 3, 1, 2)]


def parameters(shape: tuple[int, ...], rng: np.random.Generator) -> dict[str, Array]:
    channels = shape[1:2] or (1,)
    feeds: dict[str, Array] = {"x0": rng.standard_normal(shape, np.float32)}
    for n in range(1, 5):
        feeds[f"x{n}"] = rng.uniform(0.5, 2, channels).astype(np.float32)
    return feeds


@pytest.mark.parametrize("shape", [*SHAPES, (7,)])
def test_parameters_may_be_computed(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    shapes = [shape, *(shape[1:2] or (1,) for _ in range(4))]
    model = operator_model("BatchNormalization", shapes, epsilon=0.01)
    feeds = parameters(shape, rng)
    (got,) = run_network(compiled(model), feeds)
    (want,) = run_reference(model, feeds)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_training_returns_running_statistics(
    shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    shapes = [shape, *((shape[1],) for _ in range(4))]
    model = operator_model(
        "BatchNormalization", shapes, outputs=3, training_mode=1, epsilon=0.01, momentum=0.75
    )
    feeds = parameters(shape, rng)
    wanted = run_reference(model, feeds)
    for got, want in zip(run_network(compiled(model), feeds), wanted, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_old_training_also_returns_the_statistics_of_the_data(rng: np.random.Generator) -> None:
    shapes = [(2, 3, 5), *((3,) for _ in range(4))]
    model = operator_model("BatchNormalization", shapes, outputs=5, opset=9)
    feeds = parameters(shapes[0], rng)
    _, mean, var, own_mean, own_var = run_network(compiled(model), feeds)
    x = feeds["x0"]
    np.testing.assert_allclose(own_mean, x.mean((0, 2)), atol=1e-6)
    np.testing.assert_allclose(own_var, x.var((0, 2)), rtol=1e-5)
    np.testing.assert_allclose(mean, 0.9 * feeds["x3"] + 0.1 * own_mean, rtol=1e-5)
    np.testing.assert_allclose(var, 0.9 * feeds["x4"] + 0.1 * own_var, rtol=1e-5)


def test_training_of_16_bits(rng: np.random.Generator) -> None:
    """Its sums are wider: those of thousands in float16 would be off by percents."""
    shapes = [(4, 3, 601), *((3,) for _ in range(4))]
    names = [*(f"x{n}" for n in range(5)), *(f"y{n}" for n in range(3))]
    types = dict.fromkeys(names, TensorProto.FLOAT16)
    model = operator_model("BatchNormalization", shapes, outputs=3, types=types, training_mode=1)
    feeds = {n: x.astype(np.float16) for n, x in parameters(shapes[0], rng).items()}
    feeds["x0"] += 3
    x, scale, bias, *running = (a.astype(np.float64) for a in feeds.values())
    own = x.mean((0, 2)), x.var((0, 2))
    factor = scale / np.sqrt(own[1] + 1e-5)
    result = (x - own[0][:, None]) * factor[:, None] + bias[:, None]
    wanted = result, *(0.9 * old + 0.1 * new for old, new in zip(running, own, strict=True))
    for got, want in zip(run_network(compiled(model), feeds), wanted, strict=True):
        assert got.dtype == np.float16
        np.testing.assert_allclose(got, want, rtol=2 * 2**-11, atol=2**-12)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 5, 5), (2, 1, 3, 3), (2, 9, 9)])
def test_determinants(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    data = rng.standard_normal(shape, np.float32)
    data[..., 0, 0] = 0  # the first pivot is in another row
    (got,) = run_network(compiled(operator_model("Det", [shape])), {"x0": data})
    want = np.linalg.det(data.astype(np.float64))
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def test_singular_matrices_have_the_determinant_0() -> None:
    data = np.asarray([np.zeros((3, 3)), np.ones((3, 3)), np.diag([0, 1, 2])], np.float32)
    (got,) = run_network(compiled(operator_model("Det", [(3, 3, 3)])), {"x0": data})
    np.testing.assert_array_equal(got, [0, 0, 0])


@pytest.mark.parametrize("shape", [(3, 4), (65, 65), (5,)])
def test_other_matrices_have_no_determinant(shape: tuple[int, ...]) -> None:
    with pytest.raises(UnsupportedModel, match="it must be square, up to 64 rows"):
        load(operator_model("Det", [shape]))


def test_constant_parameters_stay_one_product_and_one_sum(rng: np.random.Generator) -> None:
    held = [rng.uniform(0.5, 2, 3).astype(np.float32) for _ in range(4)]
    network = assert_same_as_onnxruntime(
        operator_model("BatchNormalization", [(2, 3, 5)], held), rng
    )
    assert len(network.calls) == 1
