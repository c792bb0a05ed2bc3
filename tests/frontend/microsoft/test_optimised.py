"""Networks that onnxruntime's optimiser and quantiser have written are compiled as they come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    quantize_dynamic,
    quantize_static,
)

from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from tests.frontend.microsoft.beside import normal
from tests.frontend.models import graph_model, node
from tests.graph.executor import assert_same_as_onnxruntime, run_network
from tests.peer import peer

SHAPE = (2, 5, 16)


def block() -> ModelProto:
    """A gelu between two products, a residual and a normalisation, as exporters write them."""
    held: dict[str, Any] = {
        "w1": normal(1, 16, 32), "b1": normal(2, 32), "w2": normal(3, 32, 16) / 4,
        "b2": normal(4, 16), "g": normal(5, 16), "b": normal(6, 16),
        "root": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5),
    }  # fmt: skip
    nodes = [
        node("MatMul", ["x", "w1"], ["m1"]), node("Add", ["m1", "b1"], ["h"]),
        node("Div", ["h", "root"], ["e1"]), node("Erf", ["e1"], ["e2"]),
        node("Add", ["e2", "one"], ["e3"]), node("Mul", ["h", "e3"], ["e4"]),
        node("Mul", ["e4", "half"], ["e5"]),
        node("MatMul", ["e5", "w2"], ["m2"]), node("Add", ["m2", "b2"], ["o"]),
        node("Add", ["o", "x"], ["r"]), node("LayerNormalization", ["r", "g", "b"], ["y"]),
    ]  # fmt: skip
    return graph_model(nodes, {"x": SHAPE}, ["y"], held, 17)


class Samples(CalibrationDataReader):  # type: ignore[misc]  # it has no types
    """Inputs with which ranges are found."""

    def __init__(self) -> None:
        self._left: Iterator[dict[str, Any]] = iter([{"x": normal(n, *SHAPE)} for n in range(3)])

    def get_next(self) -> dict[str, Any] | None:
        return next(self._left, None)


def optimised(path: Path) -> Path:
    """The model as onnxruntime's optimiser writes it for any machine."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    made = path.with_suffix(".optimised.onnx")
    options.optimized_model_filepath = str(made)
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return made


@pytest.mark.parametrize("how", ["plain", "dynamic", "integers", "quantize and dequantize"])
def test_a_block_of_a_transformer(how: str, tmp_path: Path) -> None:
    plain, path = tmp_path / "plain.onnx", tmp_path / "net.onnx"
    onnx.save(block(), plain)
    if how == "plain":
        path = plain
    elif how == "dynamic":
        quantize_dynamic(plain, path)
    else:
        kind = QuantFormat.QOperator if how == "integers" else QuantFormat.QDQ
        quantize_static(plain, path, Samples(), quant_format=kind)
    made = optimised(path)
    is_fused = any(one.domain == "com.microsoft" for one in onnx.load(made).graph.node)
    assert is_fused or how == "quantize and dequantize"
    feeds = {"x": normal(7, *SHAPE)}
    (got,) = run_network(partition(optimize(load(made))), feeds)
    session = peer(str(made))
    (want,) = session.run(None, feeds)
    tolerance = 1e-5 if how in ("plain", "dynamic") else 0.03  # steps of integers
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * float(np.abs(want).max()))


@pytest.mark.parametrize("opset", [11, 14])
def test_a_normalisation_of_an_operator_set_without_it(opset: int, tmp_path: Path) -> None:
    nodes = [
        node("ReduceMean", ["x"], ["m"], axes=[-1]), node("Sub", ["x", "m"], ["d"]),
        node("Pow", ["d", "two"], ["s"]), node("ReduceMean", ["s"], ["v"], axes=[-1]),
        node("Add", ["v", "e"], ["ve"]), node("Sqrt", ["ve"], ["r"]),
        node("Div", ["d", "r"], ["n"]), node("Mul", ["n", "g"], ["ng"]),
        node("Add", ["ng", "b"], ["y"]),
    ]  # fmt: skip
    held: dict[str, Any] = {
        "two": np.float32(2), "e": np.float32(1e-5), "g": normal(5, 16), "b": normal(6, 16),
    }  # fmt: skip
    path = tmp_path / "net.onnx"
    onnx.save(graph_model(nodes, {"x": SHAPE}, ["y"], held, opset), path)
    made = onnx.load(optimised(path))
    assert [one.op_type for one in made.graph.node] == ["LayerNormalization"]
    assert_same_as_onnxruntime(made, np.random.default_rng(8))
