"""The measured networks as ONNX files: two with almost no arithmetic, and real ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.zoo.suite import ALL, Entry

__all__ = ["NETWORKS", "SMALL", "model_file"]

_WIDTH = 16
SMALL = {"fused": ("MatMul", "Add", "Relu"), "apart": ("MatMul", "Softmax", "MatMul")}
"""Networks of three operators, which form one task in the first and several in the second."""
NETWORKS = ALL


def model_file(name: str, folder: Path) -> Path:
    """The network *name* (of ``SMALL`` or ``NETWORKS``) as a file in *folder*."""
    if name in NETWORKS:
        return Entry.parse(name).file(0, folder)
    path = folder / f"{name}.onnx"
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(_small(SMALL[name]), path)
    return path


def _small(operators: tuple[str, ...]) -> onnx.ModelProto:
    """A network of *operators* in sequence, on a row of 16 numbers."""
    rng = np.random.default_rng(0)
    nodes, constants, value = [], [], "x"
    for number, operator in enumerate(operators):
        inputs = [value]
        if operator in ("MatMul", "Add"):
            shape = (_WIDTH, _WIDTH) if operator == "MatMul" else (_WIDTH,)
            array = rng.standard_normal(shape, dtype=np.float32)
            constants.append(numpy_helper.from_array(array, f"w{number}"))
            inputs.append(f"w{number}")
        value = f"y{number}"
        nodes.append(helper.make_node(operator, inputs, [value]))
    ends = (helper.make_tensor_value_info(n, TensorProto.FLOAT, (1, _WIDTH)) for n in ("x", value))
    x, y = ends
    graph = helper.make_graph(nodes, "small", [x], [y], constants)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)
