"""Who makes and who reads each value of a graph: what passes ask before they join nodes."""

from __future__ import annotations

from ansorpy.graph.ir import Graph, Node

__all__ = ["Uses"]


class Uses:
    """Producers and readers of *graph*'s values; its outputs are read by the caller, too."""

    def __init__(self, graph: Graph):
        self.producers = graph.producers()
        self.readers = graph.consumers()
        self.results = frozenset(output.value for output in graph.outputs)

    def only_reader(self, value: str) -> Node | None:
        """The node that reads *value* when nobody else does; one that reads it twice is none."""
        alone = value not in self.results and len(self.readers[value]) == 1
        return self.readers[value][0] if alone else None

    def private(self, value: str) -> Node | None:
        """The node that makes *value*, when one other node reads it and nobody else."""
        return None if self.only_reader(value) is None else self.producers.get(value)
