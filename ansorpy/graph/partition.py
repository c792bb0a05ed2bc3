"""An optimised graph as a network of fused kernel calls over one arena."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.graph.aliases import aliases_in, fresh, with_own_parts
from ansorpy.graph.define import Definition, copy_definition, define
from ansorpy.graph.fusion import Group, fuse
from ansorpy.graph.ir import Graph, Output
from ansorpy.graph.memory import ArenaPlan, plan_arena
from ansorpy.graph.network import Call, Counted, Network, Subview, TensorInfo, lifetimes
from ansorpy.graph.ops import Conv, ConvTranspose, Pool, Shape
from ansorpy.graph.order import in_order
from ansorpy.graph.placement import place_values

__all__ = ["partition"]


def partition(graph: Graph) -> Network:
    """Fuse *graph* into calls and lay out its intermediate values.

    A view (see :mod:`ansorpy.graph.placement`) needs no call: its readers read the same bytes with
    another shape.  An output that no call would compute is copied: a constant, an input, or a value
    that is already another output.
    """
    return _Partition(graph).run()


class _Partition:
    def __init__(self, graph: Graph):
        self.graph = graph = with_own_parts(graph)
        self.placement = place_values(graph)
        self.names: dict[str, str] = {name: name for name in graph.inputs}
        self.returned = tuple(output for output in graph.outputs if output.counts is None)
        self.results = _result_buffers(graph.inputs, self.returned)
        self.copies = self._name_outputs()
        self.taken = {*self.names.values(), *self.results.values()}
        self.values = {name: self._info(name, name) for name in graph.inputs}
        self.calls: list[Call] = []
        self.subviews: dict[str, Subview] = {}

    def run(self) -> Network:
        for group in fuse(self.graph, self.placement.views):
            definition = define(self.placement, group)
            self._add(_title(self.graph, group), definition, self._buffer(group.output))
        for value, name in self.copies:
            self.values[name] = self._info(name, value)
            self._add(f"copy_{name}", copy_definition(self.placement, value), name)
        outputs = tuple(self._info(self.results[o.name], o.value) for o in self.returned)
        counts = self._counts()
        self.calls = in_order(self.calls, counts, self.subviews)
        given = tuple(self.values[name] for name in self.graph.inputs)
        titles = {buffer: name for name, buffer in self.results.items() if name != buffer}
        return Network(
            given, outputs, self.values, tuple(self.calls), self._arena(counts), self.subviews,
            titles, aliases_in(self.graph), counts,
        )  # fmt: skip

    def _counts(self) -> tuple[Counted, ...]:
        """The dimensions that calls count, and the values that are their sizes."""
        return tuple(
            Counted(self._buffer(output.value), output.counts.dim, output.counts.capacity)
            for output in self.graph.outputs
            if output.counts is not None
        )

    def _name_outputs(self) -> list[tuple[str, str]]:
        """Let producers write to the caller's buffers; return (value, buffer) pairs to copy.

        Nothing is written to an output without elements.
        """
        copies: list[tuple[str, str]] = []
        for output in self.returned:
            buffer, root = self.results[output.name], self.placement.root(output.value)
            made = root not in self.names and root not in self.graph.constants
            if made and self.placement.is_whole(output.value):
                self.names[root] = buffer
            elif self.graph.types[output.value].size != 0:
                copies.append((output.value, buffer))
        return copies

    def _name(self, root: str) -> str:
        """The name of a value's buffer, distinct from the names of network inputs and outputs."""
        if root not in self.names:
            self.names[root] = fresh(root, self.taken)
            self.taken.add(self.names[root])
        return self.names[root]

    def _buffer(self, value: str) -> str:
        """The name of *value*'s memory, which is its own or part of another value's."""
        place = self.placement.places[value]
        if self.placement.is_whole(value):
            value = place.root
        name = self._name(value)
        if name not in self.values:
            self.values[name] = self._info(name, value)
        if value != place.root and name not in self.subviews:
            root = self._buffer(place.root)
            offset = place.offset * self.graph.types[value].dtype.bytes
            self.subviews[name] = Subview(root, offset)
        return name

    def _info(self, name: str, value: str) -> TensorInfo:
        kind = self.graph.types[value]
        return TensorInfo(name, kind.shape, kind.dtype)

    def _add(self, title: str, definition: Definition, output: str) -> None:
        inputs = tuple(map(self._buffer, definition.inputs))
        self.calls.append(Call(title, definition.dag, inputs, definition.constants, (output,)))

    def _arena(self, counts: Sequence[Counted]) -> ArenaPlan:
        external = {*self.graph.inputs, *self.results.values()}
        capacities = {counted.dim: counted.capacity for counted in counts}
        return plan_arena(lifetimes(self.calls, self.values, self.subviews, external, capacities))


def _result_buffers(inputs: Sequence[str], outputs: Sequence[Output]) -> dict[str, str]:
    """The buffer of each output, which has the output's name unless an input has that name."""
    buffers = {output.name: output.name for output in outputs}
    taken = {*inputs, *buffers}
    for name in filter(buffers.__contains__, inputs):
        buffers[name] = fresh(name, taken)
        taken.add(buffers[name])
    return buffers


_MOST_NAMED = 24
"""Maximum number of operators in a title; only unrolled recurrences have more."""


def _title(graph: Graph, group: Group) -> str:
    """``conv3x3s2_add_relu_112x112x64``: operators, then the stored shape without a batch of 1.

    For a long group, it names the first operators and counts the others.
    """
    parts: list[str] = []
    for node in group.nodes:
        label = node.op.label
        if isinstance(node.op, Conv | ConvTranspose):
            label += _window(graph.types[node.inputs[1]].shape[: len(node.op.strides)], node.op)
            label = f"group{label}" if node.op.groups > 1 else label
        elif isinstance(node.op, Pool):
            label += _window(node.op.kernel, node.op)
        parts.append(label)
    if len(parts) > _MOST_NAMED:
        parts[_MOST_NAMED - 1 :] = [f"{len(parts) - _MOST_NAMED + 1}more"]
    shape = graph.types[group.output].shape
    said = shape[1:] if shape[:1] == (1,) and len(shape) > 1 else shape
    return "_".join([*parts, "x".join(map(str, said))])


def _window(kernel: Shape, op: Conv | ConvTranspose | Pool) -> str:
    stride = "x".join(map(str, sorted(set(op.strides))))
    return "x".join(map(str, kernel)) + ("" if stride == "1" else f"s{stride}")
