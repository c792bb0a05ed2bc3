"""An operator of one's own: a plugin that defines it, and a network that uses it.

python -m examples.custom_operator gated.onnx
ansorpy compile gated.onnx --plugin examples/custom_operator.py --effort none
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import ansorpy as ap


@ap.register_op("com.example", "GatedNorm")
def gated_norm(
    x: ap.Tensor, gate: ap.Tensor | None = None, *, epsilon: float = 1e-5
) -> tuple[ap.Tensor, ap.Tensor]:
    """Rows divided by their root mean square, times the sigmoid of a gate; and these roots."""
    *lead, width = x.shape
    k = ap.reduce_axis(width, name="k")
    total = ap.compute(lead, lambda *i: ap.sum(x[(*i, k)] * x[(*i, k)], axis=k), name="total")
    root = ap.compute(lead, lambda *i: ap.sqrt(total[i] / width + epsilon), name="root")

    def normal(*i: ap.Expr) -> ap.Expr:
        value = x[i] / root[i[:-1]]
        return value if gate is None else value * ap.sigmoid(gate[i])

    return ap.compute(x.shape, normal, name="normal"), root


def network(width: int = 24, seed: int = 0) -> onnx.ModelProto:
    """A layer ``GatedNorm(x w, x)`` for any number of rows."""
    weight = np.random.default_rng(seed).standard_normal((width, width)).astype(np.float32)
    shape: list[str | int | None] = ["rows", width]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("GatedNorm", ["h", "x"], ["y"], domain="com.example", epsilon=0.01),
    ]
    graph = helper.make_graph(nodes, "gated", [x], [y], [numpy_helper.from_array(weight, "w")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def main() -> None:
    """Write the network to the file named on the command line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("output", type=Path)
    onnx.save(network(), parser.parse_args().output)


if __name__ == "__main__":
    main()
