"""Pool before a pointwise convolution instead of after it.

    sum_pool(conv1x1(x) + b)   -->   conv1x1(sum_pool(x)) + b * taps

Both are linear, so they commute; the convolution then has fewer pixels.  This applies only to sums
over windows without padding or overlap, of a convolution that nothing else reads.  It excludes
16-bit floats, whose sums have a wider type than the convolution accepts.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from ansorpy.graph.ir import Array, Graph, GraphBuilder, Node
from ansorpy.graph.ops import Conv, Elementwise, Fn, Pool, ReduceKind
from ansorpy.graph.uses import Uses

__all__ = ["pool_first"]


def pool_first(graph: Graph) -> Graph:
    """*graph* (channels first) with these sums moved before pointwise convolutions."""
    finder = _Finder(graph)
    builder = GraphBuilder.like(graph)
    for node in graph.nodes:
        product = finder.product_before(node)
        if product is None:
            builder.add_node(node)
            continue
        data, weight = product.conv.inputs
        value = builder.emit(node.op, (data,), f"{node.output}.pooled")
        if product.bias is None:
            builder.add_node(Node(product.conv.op, (value, weight), node.output))
            continue
        value = builder.emit(product.conv.op, (value, weight), f"{node.output}.product")
        assert isinstance(node.op, Pool)
        total = product.bias.astype(np.float64) * prod(node.op.kernel)
        bias = builder.add_constant(f"{node.output}.bias", total.astype(product.bias.dtype))
        builder.add_node(Node(Elementwise(Fn.ADD), (value, bias), node.output))
    return builder.finish(graph.outputs)


@dataclass(frozen=True)
class _Product:
    conv: Node
    bias: Array | None


class _Finder:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.uses = Uses(graph)

    def product_before(self, node: Node) -> _Product | None:
        """The pointwise convolution that *node* pools, with its bias; None if it has to stay."""
        if not isinstance(node.op, Pool) or not _shrinks(node.op) or self._widens(node):
            return None
        before, bias = self.uses.private(node.inputs[0]), None
        if before is not None and before.op == Elementwise(Fn.ADD):
            rows = [i for i in before.inputs if i in self.graph.constants]
            spatial = [self.graph.types[i].shape[-len(node.op.kernel) :] for i in rows]
            if not rows or any(extent != 1 for extent in spatial[0]):
                return None
            (value,) = (i for i in before.inputs if i not in rows)
            before, bias = self.uses.private(value), self.graph.constants[rows[0]]
        if before is None or not isinstance(before.op, Conv):
            return None
        kernel = self.graph.types[before.inputs[1]].shape[2:]
        return _Product(before, bias) if before.op.is_pointwise(kernel) else None

    def _widens(self, node: Node) -> bool:
        return self.graph.types[node.output].dtype is not self.graph.types[node.inputs[0]].dtype


def _shrinks(op: Pool) -> bool:
    """True for sums over windows that do not overlap and read no padding."""
    apart = op.kernel == op.strides and op.dilations == (1,) * len(op.kernel)
    padded = any(op.pads_begin) or any(op.pads_end)
    return op.kind is ReduceKind.SUM and apart and not padded and prod(op.strides) > 1
