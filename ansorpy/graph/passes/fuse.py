"""Which nodes become one kernel: fusion along immediate post-dominators.

A node and its immediate post-dominator may share a kernel if all nodes on paths between them may:
then nothing outside reads a value in between, and no cycle can arise.  There are two steps.  Each
anchor (convolution, product, pool, reduction) takes the elementwise chain after it, later anchors
first.  Then injective nodes join each other, or a later node that can read through them, such as
a reduction or a product.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import networkx as nx

from ansorpy.graph.ir import Graph, Node
from ansorpy.graph.op import Attention, Conv, MatMul, Pattern

__all__ = ["Group", "fuse"]

_EXIT = "\0exit"


@dataclass(frozen=True)
class Group:
    """The nodes of one kernel in topological order; its output is that of the last node."""

    nodes: tuple[Node, ...]
    anchor: Node | None

    @property
    def output(self) -> str:
        return self.nodes[-1].output


def fuse(graph: Graph, views: Collection[str]) -> list[Group]:
    """The groups of *graph*, in an order in which they can run.

    Args:
        views: Values that no kernel computes; their nodes are in no group.
    """
    fuser = _Fuser(graph, views)
    fuser.extend_anchors()
    fuser.join_injective()
    return fuser.groups()


class _Fuser:
    def __init__(self, graph: Graph, views: Collection[str]):
        self.graph = graph
        self.views = views
        self.node_of = graph.producers()
        self.flow: nx.DiGraph[str] = nx.DiGraph()
        self.flow.add_node(_EXIT)
        for node in graph.nodes:
            self.flow.add_node(node.output)
            self.flow.add_edges_from((i, node.output) for i in node.inputs if i in self.node_of)
        self.flow.add_edges_from((o.value, _EXIT) for o in graph.outputs if o.value in self.node_of)
        self.dominator = nx.immediate_dominators(self.flow.reverse(copy=False), _EXIT)
        self.group_of = {name: name for name in self.node_of}
        self.anchors: dict[str, Node] = {}

    def extend_anchors(self) -> None:
        """Let each anchor take the elementwise nodes after it that have its own shape."""
        for node in reversed(self.graph.nodes):
            if node.op.pattern >= Pattern.REDUCTION:
                self.anchors[node.output] = node
                if node.op.pattern is not Pattern.OPAQUE:
                    self._extend(node)

    def _extend(self, anchor: Node) -> None:
        shape = self.graph.types[anchor.output].shape
        current = anchor.output
        while (target := self.dominator[current]) != _EXIT:
            chain = [*self._between(current, target), target]
            if not all(
                self.node_of[name].op.pattern is Pattern.ELEMENTWISE
                and self.group_of[name] == name
                and self.graph.types[name].shape == shape
                for name in chain
            ):
                return
            for name in chain:
                self.group_of[name] = anchor.output
            current = target

    def join_injective(self) -> None:
        """Let free nodes join the group of their post-dominator if it can read through them."""
        for node in self.graph.nodes:
            if not self._is_free(node.output):
                continue
            target = self.dominator[node.output]
            between = [] if target == _EXIT else self._between(node.output, target)
            if target != _EXIT and all(map(self._is_free, between)) and self._accepts(node, target):
                members = {self.group_of[name] for name in (node.output, *between)}
                wanted = self.group_of[target]
                for name, group in self.group_of.items():
                    if group in members:
                        self.group_of[name] = wanted

    def _is_free(self, name: str) -> bool:
        """True for an elementwise or injective node that no anchor has taken."""
        op = self.node_of[name].op
        return (
            op.pattern <= Pattern.INJECTIVE
            and name not in self.views
            and self.group_of[name] not in self.anchors
        )

    def _accepts(self, node: Node, target: str) -> bool:
        if self._is_free(target):
            return True
        anchor = self.anchors.get(target)
        if anchor is None or anchor.op.pattern is Pattern.OPAQUE:
            return False
        members = [n for n, g in self.group_of.items() if g == self.group_of[node.output]]
        if node.output in anchor.inputs[1:]:
            # Products and attention pack each operand in the order in which their tiles read it.
            is_moved = all(self.node_of[n].op.moves_only for n in members)
            return is_moved and isinstance(anchor.op, Attention | MatMul)
        # A movement is free as an index map.  Arithmetic is done once for each element in a
        # reduction, and before a product if it gets a stage of its own; windows would repeat it.
        once = anchor.op.pattern is Pattern.REDUCTION or isinstance(anchor.op, Conv | MatMul)
        return all(
            self.node_of[n].op.moves_only
            or (once and self.node_of[n].op.pattern is Pattern.ELEMENTWISE)
            for n in members
        )

    def _between(self, start: str, end: str) -> list[str]:
        """Nodes on paths from *start* to *end*, both excluded, in topological order.

        *end* post-dominates *start*, so following edges from *start* cannot miss it.
        """
        seen: dict[str, None] = {}
        stack = [start]
        while stack:
            for successor in self.flow.successors(stack.pop()):
                if successor != end and successor not in seen:
                    seen[successor] = None
                    stack.append(successor)
        return [n.output for n in self.graph.nodes if n.output in seen] if seen else []

    def groups(self) -> list[Group]:
        members: dict[str, list[Node]] = {}
        for node in self.graph.nodes:
            if node.output not in self.views:
                members.setdefault(self.group_of[node.output], []).append(node)
        order = {node.output: place for place, node in enumerate(self.graph.nodes)}
        found = [Group(tuple(nodes), self.anchors.get(key)) for key, nodes in members.items()]
        return sorted(found, key=lambda group: order[group.output])
