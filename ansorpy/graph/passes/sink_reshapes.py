"""Move reshapes past the arithmetic and norms that follow them.

    reshape(x) * c            -->   reshape(x * c')
    layer_norm(reshape(x))    -->   reshape(layer_norm(x))

If no reshape is in between, arithmetic after a product is fused into its kernel, and scales are
folded into its weights.  Other operands, and the axes of a norm, must be expressible before the
reshape: the axes involved must be whole groups of axes in both shapes.  A reshape with other
readers stays.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from math import prod

from ansorpy.graph.ir import Graph, GraphBuilder, Node
from ansorpy.graph.ops import (
    Cast,
    Elementwise,
    LayerNorm,
    Movement,
    Op,
    Pattern,
    Reshape,
    Shape,
)
from ansorpy.graph.ops.base import runs
from ansorpy.ir.extents import AnyExtent, most

__all__ = ["sink_reshapes"]


def sink_reshapes(graph: Graph) -> Graph:
    """*graph* with reshapes moved after the arithmetic and the norms that follow them."""
    return _Sinker(graph).run()


class _Sinker:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.builder = GraphBuilder.like(graph)
        self.readers = graph.consumers()
        self.producers = graph.producers()
        self.results = {output.value for output in graph.outputs}
        self.sources: dict[str, str] = {}
        """The value that each reshaped value was reshaped from, which is not itself a reshape."""
        self.of_products: set[str] = set()
        """Products, norms, and arithmetic on one of them that has no other readers."""

    def run(self) -> Graph:
        same: dict[str, str] = {}
        for node in self.graph.nodes:
            if self._is_of_product(node):
                self.of_products.add(node.output)
            inputs = tuple(same.get(i, i) for i in node.inputs)
            same[node.output] = self._emit(node, inputs)
        return self.builder.finish(
            replace(o, value=same.get(o.value, o.value)) for o in self.graph.outputs
        )

    def _emit(self, node: Node, inputs: tuple[str, ...]) -> str:
        """Emit *node* on *inputs*; return the name of its value or of an equal one."""
        found = self._before(node, inputs)
        if found is not None:
            value = self.builder.emit(*found, f"{node.output}.before")
        elif isinstance(node.op, Reshape) and inputs[0] not in self.builder.constants:
            value = self.sources.get(inputs[0], inputs[0])
        else:
            self.builder.add_node(replace(node, inputs=inputs))
            return node.output
        shape = self.graph.types[node.output].shape
        if self._shape(value) == shape:
            return value
        self.builder.add_node(Node(Reshape(shape), (value,), node.output))
        self.sources[node.output] = value
        return node.output

    def _before(self, node: Node, inputs: tuple[str, ...]) -> tuple[Op, list[str]] | None:
        """*node*'s operator and operands before an operand's reshape; None if impossible."""
        op = node.op
        for given, value in zip(node.inputs, inputs, strict=True):
            if value not in self.sources or not self._may_sink(given, op):
                continue
            before, after = self._shape(self.sources[value]), self._shape(value)
            if isinstance(op, LayerNorm):
                return self._norm(op, value)
            if any(self._holds(i, given) for i in node.inputs if i != given):
                continue
            shapes = [_followed(self._shape(i), before, after) for i in inputs]
            wanted = [shape for shape in shapes if shape is not None]
            if len(wanted) == len(inputs):
                return op, [self._seen(i, shape) for i, shape in zip(inputs, wanted, strict=True)]
        return None

    def _norm(self, op: LayerNorm, value: str) -> tuple[Op, list[str]] | None:
        """A norm before the reshape, or before the part of it that merges axes."""
        source, shape = self.sources[value], self._shape(value)
        axes = _axes(op.axes, self._shape(source), shape)
        if axes is None:
            split = _split(self._shape(source), shape)
            axes = None if split is None else _axes(op.axes, split, shape)
            if split is None or axes is None:
                return None
            source = self.builder.emit(Reshape(split), (source,), f"{value}.split")
        return replace(op, axes=axes), [source]

    def _may_sink(self, value: str, op: Op) -> bool:
        """True when only arithmetic reads the reshaped *value*, so that the reshape may move.

        There may be several readers if they form one activation after a product, as the product's
        kernel takes them all.
        """
        readers = self.readers[value]
        if value in self.results or not isinstance(op, Elementwise | Cast | LayerNorm):
            return False
        if len(readers) == 1:
            return True
        return value in self.of_products and all(isinstance(r.op, Elementwise) for r in readers)

    def _is_of_product(self, node: Node) -> bool:
        return node.op.pattern is Pattern.COMPLEX or (
            isinstance(node.op, Elementwise | Reshape)
            and any(len(self.readers[i]) == 1 and i in self.of_products for i in node.inputs)
        )

    def _holds(self, other: str, value: str) -> bool:
        """True when operand *other* keeps the arithmetic after the reshape that makes *value*.

        A kernel can read *other* through a movement, but not also through a reshape.  The kernel of
        a product takes the arithmetic after it even if the other operand is a movement.
        """
        node = self.producers.get(other)
        if node is None or isinstance(node.op, Reshape):
            return False
        before: Node | None = self.producers[value]
        if before is not None and isinstance(before.op, Reshape):
            before = self.producers.get(before.inputs[0])
        is_moved = before is None or isinstance(before.op, Movement)
        return isinstance(node.op, Movement) or (is_moved and node.op.pattern is Pattern.COMPLEX)

    def _seen(self, value: str, shape: Shape) -> str:
        """*value* with *shape*, without a new reshape if it or its source has that shape."""
        source = self.sources.get(value, value)
        for held in (value, source):
            if self._shape(held) == shape:
                return held
        return self.builder.emit(Reshape(shape), (source,), f"{value}.before")

    def _shape(self, value: str) -> Shape:
        return self.builder.types[value].shape


def _followed(own: Shape, before: Shape, after: Shape) -> Shape | None:
    """The shape before the reshape of an operand of shape *own* that broadcasts to *after*.

    None if there is no such shape.
    """
    if len(own) > len(after):
        return None
    full = (1,) * (len(after) - len(own)) + own
    shape = [1] * len(before)
    for first, second in runs(before, after):
        extents = [full[d] for d in second]
        if all(e == 1 for e in extents):
            continue
        if extents != [after[d] for d in second]:
            return None
        for d in first:
            shape[d] = before[d]
    return tuple(shape)


def _split(before: Shape, after: Shape) -> Shape | None:
    """The shape with fewest axes whose merges give both shapes; None if there is none."""
    strides: set[AnyExtent] = {1}
    for shape in (before, after):
        strides |= {prod(shape[d:]) for d in range(len(shape))}
    places = sorted(strides, key=most, reverse=True)
    if any(large % small != 0 for large, small in pairwise(places)):
        return None
    return tuple(large // small for large, small in pairwise(places))


def _axes(axes: Collection[int], before: Shape, after: Shape) -> Shape | None:
    """The axes of *before* that become *axes* of *after*; None if they are not whole groups."""
    found: list[int] = []
    for first, second in runs(before, after):
        inside = [d in axes for d in second if after[d] != 1]
        if any(inside) and not all(inside):
            return None
        found += [d for d in first if any(inside)]
    return tuple(found) or None
