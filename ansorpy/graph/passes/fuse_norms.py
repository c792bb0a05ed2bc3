"""Fuse normalisations that exporters write as several small operators.

    d / sqrt(mean(d ** 2) + e),  d = x - mean(x)   -->   layer_norm(x)
    x / sqrt(mean(x ** 2) + e)                     -->   layer_norm(x), not centred

``d ** 2`` may also be ``d * d``, and the quotient may be a product with the reciprocal.  A mean is
a sum times the reciprocal of its count; for 16-bit floats it is rounded, since their sum is
float32.  Parts that are also read elsewhere remain.
"""

from __future__ import annotations

import math

from ansorpy.graph.ir import Graph, GraphBuilder, Node
from ansorpy.graph.ops import Cast, Elementwise, Fn, LayerNorm, Reduce, ReduceKind, Shape

__all__ = ["fuse_norms"]

_TOLERANCE = 1e-5
"""Relative tolerance of a mean's factor, as exporters round 1 / n to float32."""


def fuse_norms(graph: Graph) -> Graph:
    """*graph* with each such group of operators as one operator."""
    builder = GraphBuilder.like(graph)
    finder = _Finder(graph)
    for node in graph.nodes:
        found = finder.norm(node)
        builder.add_node(node if found is None else Node(found[0], (found[1],), node.output))
    return builder.finish(graph.outputs)


class _Finder:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.producers = graph.producers()

    def norm(self, node: Node) -> tuple[LayerNorm, str] | None:
        """(norm, operand) of the norm that ends in *node*; None if there is none."""
        quotient = self._quotient(node)
        if quotient is None:
            return None
        x, root = quotient
        variance = self._operands(root, Fn.SQRT)
        shifted = variance and self._with_scalar(variance[0], Fn.ADD)
        squares = shifted and self._mean(shifted[0])
        if not shifted or not squares or not self._is_square(squares[0], x):
            return None
        axes = squares[1]
        difference = self._operands(x, Fn.SUB)
        if difference is not None and self._mean(difference[1]) == (difference[0], axes):
            return LayerNorm(axes, shifted[1]), difference[0]
        return LayerNorm(axes, shifted[1], centred=False), x

    def _quotient(self, node: Node) -> tuple[str, str] | None:
        """(dividend, divisor) of a division or of a product with a reciprocal."""
        if node.op == Elementwise(Fn.DIV):
            return node.inputs[0], node.inputs[1]
        if node.op == Elementwise(Fn.MUL):
            for x, y in (node.inputs, node.inputs[::-1]):
                divisor = self._operands(y, Fn.RECIPROCAL)
                if divisor is not None:
                    return x, divisor[0]
        return None

    def _mean(self, value: str) -> tuple[str, Shape] | None:
        """(operand, axes) of a mean over whole axes, which are kept with extent one."""
        scaled = self._with_scalar(self._before_rounding(value), Fn.MUL)
        total = scaled and self.producers.get(self._before_rounding(scaled[0]))
        if not scaled or not total or not isinstance(total.op, Reduce):
            return None
        operand, op = total.inputs[0], total.op
        count = math.prod(self.graph.types[operand].shape[a] for a in op.axes)
        is_mean = isinstance(count, int) and math.isclose(
            scaled[1] * count, 1.0, rel_tol=_TOLERANCE
        )
        if op.kind is not ReduceKind.SUM or not op.keepdims or not is_mean:
            return None
        return operand, op.axes

    def _before_rounding(self, value: str) -> str:
        """The float32 value that a 16-bit *value* was rounded from, otherwise *value*."""
        node, types = self.producers.get(value), self.graph.types
        if node is None or not isinstance(node.op, Cast):
            return value
        (source,) = node.inputs
        return source if types[source].dtype is types[value].dtype.of_sums else value

    def _is_square(self, value: str, x: str) -> bool:
        power = self._with_scalar(value, Fn.POW)
        return power == (x, 2.0) or self._operands(value, Fn.MUL) == (x, x)

    def _operands(self, value: str, fn: Fn) -> tuple[str, ...] | None:
        """The inputs of the node that computes *value*, if that is *fn*."""
        node = self.producers.get(value)
        return node.inputs if node is not None and node.op == Elementwise(fn) else None

    def _with_scalar(self, value: str, fn: Fn) -> tuple[str, float] | None:
        """(operand, number) of *fn* with a constant of one element; ``ADD`` and ``MUL`` commute."""
        inputs = self._operands(value, fn)
        if inputs is None:
            return None
        for x, c in (inputs, inputs[::-1])[: 1 if fn is Fn.POW else 2]:
            array = self.graph.constants.get(c)
            if array is not None and array.size == 1:
                return x, float(array.item())
        return None
