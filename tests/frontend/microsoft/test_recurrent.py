"""Recurrent networks with quantized weights beside onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from tests.frontend.microsoft.beside import assert_as_onnxruntime, normal


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("directions", [1, 2])
def test_dynamic_quantize_lstm(directions: int, columns: bool) -> None:
    """States are rounded to a step of their range, so equal ones may differ by that."""
    rng = np.random.default_rng(0)
    hidden, taken = 6, 5
    scales = (directions, 4 * hidden) if columns else (directions,)

    def weights(rows: int) -> np.ndarray:
        return rng.integers(-127, 128, (directions, rows, 4 * hidden)).astype(np.int8)

    operands = {
        "x": normal(0, 4, 3, taken), "w": weights(taken), "r": weights(hidden),
        "b": normal(1, directions, 8 * hidden), "lengths": None, "h": None, "c": None, "p": None,
        "w_scale": rng.uniform(0.002, 0.004, scales).astype(np.float32),
        "w_zero": np.zeros(scales, np.int8),
        "r_scale": rng.uniform(0.002, 0.004, scales).astype(np.float32),
        "r_zero": np.zeros(scales, np.int8),
    }  # fmt: skip
    outputs = dict.fromkeys(("y", "h_last", "c_last"), TensorProto.FLOAT)
    held = [name for name, array in operands.items() if array is not None and name != "x"]
    direction = "bidirectional" if directions == 2 else "forward"
    assert_as_onnxruntime(
        "DynamicQuantizeLSTM", operands, outputs, held, 0.01,
        hidden_size=hidden, direction=direction,
    )  # fmt: skip
