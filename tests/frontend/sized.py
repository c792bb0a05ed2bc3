"""Networks with dimensions at chosen sizes, beside onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from onnx import ModelProto

from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from ansorpy.graph.constants import constant_values
from ansorpy.graph.ir import Graph, Node, Output
from ansorpy.ir.extents import Symbolic, dims_of
from ansorpy.ir.sizes import at
from ansorpy.ir.symbols import Dim
from ansorpy.size_ranges import AnySize
from tests.graph.executor import Array, random_feeds, run_network
from tests.peer import peer

__all__ = ["assert_same_at", "graph_at", "import_sized", "sizes_at"]


def graph_at(graph: Graph, sizes: Mapping[Dim, int]) -> Graph:
    """*graph* where its dimensions have *sizes*."""

    def fixed(value: Any) -> Any:
        if isinstance(value, Symbolic):
            return at(value, sizes)
        if isinstance(value, tuple):
            return tuple(map(fixed, value))
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{f.name: fixed(getattr(value, f.name)) for f in fields(value)})
        return value

    types = {name: fixed(kind) for name, kind in graph.types.items()}
    nodes: list[Node] = []
    constants = dict(graph.constants)
    for node in graph.nodes:
        made = Node(fixed(node.op), node.inputs, node.output)
        if constants.keys() >= {*node.inputs}:  # sizes are numbers now, and what follows from them
            held = {name: constants[name] for name in node.inputs}
            known = Graph((), (Output("", node.output),), (made,), types, held)
            (constants[node.output],) = constant_values(known)
        else:
            nodes.append(made)
    return Graph(graph.inputs, graph.outputs, tuple(nodes), types, constants)


def sizes_at(graph: Graph, chosen: Mapping[str, int]) -> dict[Dim, int]:
    """The size of each dimension of the inputs of *graph*, by its name."""
    shapes = [graph.types[name].shape for name in graph.inputs]
    return {dim: chosen[dim.name] for dim in dims_of(e for shape in shapes for e in shape)}


def import_sized(model: ModelProto, **dims: AnySize) -> Graph:
    return load(model, dims=dims)


def assert_same_at(
    model: ModelProto, graph: Graph, rng: np.random.Generator, every: Sequence[Mapping[str, int]]
) -> None:
    """Compare shapes and values of the outputs with onnxruntime's where dimensions have sizes."""
    session = peer(model)
    for chosen in every:
        network = partition(optimize(graph_at(graph, sizes_at(graph, chosen))))
        feeds = random_feeds(network, rng)
        expected: list[Array] = session.run([info.name for info in network.results], feeds)
        found = run_network(network, feeds)
        for info, got, want in zip(network.outputs, found, expected, strict=True):
            assert got.shape == want.shape, (info.name, chosen)
            scale = max(float(np.abs(want).max(initial=0)), 1e-6)
            np.testing.assert_allclose(
                got, want, rtol=0, atol=1e-5 * scale, err_msg=f"{info.name} at {chosen}"
            )
