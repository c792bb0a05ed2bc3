"""Small networks for the notebooks, with random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, quantize_static

__all__ = ["quantise", "write_classifier"]

_SHAPE = (1, 3, 32, 32)


def write_classifier(path: Path, seed: int = 0) -> Path:
    """Write a network of two convolutions and a classifier of 10 classes to *path*."""
    rng = np.random.default_rng(seed)
    shapes = {"w1": (16, 3, 3, 3), "w2": (32, 16, 3, 3), "w3": (32, 10)}
    weights = [
        numpy_helper.from_array((rng.standard_normal(shape) / 5).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node("Conv", ["image", "w1"], ["a"], "first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], "relu1"),
        helper.make_node("Conv", ["b", "w2"], ["c"], "second", pads=[1] * 4, strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["d"], "relu2"),
        helper.make_node("GlobalAveragePool", ["d"], ["e"], "pool"),
        helper.make_node("Flatten", ["e"], ["f"], "flat"),
        helper.make_node("MatMul", ["f", "w3"], ["scores"], "classify"),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, _SHAPE)
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, (1, 10))
    graph = helper.make_graph(nodes, "classifier", [image], [scores], weights)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path


class _RandomImages(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self._images = iter(rng.standard_normal((8, *_SHAPE), dtype=np.float32))

    def get_next(self) -> dict[str, object] | None:
        image = next(self._images, None)
        return None if image is None else {"image": image}


def quantise(network: Path, path: Path) -> Path:
    """Write *network* with 8-bit weights and activations to *path*, as onnxruntime quantises it."""
    quantize_static(network, path, _RandomImages())
    return path
