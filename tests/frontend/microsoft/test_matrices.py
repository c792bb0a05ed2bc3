"""Distances, inverses and products of com.microsoft beside onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from tests.frontend.microsoft.beside import assert_as_onnxruntime, model_of, normal
from tests.graph.executor import run_network


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 5, 3)])
def test_distances(shape: tuple[int, int, int], metric: str) -> None:
    m, n, columns = shape
    operands = {"a": normal(0, m, columns), "b": normal(1, n, columns)}
    assert_as_onnxruntime("CDist", operands, None, ["b"], 1e-4, metric=metric)


def test_other_metrics_are_refused() -> None:
    operands = {"a": normal(0, 3, 4), "b": normal(1, 5, 4)}
    with pytest.raises(UnsupportedModel, match="use euclidean or sqeuclidean"):
        load(model_of("CDist", operands, {"y": 1}, metric="cosine"))


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 3, 7, 7)])
def test_inverses(shape: tuple[int, ...]) -> None:
    data = normal(0, *shape)
    data[..., 0, 0] = 0 if shape[-1] > 1 else 2  # the first pivot is in another row
    assert_as_onnxruntime("Inverse", {"x": data}, None, (), 1e-3)


def test_products_of_turned_matrices() -> None:
    operands = {"a": normal(0, 2, 4, 3), "b": normal(1, 2, 4, 5)}
    assert_as_onnxruntime("TransposeMatMul", operands, None, (), transA=1, alpha=0.3)


@pytest.mark.parametrize("conjugated", [False, True])
def test_complex_products(conjugated: bool) -> None:
    """onnxruntime has them on GPUs only."""
    a, b = normal(0, 2, 3, 2), normal(1, 3, 2)
    name = "ComplexMulConj" if conjugated else "ComplexMul"
    network = partition(optimize(load(model_of(name, {"a": a, "b": b}, {"y": TensorProto.FLOAT}))))
    (got,) = run_network(network, {"a": a, "b": b})
    left, right = (x[..., 0] + 1j * x[..., 1] for x in (a, b))
    want = left * (right.conj() if conjugated else right)
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, rtol=1e-5, atol=1e-5)
