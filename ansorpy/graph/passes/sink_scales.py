"""Move scales from the operands of a product of two computed matrices to its result.

    (q * a) (k * b)   -->   (q k) * (a * b)

The factor is a number, which attention and every kernel's epilogue apply at no cost.  Before the
product, it costs a kernel, or arithmetic on every read of the operand.  Transposes and reshapes may
be in between.  In half precision, scales stay where they are, as the product might overflow.  So
does a scale whose product with the other one is out of range.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ansorpy.graph.factor import factor_of, is_normal
from ansorpy.graph.ir import Graph, GraphBuilder, Node
from ansorpy.graph.ops import Elementwise, Fn, MatMul, Reshape, Transpose
from ansorpy.graph.uses import Uses
from ansorpy.ir.dtypes import DType

__all__ = ["sink_scales"]


def sink_scales(graph: Graph) -> Graph:
    """*graph* with scales by numbers moved from operands of products to their results."""
    finder = _Finder(graph)
    factors: dict[str, float] = {}
    dropped: dict[str, str] = {}
    for node in graph.nodes:
        if isinstance(node.op, MatMul) and not any(i in graph.constants for i in node.inputs):
            for scale in filter(None, map(finder.scale_of, node.inputs)):
                value, factor = finder.factor(scale) or ("", 1.0)
                factor *= factors.get(node.output, 1.0)
                if is_normal(factor, graph.types[node.output].dtype):
                    dropped[scale.output] = value
                    factors[node.output] = factor
    builder = GraphBuilder.like(graph)
    for node in graph.nodes:
        if node.output in dropped:
            continue
        inputs = tuple(_origin(i, dropped) for i in node.inputs)
        if node.output not in factors:
            builder.add_node(replace(node, inputs=inputs))
            continue
        product = builder.emit(node.op, inputs, f"{node.output}.unscaled")
        number = np.asarray(factors[node.output], graph.types[node.output].dtype.numpy)
        held = builder.add_constant(f"{node.output}.factor", number)
        builder.add_node(Node(Elementwise(Fn.MUL), (product, held), node.output))
    return builder.finish(graph.outputs)


def _origin(value: str, dropped: dict[str, str]) -> str:
    while value in dropped:
        value = dropped[value]
    return value


class _Finder:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.uses = Uses(graph)

    def scale_of(self, operand: str) -> Node | None:
        """The scaling that computes *operand*, apart from movements, if nothing else reads it."""
        before = self.uses.private(operand)
        while before is not None and isinstance(before.op, Transpose | Reshape):
            before = self.uses.private(before.inputs[0])
        return before if before is not None and self.factor(before) is not None else None

    def factor(self, node: Node) -> tuple[str, float] | None:
        """(x, c) where *node* scales x by a number *c*, unless in half precision."""
        is_half = self.graph.types[node.output].dtype is DType.FLOAT16
        return None if is_half else factor_of(self.graph, node)
