"""Compute what follows from constants of narrow types, unless its readers can do so themselves.

A matrix product reads its second operand as it packs it, and a gather reads few rows: both convert
packed integers, or codes of floats, in registers.  Other readers would convert them many times, so
they get constants of the type in which they compute.
"""

from __future__ import annotations

from dataclasses import replace

from ansorpy.graph.constants import constant_values
from ansorpy.graph.ir import Array, Graph, GraphBuilder, Node, Output, needed
from ansorpy.graph.ops import Gather, MatMul
from ansorpy.graph.uses import Uses

__all__ = ["expand_constants"]


def expand_constants(graph: Graph) -> Graph:
    """*graph* with constants in place of what is computed from constants alone, where it pays."""
    derived, uses = _derived(graph), Uses(graph)
    wanted = [value for value in derived if _is_wanted(uses, derived, value)]
    if not wanted:
        return graph
    arrays = dict(zip(wanted, _values(graph, derived, wanted), strict=True))
    builder = GraphBuilder.like(graph)
    names: dict[str, str] = {}
    for node in graph.nodes:
        if node.output in arrays:
            names[node.output] = builder.add_constant(f"{node.output}.value", arrays[node.output])
        else:
            builder.add_node(replace(node, inputs=tuple(names.get(i, i) for i in node.inputs)))
    return builder.finish(replace(o, value=names.get(o.value, o.value)) for o in graph.outputs)


def _derived(graph: Graph) -> dict[str, Node]:
    """The nodes that depend on constants alone, and on no dimension."""
    found: dict[str, Node] = {}
    for node in graph.nodes:
        fixed = all(i in graph.constants or i in found for i in node.inputs)
        if node.inputs and fixed and not graph.dims_at(node):
            found[node.output] = node
    return found


def _is_wanted(uses: Uses, derived: dict[str, Node], value: str) -> bool:
    """Whether something other than a derived node reads *value*, and does not convert it itself."""
    readers = [node for node in uses.readers[value] if node.output not in derived]
    return value in uses.results or any(not _converts(node, value) for node in readers)


def _converts(node: Node, value: str) -> bool:
    """Whether *node* reads *value* in an operand that it may compute element by element."""
    place = {MatMul: 1, Gather: 0}.get(type(node.op))
    return place is not None and node.inputs[place] == value and node.inputs.count(value) == 1


def _values(graph: Graph, derived: dict[str, Node], wanted: list[str]) -> list[Array]:
    nodes, read = needed(derived.values(), wanted)
    constants = {name: array for name, array in graph.constants.items() if name in read}
    types = {name: graph.types[name] for name in read}
    outputs = tuple(Output(value, value) for value in wanted)
    return constant_values(Graph((), outputs, tuple(nodes), types, constants))
