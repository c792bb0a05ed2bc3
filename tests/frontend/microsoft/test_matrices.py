"""Distances, inverses, triangles and samples of com.microsoft beside onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from tests.frontend.microsoft.beside import assert_as_onnxruntime, model_of, normal


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


def test_triangles() -> None:
    operands = {"x": normal(0, 2, 4, 5), "k": np.array(1)}
    assert_as_onnxruntime("Trilu", operands, None, ["k"], upper=0)


def test_products_of_turned_matrices() -> None:
    operands = {"a": normal(0, 2, 4, 3), "b": normal(1, 2, 4, 5)}
    assert_as_onnxruntime("TransposeMatMul", operands, None, (), transA=1, alpha=0.3)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_samples(mode: str) -> None:
    operands = {"x": normal(0, 2, 3, 6, 5), "grid": np.tanh(normal(1, 2, 4, 3, 2))}
    assert_as_onnxruntime("GridSample", operands, None, (), 1e-4, mode=mode, padding_mode="border")
