"""Absorb the transpose after a product: it writes its result in that order.

    transpose(a b)   -->   a b with permuted axes

A transpose that leaves the last axis in place moves whole rows, and the product can write these
directly to their final positions at no cost.  Nothing else may read the product.  A product of rows
by one matrix stays as it is, because all its rows are merged into one axis.
"""

from __future__ import annotations

from ansorpy.graph.ir import Graph, GraphBuilder, Node
from ansorpy.graph.ops import MatMul, Transpose
from ansorpy.graph.uses import Uses

__all__ = ["absorb_transposes"]


def absorb_transposes(graph: Graph) -> Graph:
    """*graph* with these transposes merged into the products before them."""
    uses = Uses(graph)
    builder = GraphBuilder.like(graph)
    turned: dict[str, Node] = {}
    for node in graph.nodes:
        reader = uses.only_reader(node.output)
        if reader is not None and _may_turn(graph, node, reader):
            turned[reader.output] = node
    for node in graph.nodes:
        if node.output in turned:
            assert isinstance(node.op, Transpose)
            product = turned[node.output]
            builder.add_node(Node(MatMul(node.op.perm), product.inputs, node.output))
        else:
            builder.add_node(node)
    return builder.finish(graph.outputs)


def _may_turn(graph: Graph, product: Node, reader: Node) -> bool:
    if product.op != MatMul() or not isinstance(reader.op, Transpose):
        return False
    perm = reader.op.perm
    return perm[-1] == len(perm) - 1 and len(graph.types[product.inputs[1]].shape) > 2
