"""Fusion of nodes into kernels along immediate post-dominators.

A node and its immediate post-dominator may share a kernel if all nodes on paths between them may:
then nothing outside reads a value in between, and no cycle can arise.  There are two steps.  Each
anchor (convolution, product, pool, reduction) takes the elementwise chain after it, starting with
the last anchor.  Then injective nodes join each other, or a later node that can read through them,
such as a reduction or a product.

A group's nodes become one expression, as deep as the longest path through them.  The length of
paths is limited, because passes over expressions recurse.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from ansorpy.graph.ir import Graph, Node
from ansorpy.graph.ops import (
    Attention,
    ChosenMatMul,
    Conv,
    Decode,
    MatMul,
    Movement,
    Op,
    Pattern,
    Unpack,
)

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["MOST_CHAINED", "Group", "fuse"]

MOST_CHAINED = 32
"""Maximum number of nodes on a path through a group; if it has an anchor, on either side of it.

A node's function is up to six operators deep (except inverse functions), and a pass recurses
through four calls per operator: 800 of the 1000 calls that Python allows.  Cutting a longer chain
costs one store and one load for every 32 nodes.
"""
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
        import networkx as nx

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
        self.order = {node.output: place for place, node in enumerate(graph.nodes)}
        self.members = {name: [name] for name in self.node_of}
        self.group_of = {name: name for name in self.node_of}
        self.depth = dict.fromkeys(self.node_of, 1)
        """Number of nodes on the longest path in the group to each node, or from its anchor."""
        self.anchors: dict[str, Node] = {}

    def extend_anchors(self) -> None:
        """Let each anchor take the elementwise nodes after it that have its shape."""
        for node in reversed(self.graph.nodes):
            if node.op.pattern >= Pattern.REDUCTION:
                self.anchors[node.output] = node
                if node.op.pattern is not Pattern.OPAQUE:
                    self._extend(node)

    def _extend(self, anchor: Node) -> None:
        shape = self.graph.types[anchor.output].shape

        def extends(name: str) -> bool:
            return (
                self.node_of[name].op.pattern is Pattern.ELEMENTWISE
                and self.group_of[name] == name
                and self.graph.types[name].shape == shape
            )

        current = anchor.output
        while (target := self.dominator[current]) != _EXIT and extends(target):
            depths = self._depths(current, target, extends)
            if depths is None:
                return
            self._join(depths, anchor.output)
            current = target

    def join_injective(self) -> None:
        """Let free nodes join the group of their post-dominator if it can read through them."""
        for node in self.graph.nodes:
            target = self.dominator[node.output]
            if target == _EXIT or not self._is_free(node.output) or not self._accepts(node, target):
                continue
            depths = self._depths(node.output, target, self._is_free)
            if depths is not None:
                self._join(depths, self.group_of[target])

    def _join(self, depths: Mapping[str, int], wanted: str) -> None:
        """Move the groups of the nodes in *depths* into the group *wanted*, at these new depths."""
        self.depth.update(depths)
        for group in {self.group_of[name] for name in depths} - {wanted}:
            moved = self.members.pop(group)
            self.members[wanted] += moved
            self.group_of.update(dict.fromkeys(moved, wanted))

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
        members = self.members[self.group_of[node.output]]
        if node.output in anchor.inputs[1:]:
            # Products and attention pack each operand in the order in which their tiles read it.
            ops = [self.node_of[n].op for n in members]
            is_moved = all(isinstance(op, Movement) for op in ops)
            if isinstance(anchor.op, ChosenMatMul | MatMul) and _widens(ops):
                return True
            return is_moved and isinstance(anchor.op, Attention | ChosenMatMul | MatMul)
        # A movement costs nothing as an index map.  Arithmetic is computed once per element in a
        # reduction, and before a product if it gets its own stage; windows would repeat it.
        once = anchor.op.pattern is Pattern.REDUCTION or isinstance(anchor.op, Conv | MatMul)
        return all(
            isinstance(self.node_of[n].op, Movement)
            or (once and self.node_of[n].op.pattern is Pattern.ELEMENTWISE)
            for n in members
        )

    def _depths(
        self, start: str, end: str, may_join: Callable[[str], bool]
    ) -> dict[str, int] | None:
        """The depths of the nodes on paths from *start* to *end*, in one group.

        None if a node between them may not join, or if a path is too long.  *end* post-dominates
        *start*, so every path from *start* reaches it.
        """
        depths = {start: self.depth[start]}
        waiting = [self.order[name] for name in self.flow.successors(start)]
        heapify(waiting)
        while end not in depths:
            node = self.graph.nodes[heappop(waiting)]
            name = node.output
            if name in depths:
                continue
            above = max(depths.get(value, 0) for value in node.inputs)
            depths[name] = max(self.depth[name], above + 1)
            if depths[name] > MOST_CHAINED or (name != end and not may_join(name)):
                return None
            if name != end:
                for reader in self.flow.successors(name):
                    heappush(waiting, self.order[reader])
        return depths

    def groups(self) -> list[Group]:
        members: dict[str, list[Node]] = {}
        for node in self.graph.nodes:
            if node.output not in self.views:
                members.setdefault(self.group_of[node.output], []).append(node)
        found = [Group(tuple(nodes), self.anchors.get(key)) for key, nodes in members.items()]
        return sorted(found, key=lambda group: self.order[group.output])


def _widens(ops: Sequence[Op]) -> bool:
    """Whether *ops* make numbers of elements of narrow types, which take less memory to read."""
    return any(isinstance(op, Decode | Unpack) for op in ops) and all(
        isinstance(op, Movement | Unpack) or op.pattern is Pattern.ELEMENTWISE for op in ops
    )
