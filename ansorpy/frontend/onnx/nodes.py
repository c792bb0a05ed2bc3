"""The nodes of ONNX graphs: those inside bodies, and those that outputs depend on."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from onnx import GraphProto, NodeProto

__all__ = [
    "STANDARD", "all_nodes", "all_of", "bodies_of", "initializer_names", "names_read", "needed",
    "signature",
]  # fmt: skip

STANDARD = ("", "ai.onnx")
"""Names of the domain of ONNX's own operators."""


def all_nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """The nodes of *graph*, including those inside its nodes' subgraphs."""
    return all_of(graph.node)


def all_of(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """*nodes* and those inside their subgraphs."""
    for node in nodes:
        yield node
        for body in bodies_of(node):
            yield from all_of(body.node)


def bodies_of(node: NodeProto) -> Iterator[GraphProto]:
    """The subgraphs of *node*."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def needed(graph: GraphProto) -> tuple[list[NodeProto], frozenset[str]]:
    """The nodes that the outputs depend on, in order, and all names used by them or by outputs."""
    used = {output.name for output in graph.output}
    nodes: list[NodeProto] = []
    for node in reversed(graph.node):
        if not used.isdisjoint(node.output):
            nodes.append(node)
            used.update(names_read(node))
    return nodes[::-1], frozenset(used)


def names_read(node: NodeProto) -> Iterator[str]:
    """The names that *node* reads: its operands, and what its subgraphs read from outside."""
    yield from filter(None, node.input)
    for body in bodies_of(node):
        own = _defined(body)
        yield from (output.name for output in body.output if output.name not in own)
        for inner in body.node:
            yield from (name for name in names_read(inner) if name not in own)


def initializer_names(graph: GraphProto) -> set[str]:
    """The names of the constants that *graph* holds, sparse ones among them."""
    sparse = (tensor.values.name for tensor in graph.sparse_initializer)
    return {*(tensor.name for tensor in graph.initializer), *sparse}


def _defined(body: GraphProto) -> set[str]:
    """The names that *body* itself gives values: outside, they may stand for others."""
    made = (name for node in body.node for name in node.output)
    return {*(info.name for info in body.input), *initializer_names(body), *made}


def signature(node: NodeProto, values: Sequence[str]) -> Hashable:
    """What is equal for nodes that compute the same of their operands *values*."""
    attributes = sorted(attribute.SerializeToString() for attribute in node.attribute)
    return node.domain, node.op_type, tuple(attributes), tuple(values)
