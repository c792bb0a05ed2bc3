"""Give every reader of a value that follows from sizes its own copy, in the shape that it reads.

reshape(iota)                          -->   iota, in that shape
iota, read by several nodes            -->   an iota for each of them

So it is computed by its readers, and never stored.
"""

from __future__ import annotations

from dataclasses import replace

from ansorpy.graph.ir import Graph, GraphBuilder, Node
from ansorpy.graph.ops import Reshape
from ansorpy.graph.ops.sizes import SizesOp

__all__ = ["repeat_sizes"]


def repeat_sizes(graph: Graph) -> Graph:
    """*graph* where each operator without operands has one reader, or is an output."""
    held: dict[str, SizesOp] = {}
    builder = GraphBuilder.like(graph)
    outputs = {output.value for output in graph.outputs}
    for node in graph.nodes:
        op = node.op
        if isinstance(op, Reshape) and node.inputs[0] in held:
            op = replace(held[node.inputs[0]], shape=op.shape)
        if isinstance(op, SizesOp):
            held[node.output] = op
            if node.output in outputs:
                builder.add_node(Node(op, (), node.output))
            continue
        inputs = tuple(
            builder.emit(held[i], (), f"{i}.own") if i in held else i for i in node.inputs
        )
        builder.add_node(replace(node, inputs=inputs))
    return builder.finish(graph.outputs)
