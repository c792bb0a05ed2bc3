"""Movements of elements in com.microsoft beside onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from ansorpy.errors import ForeignFile, UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from tests.frontend.microsoft.beside import assert_as_onnxruntime, model_of, normal
from tests.graph.executor import run_network


def test_triangles() -> None:
    operands = {"x": normal(0, 2, 4, 5), "k": np.array(1)}
    assert_as_onnxruntime("Trilu", operands, None, ["k"], upper=0)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_an_axis_is_inserted(axis: int) -> None:
    operands = {"x": normal(0, 2, 5), "axis": np.array(axis, np.int32)}
    assert_as_onnxruntime("ExpandDims", operands, None, ["axis"])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("rows", [False, True])
def test_padding(mode: str, rows: bool) -> None:
    pads = np.array([1, 0, 0, 2])
    operands = {
        "x": normal(0, 3, 5), "pads": pads[None] if rows else pads,
        "value": np.array([0.5], np.float32) if mode == "constant" else None,
    }  # fmt: skip
    held = [name for name, array in operands.items() if array is not None and name != "x"]
    assert_as_onnxruntime("Pad", operands, None, held, mode=mode)


def test_elements_and_rows_at_places() -> None:
    operands = {"x": normal(0, 3, 4, 5), "places": np.array([[[0, 1], [2, 3]]])}
    assert_as_onnxruntime("GatherND", operands)


def test_rows_of_a_table() -> None:
    """onnxruntime computes it when it trains only."""
    table, places = normal(0, 7, 4), np.array([[3, 0], [6, 3]])
    model = model_of("TorchEmbedding", {"w": table, "i": places}, {"y": TensorProto.FLOAT})
    (got,) = run_network(partition(optimize(load(model))), {"w": table, "i": places})
    np.testing.assert_array_equal(got, table[places])


@pytest.mark.parametrize("delta", [None, 2.5])
def test_ranges(delta: float | None) -> None:
    operands = {
        "start": np.array(1, np.float32), "limit": np.array(9, np.float32),
        "delta": None if delta is None else np.array(delta, np.float32),
    }  # fmt: skip
    held = [name for name, array in operands.items() if array is not None]
    operands = {name: operands[name] for name in held}
    assert_as_onnxruntime("Range", operands, None, held)


def test_distinct_elements_in_order() -> None:
    x = np.array([2, 1, 1, 3, 4, 3], np.float32)
    outputs = {"y": TensorProto.FLOAT, "went": TensorProto.INT64, "counts": TensorProto.INT64}
    assert_as_onnxruntime("Unique", {"x": x}, outputs)


@pytest.mark.parametrize(("dim", "size", "step"), [(1, 3, 1), (-1, 2, 2), (0, 2, 1)])
def test_windows(dim: int, size: int, step: int) -> None:
    assert_as_onnxruntime("UnfoldTensor", {"x": normal(0, 2, 5, 7)}, dim=dim, size=size, step=step)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_repeated_tokens_are_blocked(size: int) -> None:
    ids = np.array([[1, 2, 3, 1, 2, 3, 1, 2], [5, 5, 5, 5, 1, 5, 5, 5]])
    assert_as_onnxruntime(
        "NGramRepeatBlock", {"ids": ids, "scores": normal(0, 2, 8)}, ngram_size=size
    )


def test_windows_longer_than_the_axis_are_refused() -> None:
    model = model_of("UnfoldTensor", {"x": normal(0, 2, 5)}, {"y": 1}, dim=1, size=6)
    with pytest.raises(UnsupportedModel, match="the axis has 5 elements"):
        load(model)


def test_an_operand_of_too_few_axes_is_the_fault_of_the_file() -> None:
    operands = {"ids": np.random.default_rng(1).integers(0, 9, 8), "scores": normal(0, 2, 8)}
    with pytest.raises(ForeignFile, match="not valid: NGramRepeatBlock y: ValueError") as caught:
        load(model_of("NGramRepeatBlock", operands, {"y": 1}, ngram_size=2))
    assert isinstance(caught.value.__cause__, ValueError)
