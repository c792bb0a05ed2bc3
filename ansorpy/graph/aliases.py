"""Outputs that continue an input in its own memory, as a decoder's caches do.

    present = concat(past, new)   -->   present = extend(past, new)

Both tensors have the strides of the memory's capacity.  Where rows of several axes lie in turns,
this is a further dimension, of which a call states the size; tensors that grow along equal extents
have the same capacity.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ansorpy.aliases import matching_pairs
from ansorpy.errors import UsageError
from ansorpy.graph.ir import Graph, Node
from ansorpy.graph.ops import Concat, Extend, Reshape, Shape, Slice
from ansorpy.graph.uses import Uses
from ansorpy.ir.alias import Alias
from ansorpy.ir.extents import Symbolic, least, most, prod_of
from ansorpy.ir.strides import reshaped
from ansorpy.ir.symbols import Dim
from ansorpy.size_ranges import SizeRange

__all__ = ["aliases_in", "capacities_in", "fresh", "with_aliases", "with_own_parts"]


def with_aliases(graph: Graph, aliases: Mapping[str, str]) -> Graph:
    """*graph*, as it was imported, where outputs share the memory of inputs.

    Args:
        aliases: The input of each output, by name; patterns stand for several.

    Raises:
        UsageError: A name is unknown, or an output does not continue its input.
    """
    values = {output.name: output.value for output in graph.outputs}
    pairs = matching_pairs(aliases, list(values), graph.inputs)
    made: dict[str, Node] = {}
    producers = graph.producers()
    for output, given in pairs.items():
        node = producers.get(values[output])
        problem = _problem(graph, node, given)
        if problem:
            raise UsageError(
                f"output {output!r} cannot share the memory of input {given!r}: {problem}",
                hint="pair an output with the input that is the first operand of the Concat that "
                "computes it",
            )
        assert node is not None and isinstance(node.op, Concat)
        axis = node.op.axis % len(graph.types[given].shape)
        capacity = _capacity(graph.types[node.output].shape, axis)
        made[node.output] = replace(node, op=Extend(axis, capacity))
    if not made:
        return graph
    return replace(graph, nodes=tuple(made.get(node.output, node) for node in graph.nodes))


def _problem(graph: Graph, node: Node | None, given: str) -> str:
    """Why the result of *node* cannot continue the input *given*; empty if it can."""
    if node is None:
        return "no operator computes it"
    if not isinstance(node.op, Concat):
        return f"it is the result of {node.op.label}, which does not append to the input"
    if node.inputs[0] != given:
        is_part = given in node.inputs
        return "other parts come before it" if is_part else "it is no part of that output"
    if node.inputs.count(given) > 1:
        return "it is several parts of that output"
    if sum(output.value == node.output for output in graph.outputs) > 1:
        return "another output has the same value"
    return ""


def _capacity(shape: Shape, axis: int) -> Dim | None:
    """The extent along *axis* of the memory of an output of this *shape*, if a call states it."""
    total = shape[axis]
    if not isinstance(total, Symbolic) or prod_of(shape[:axis]) == 1:
        return None
    return Dim(f"capacity({total})", least(total), most(total))


def aliases_in(graph: Graph) -> tuple[Alias, ...]:
    """The outputs of *graph* that share the memory of an input, in its order."""
    found = []
    for node in graph.nodes:
        if isinstance(node.op, Extend):
            values = [output.value for output in graph.outputs]
            given, made = graph.inputs.index(node.inputs[0]), values.index(node.output)
            found.append(Alias(given, made, node.op.axis, node.op.capacity))
    return tuple(sorted(found, key=lambda alias: alias.output))


def capacities_in(graph: Graph) -> dict[Dim, SizeRange]:
    """The capacities that calls state; the largest is the usual one."""
    dims = [alias.capacity for alias in aliases_in(graph) if alias.capacity is not None]
    return {dim: SizeRange(dim.low, dim.high, calls=((dim.high, 1),)) for dim in dims}


def with_own_parts(graph: Graph) -> Graph:
    """*graph* where each operand that continues an input can be written to the place it has there.

    Other operands are copied first: inputs, constants, what is read elsewhere, too, and what has
    other rows than that memory.
    """
    uses = Uses(graph)
    nodes: list[Node] = []
    types = dict(graph.types)
    for node in graph.nodes:
        if isinstance(node.op, Extend):
            first, *others = node.inputs
            for number, value in enumerate(others, start=1):
                if not _is_own(graph, uses, node, value):
                    copy = fresh(f"{value}.row", types)
                    types[copy] = types[value]
                    nodes.append(Node(_whole(types[value].shape), (value,), copy))
                    others[number - 1] = copy
            node = replace(node, inputs=(first, *others))
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes), types=types)


def fresh(name: str, taken: Collection[str]) -> str:
    """*name* followed by as many primes as it takes to differ from all names in *taken*."""
    while name in taken:
        name += "'"
    return name


def _is_own(graph: Graph, uses: Uses, node: Node, value: str) -> bool:
    """Whether the kernel that computes *value* can write it as a part of the result of *node*."""
    assert isinstance(node.op, Extend)
    shape, strides = graph.types[value].shape, node.op.strides(graph.types[node.output].shape)
    while (producer := uses.private(value)) is not None:
        found = reshaped(shape, strides, graph.types[value].shape)
        if found is None or (found and found[-1] != 1) or producer.op.bodies:
            return False
        if not isinstance(producer.op, Reshape):
            return True
        (value,) = producer.inputs
    return False


def _whole(shape: Shape) -> Slice:
    return Slice((0,) * len(shape), shape, (1,) * len(shape))
