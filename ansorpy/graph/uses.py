"""Producers and readers of a graph's values; passes check these before they merge nodes."""

from __future__ import annotations

from ansorpy.graph.ir import Graph, Node

__all__ = ["Uses"]


class Uses:
    """Producers and readers of *graph*'s values; the caller also reads its outputs."""

    def __init__(self, graph: Graph):
        self.producers = graph.producers()
        self.readers = graph.consumers()
        self.results = frozenset(output.value for output in graph.outputs)

    def only_reader(self, value: str) -> Node | None:
        """The only reader of *value*; None if there are several, or if one reads it twice."""
        alone = value not in self.results and len(self.readers[value]) == 1
        return self.readers[value][0] if alone else None

    def private(self, value: str) -> Node | None:
        """The node that computes *value*, if exactly one other node reads it; otherwise None."""
        return None if self.only_reader(value) is None else self.producers.get(value)
