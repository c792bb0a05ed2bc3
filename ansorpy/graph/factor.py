"""Recognition of multiplications and divisions by a number, for several passes."""

from __future__ import annotations

import numpy as np

from ansorpy.graph.ir import Graph, Node
from ansorpy.graph.ops import Elementwise, Fn

__all__ = ["factor_of"]


def factor_of(graph: Graph, node: Node) -> tuple[str, float] | None:
    """(x, c) where *node* is ``x * c`` or ``x / (1 / c)``, of x's shape, for a number *c* not 0."""
    fn = node.op.fn if isinstance(node.op, Elementwise) else None
    shape, dtype = graph.types[node.output].shape, graph.types[node.output].dtype
    if fn not in (Fn.MUL, Fn.DIV) or (fn is Fn.DIV and not dtype.is_float):
        return None
    for value, other in [node.inputs] if fn is Fn.DIV else [node.inputs, node.inputs[::-1]]:
        array = graph.constants.get(other)
        if array is None or array.size != 1 or graph.types[value].shape != shape:
            continue
        number = float(np.asarray(array).item())
        if number != 0 and np.isfinite(number):
            return value, 1 / number if fn is Fn.DIV else number
    return None
