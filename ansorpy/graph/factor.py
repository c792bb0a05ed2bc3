"""Recognition of multiplications and divisions by a number, for several passes."""

from __future__ import annotations

from ansorpy.graph.ir import Graph, Node
from ansorpy.graph.ops import Elementwise, Fn
from ansorpy.ir.dtypes import DType

__all__ = ["factor_of", "is_normal"]


def factor_of(graph: Graph, node: Node) -> tuple[str, float] | None:
    """(x, c) where *node* is ``x * c`` or ``x / (1 / c)``, of x's shape, for a normal number *c*.

    None for integers, whose products wrap around.
    """
    fn = node.op.fn if isinstance(node.op, Elementwise) else None
    shape, dtype = graph.types[node.output].shape, graph.types[node.output].dtype
    if fn not in (Fn.MUL, Fn.DIV) or not dtype.is_float:
        return None
    for value, other in [node.inputs] if fn is Fn.DIV else [node.inputs, node.inputs[::-1]]:
        array = graph.constants.get(other)
        if array is None or array.size != 1 or graph.types[value].shape != shape:
            continue
        number = float(array.item())
        factor = 1 / number if fn is Fn.DIV and number != 0 else number
        if is_normal(factor, dtype):
            return value, factor
    return None


def is_normal(number: float, dtype: DType) -> bool:
    """Whether *number* is a normal number of the floating-point type *dtype*."""
    least, most = dtype.normal
    return least <= abs(number) <= most
