"""The operands of loops by what they are; what passes that move computation out of loops share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ansorpy.graph.emits import EmitsBeside
from ansorpy.graph.ir import Graph, GraphBuilder, Node, Output, needed
from ansorpy.graph.ops import Elementwise
from ansorpy.graph.regions import LoopRegion, Result, with_bodies

__all__ = [
    "LoopParts", "emitted_outside", "invariant_values", "is_counted", "outer", "with_changed_loops",
]  # fmt: skip


class ChangedLoop(Protocol):
    """A loop that computes the same as another one, with fewer or more nodes beside it."""

    def node(self, index: int, name: str) -> Node:
        """The node that gives result number *index* of the other loop the name *name*."""


def with_changed_loops(
    graph: Graph, change: Callable[[GraphBuilder, LoopRegion, Sequence[str]], ChangedLoop]
) -> Graph:
    """*graph* with what *change* makes of each loop and its operands, inner loops first.

    It emits nodes beside the loop with the builder that it gets.
    """
    if not any(isinstance(node.op, Result) for node in graph.nodes):
        return graph
    graph = with_bodies(graph, lambda body: with_changed_loops(body, change))
    builder = GraphBuilder.like(graph)
    loops: dict[LoopRegion, ChangedLoop] = {}
    for node in graph.nodes:
        match node.op:
            case Result(LoopRegion() as region, index):
                if region not in loops:
                    loops[region] = change(builder, region, node.inputs)
                builder.add_node(loops[region].node(index, node.output))
            case _:
                builder.add_node(node)
    return builder.finish(graph.outputs)


@dataclass(frozen=True)
class _Values:
    """The operands of a loop, or the inputs of its body: ``first`` come numbers and conditions."""

    first: tuple[str, ...]
    carried: tuple[str, ...]
    read: tuple[str, ...]
    others: tuple[str, ...]

    @staticmethod
    def of(values: Sequence[str], first: int, region: LoopRegion) -> _Values:
        rows = first + region.carried
        behind, all_ = rows + len(region.read), tuple(values)
        return _Values(all_[:first], all_[first:rows], all_[rows:behind], all_[behind:])

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.first, *self.carried, *self.read, *self.others)


@dataclass(frozen=True)
class LoopParts:
    """The inputs of a loop's body, and the operands that these are, or are rows of."""

    inside: _Values
    outside: _Values

    @staticmethod
    def of(region: LoopRegion, operands: Sequence[str]) -> LoopParts:
        return LoopParts(
            _Values.of(region.body.inputs, 1, region),
            _Values.of(operands, region.has_limit + region.has_start, region),
        )

    @property
    def places(self) -> dict[str, str]:
        """The operands by the inputs of the body that read them, or rows of them."""
        inside, outside = self.inside, self.outside
        rows = zip(inside.read, outside.read, strict=True)
        return {**dict(rows), **dict(zip(inside.others, outside.others, strict=True))}

    def changed(
        self,
        region: LoopRegion,
        outputs: tuple[Output, ...],
        nodes: Sequence[Node],
        read: Collection[str],
        rows: Sequence[str],
        others: Sequence[str],
        more: Mapping[str, tuple[str, bool]],
        written: tuple[bool, ...],
    ) -> tuple[LoopRegion, tuple[str, ...]]:
        """*region* with another body, and its operands.

        Args:
            read: What *nodes* and *outputs* read.
            rows: The inputs of the body that are rows, which may be values that were computed.
            others: Those that are the same in all iterations.
            more: The operands of those that were computed, and whether their last row comes first.
        """
        body = region.body
        inputs = replace(self.inside, read=tuple(rows), others=tuple(others)).all
        held = {name: array for name, array in body.constants.items() if name in read}
        names = {*inputs, *held, *(node.output for node in nodes)}
        types = {name: kind for name, kind in body.types.items() if name in names}
        graph = Graph(inputs, outputs, tuple(nodes), types, held)
        places = {**self.places, **{name: operand for name, (operand, _) in more.items()}}
        ways = dict(zip(self.inside.read, region.read, strict=True))
        ways |= {name: is_last for name, (_, is_last) in more.items()}
        operands = replace(
            self.outside, read=tuple(places[n] for n in rows),
            others=tuple(places[n] for n in others),
        )  # fmt: skip
        made = replace(
            region, body=graph, read=tuple(ways[name] for name in rows), written=written
        )  # fmt: skip
        return made, operands.all


def invariant_values(body: Graph, others: Iterable[str]) -> set[str]:
    """The values of *body* that follow from its constants and its inputs *others*."""
    found = {*body.constants, *others}
    for node in body.nodes:
        if found.issuperset(node.inputs) and not is_counted(body, node):
            found.add(node.output)
    return found


def is_counted(body: Graph, node: Node) -> bool:
    """Whether *node* depends on a size that each iteration counts for itself."""
    return not body.counted_dims.isdisjoint(body.dims_at(node))


def emitted_outside(
    builder: GraphBuilder, body: Graph, parts: LoopParts, wanted: Collection[str]
) -> dict[str, str]:
    """The values outside of the loop that the invariant values *wanted* are, by these."""
    nodes, read = needed(body.nodes, wanted)
    found = parts.places
    for name, array in body.constants.items():
        if name in read:
            found[name] = builder.add_constant(name, array)
    for node in nodes:
        found[node.output] = outer(builder, node, found)
    return found


def outer(builder: GraphBuilder, node: Node, found: Mapping[str, str]) -> str:
    """Emit *node* outside of its loop, where its operands are those that *found* has."""
    values = [found[name] for name in node.inputs]
    if isinstance(node.op, Elementwise):
        emits = EmitsBeside(builder, node.output)
        return emits.apply(node.op.fn, *values, params=node.op.params)
    return builder.emit(node.op, values, node.output)
