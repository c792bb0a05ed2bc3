"""The onnx package's ``light`` networks, with seeded random weights where asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper

__all__ = ["LIGHT", "light_model"]

_FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
LIGHT = tuple(sorted(path.stem.removeprefix("light_") for path in _FOLDER.glob("light_*.onnx")))


def light_model(name: str, seed: int | None = None) -> ModelProto:
    """One light model; with *seed*, weights are N(0, 2/fan_in), biases N(0, 0.1^2), and
    batch-norm scales and variances U(0.5, 1.5)."""
    model = onnx.load(str(_FOLDER / f"light_{name}.onnx"))
    if seed is None:
        return model
    rng = np.random.default_rng(seed)
    graph = model.graph
    shapes = {t.name: tuple(numpy_helper.to_array(t)) for t in graph.initializer}
    positive = {n.input[i] for n in graph.node if n.op_type == "BatchNormalization" for i in (1, 4)}
    kept = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = tuple(int(e) for e in shapes[node.input[0]])
        if node.output[0] in positive:
            array = rng.uniform(0.5, 1.5, shape)
        elif len(shape) > 1:
            array = rng.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape)
        else:
            array = rng.normal(0, 0.1, shape)
        graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), node.output[0]))
    del graph.node[:]
    graph.node.extend(kept)
    inputs = [i for i in graph.input if i.name not in {t.name for t in graph.initializer}]
    del graph.input[:]
    graph.input.extend(inputs)
    model.ir_version = 4  # from here on initializers are constants, not defaults of inputs
    return model
