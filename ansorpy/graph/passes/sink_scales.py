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
    uses = Uses(graph)
    factors: dict[str, float] = {}
    dropped: dict[str, str] = {}
    for node in graph.nodes:
        if isinstance(node.op, MatMul) and not any(i in graph.constants for i in node.inputs):
            scalings = (_scaling(graph, uses, operand) for operand in node.inputs)
            for scaled, value, scale in filter(None, scalings):
                factor = scale * factors.get(node.output, 1.0)
                if is_normal(factor, graph.types[node.output].dtype):
                    dropped[scaled] = value
                    factors[node.output] = factor
    builder = GraphBuilder.like(graph)
    for node in graph.nodes:
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


def _scaling(graph: Graph, uses: Uses, operand: str) -> tuple[str, str, float] | None:
    """(x * c, x, c): the scaling that computes *operand*, apart from movements.

    None if something else reads it, or in half precision.
    """
    before = uses.private(operand)
    while before is not None and isinstance(before.op, Transpose | Reshape):
        before = uses.private(before.inputs[0])
    if before is None or graph.types[before.output].dtype is DType.FLOAT16:
        return None
    found = factor_of(graph, before)
    return None if found is None else (before.output, *found)
