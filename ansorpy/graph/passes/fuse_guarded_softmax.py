"""Fuse a softmax with the operators that replace its NaN rows by 0.

    where(is_nan(softmax(x)), 0, softmax(x))   -->   guarded softmax(x)

Exporters write it around the softmax of attention, where a mask may make all scores ``-inf``.
"""

from __future__ import annotations

from dataclasses import replace

from ansorpy.graph.ir import Graph, GraphBuilder, Node
from ansorpy.graph.ops import Elementwise, Fn, Softmax

__all__ = ["fuse_guarded_softmax"]


def fuse_guarded_softmax(graph: Graph) -> Graph:
    """*graph* with each such group of operators as one operator."""
    producers = graph.producers()
    builder = GraphBuilder.like(graph)
    for node in graph.nodes:
        softmax = _guarded(graph, producers, node)
        if softmax is None or not isinstance(softmax.op, Softmax):
            builder.add_node(node)
        else:
            op = replace(softmax.op, guarded=True)
            builder.add_node(replace(softmax, op=op, output=node.output))
    return builder.finish(graph.outputs)


def _guarded(graph: Graph, producers: dict[str, Node], node: Node) -> Node | None:
    """The softmax that *node* guards; other readers keep the unguarded softmax."""
    if node.op != Elementwise(Fn.WHERE):
        return None
    condition, zero, value = node.inputs
    test, nothing = producers.get(condition), graph.constants.get(zero)
    is_guard = (
        test is not None
        and test.op == Elementwise(Fn.IS_NAN)
        and test.inputs == (value,)
        and nothing is not None
        and not nothing.any()
        and graph.types[node.output] == graph.types[value]
    )
    return producers.get(value) if is_guard else None
