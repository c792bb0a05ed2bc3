"""The network graph: nodes over named values with typed shapes, and constants as arrays."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Reversible, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ansorpy.arrays import compact, content_of
from ansorpy.graph.ops import Cast, Concat, Elementwise, Fn, Gather, Movement, Op, Shape, TensorType
from ansorpy.ir.dtypes import as_dtype
from ansorpy.ir.extents import AnyExtent, dim_extent, dims_of, least, most
from ansorpy.ir.narrow import Narrow
from ansorpy.ir.sizes import at_most
from ansorpy.ir.symbols import Dim

__all__ = [
    "MOST_CONSTANT_BYTES", "Array", "Count", "Graph", "GraphBuilder", "Integers", "LargeConstant",
    "NarrowPort", "Node", "Output", "Quantized", "needed", "require_small", "text",
]  # fmt: skip

Array = NDArray[np.generic]

MOST_CONSTANT_BYTES = 2 << 30
"""More than the constants of one library may take."""
_GROWTH = 4
"""How much larger than its operands a constant may be then: a cast doubles or quadruples them."""


@dataclass(frozen=True)
class Node:
    """A node that computes ``output = op(*inputs)``; all are value names."""

    op: Op
    inputs: tuple[str, ...]
    output: str


@dataclass(frozen=True)
class Integers:
    """Small integers less their zero point, ``value - zero``; None means 0.

    The zero point is a number, or has as many dimensions as ``value`` and broadcasts to it.
    """

    value: str
    zero: str | None


@dataclass(frozen=True)
class Quantized(Integers):
    """A quantized tensor, ``(value - zero) * scale``; the scale broadcasts as the zero point."""

    scale: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the values it consists of."""
        return tuple(part for part in (self.value, self.zero, self.scale) if part is not None)


@dataclass(frozen=True)
class Count:
    """The size of *dim*, which each run counts; it is at most *capacity*."""

    dim: Dim
    capacity: AnyExtent


@dataclass(frozen=True)
class NarrowPort:
    """The type and shape that callers see of an input or output whose value holds its bytes."""

    kind: Narrow
    shape: Shape


@dataclass(frozen=True)
class Output:
    """A result of the network: the caller's name for it, its value, and its type if narrow.

    With *counts*, it is no result for the caller: the value, one int64, is the size of a dimension.
    """

    name: str
    value: str
    counts: Count | None = None
    port: NarrowPort | None = None


@dataclass(frozen=True)
class Graph:
    """A network: ``nodes`` in topological order over inputs, constants and each other's outputs.

    ``types`` has every value, ``ports`` those inputs whose types are narrow.  Graphs are not
    modified after they are built; passes return new ones and share the constant arrays.
    ``quantized`` has the integers that imported values were dequantized from; passes do not
    preserve it.
    """

    inputs: tuple[str, ...]
    outputs: tuple[Output, ...]
    nodes: tuple[Node, ...]
    types: Mapping[str, TensorType]
    constants: Mapping[str, Array]
    quantized: Mapping[str, Quantized] = field(default_factory=dict)
    ports: Mapping[str, NarrowPort] = field(default_factory=dict)
    _seen: dict[tuple[str, Shape], Array] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def returned(self) -> tuple[Output, ...]:
        """The outputs that are results, not sizes of dimensions."""
        return tuple(output for output in self.outputs if output.counts is None)

    @property
    def counted_dims(self) -> frozenset[Dim]:
        """The dimensions whose sizes its own nodes compute."""
        return frozenset(o.counts.dim for o in self.outputs if o.counts is not None)

    def constant(self, name: str, shape: Shape) -> Array:
        """The constant *name* with *shape*; the same object on every call.

        This way it is packed only once for all kernels that read it.
        """
        if (name, shape) not in self._seen:
            self._seen[name, shape] = np.ascontiguousarray(self.constants[name]).reshape(shape)
        return self._seen[name, shape]

    def dims_at(self, node: Node) -> frozenset[Dim]:
        """The dimensions that *node*, its operands or its result depend on."""
        shapes = (self.types[name].shape for name in (*node.inputs, node.output))
        return frozenset((*node.op.dims, *dims_of(e for shape in shapes for e in shape)))

    def consumers(self) -> dict[str, list[Node]]:
        """Nodes that read each value; a node is listed twice if it reads the value twice."""
        readers: dict[str, list[Node]] = {name: [] for name in self.types}
        for node in self.nodes:
            for name in node.inputs:
                readers[name].append(node)
        return readers

    def producers(self) -> dict[str, Node]:
        """The node that writes each value."""
        return {node.output: node for node in self.nodes}


def needed(
    nodes: Reversible[Node], outputs: Iterable[str], given: Collection[str] = ()
) -> tuple[list[Node], set[str]]:
    """Those of *nodes*, in topological order, that *outputs* need if the values *given* are known.

    Also returns the values that are read: *outputs*, and the operands of these nodes.
    """
    read = set(outputs)
    found: list[Node] = []
    for node in reversed(nodes):
        if node.output in read and node.output not in given:
            found.append(node)
            read.update(node.inputs)
    return found[::-1], read


class LargeConstant(ValueError):
    """A constant would take more memory than a library can hold."""


def require_small(made: TensorType, operands: Iterable[TensorType] = ()) -> None:
    """Raise :class:`LargeConstant` if a constant of the type *made* is larger than a library holds.

    Constants that are made from large ones may be larger: a model that has those has memory for it.
    """
    if made.bytes > max(MOST_CONSTANT_BYTES, _GROWTH * sum(operand.bytes for operand in operands)):
        raise LargeConstant(f"a constant of {made.bytes / 2**30:,.1f} GiB")


class GraphBuilder:
    """Builds a graph node by node; nodes that read only constants are computed immediately.

    A value without elements is a constant, whatever it depends on.

    Names are unique: a name already taken gets a number appended.  A builder created from a graph
    (:meth:`like`) keeps that graph's names for its values (:meth:`add_node`).
    """

    def __init__(self) -> None:
        self.types: dict[str, TensorType] = {}
        self.constants: dict[str, Array] = {}
        self.quantized: dict[str, Quantized] = {}
        self.counts: dict[str, Count] = {}
        """The dimensions that runs count, by the value that is the size."""
        self.dim_names: set[str] = set()
        """The names of these, also in the graphs of bodies and in those around them."""
        self.narrow: dict[str, Narrow] = {}
        """The types of values that hold the codes, or the integers, of narrow types."""
        self.ports: dict[str, NarrowPort] = {}
        self._inputs: list[str] = []
        self._nodes: dict[str, Node] = {}
        self._folded: dict[Hashable, str] = {}
        """Constants by what made them: an operator on constants, or their elements."""
        self._kept: Collection[str] = ()
        self._numbers: dict[str, int] = {}
        """The last number appended to each name."""

    @classmethod
    def like(cls, graph: Graph) -> GraphBuilder:
        """A builder that has *graph*'s inputs and constants but no nodes yet."""
        builder = cls()
        for name in graph.inputs:
            builder.add_input(name, graph.types[name])
        builder.ports.update(graph.ports)
        for name, array in graph.constants.items():
            builder.add_constant(name, array)
            builder.types[name] = graph.types[name]  # the extents of one without elements may vary
        builder._kept = graph.types.keys()
        return builder

    def add_input(self, name: str, tensor_type: TensorType) -> str:
        self.types[name] = tensor_type
        self._inputs.append(name)
        return name

    def add_constant(self, name: str, array: Array) -> str:
        """Add *array*; returns the name it got."""
        name = self.fresh(name)
        self._hold(name, array)
        return name

    def share_constant(self, name: str, array: Array) -> str:
        """A constant that has the elements of *array*: one shared before, or this one, added."""
        if (key := content_of(array)) not in self._folded:
            self._folded[key] = self.add_constant(name, array)
        return self._folded[key]

    def add_empty(self, name: str, kind: TensorType, narrow: Narrow | None = None) -> str:
        """Add a constant without elements, of a narrow type if given; returns the name it got.

        Its array has an extent of 1 where *kind* has one that depends on dimensions.
        """
        name = self.fresh(name)
        self._hold_empty(name, kind)
        if narrow is not None:
            self.narrow[name] = narrow
        return name

    def counted(self, value: str, capacity: AnyExtent, low: int = 0) -> AnyExtent:
        """The extent that *value*, an int64, tells; it is from *low* to *capacity*.

        If that is one number, runs check that it is.  Values that are computed alike tell the same
        extent, so that what has it can be combined.
        """
        if value in self.constants:
            return int(self.constants[value].reshape(-1)[0])
        if most(capacity) == 0:
            return 0
        if value in self._nodes and self._nodes[value].op.bodies:
            value = self.emit(Elementwise(Fn.MAX), [value, value], value)  # calls tell sizes
        most_ = at_most(capacity, {c.dim: c.capacity for c in self.counts.values()})
        value = next((told for told in self.counts if self._are_alike(told, value)), value)
        if value not in self.counts:
            self.counts[value] = Count(Dim(self.dim_name(value), low, most(most_)), most_)
        count = self.counts[value]
        return low if low == count.dim.high else dim_extent(count.dim)

    def _are_alike(self, a: str, b: str) -> bool:
        """Whether the same operators compute two values of the same operands."""
        waiting, seen = [(a, b)], set[tuple[str, str]]()
        while waiting:
            pair = waiting.pop()
            if pair[0] == pair[1] or pair in seen:
                continue
            seen.add(pair)
            held = [self.constants[name] for name in pair if name in self.constants]
            nodes = [self._nodes[name] for name in pair if name in self._nodes]
            if len(held) == 2:
                x, y = held
                if x.dtype != y.dtype or not np.array_equal(x, y):
                    return False
            elif len(nodes) < 2 or nodes[0].op != nodes[1].op:
                return False
            else:
                waiting += zip(nodes[0].inputs, nodes[1].inputs, strict=True)
        return True

    def dim_name(self, value: str) -> str:
        """A name, like that of *value*, which no other dimension that runs count has."""
        name, number = value, 0
        while name in self.dim_names:
            number += 1
            name = f"{value}.{number}"
        self.dim_names.add(name)
        return name

    def part(self, values: Sequence[str]) -> Graph:
        """The graph that computes *values*, found from them back; its inputs are those it reads."""
        waiting, read = [*values], dict[str, TensorType]()
        while waiting:
            node = self._nodes.get(waiting[-1])
            left = [] if node is None else [name for name in node.inputs if name not in read]
            if not left:  # its operands come first
                name = waiting.pop()
                read[name] = self.types[name]
            waiting += left
        return Graph(
            tuple(name for name in self._inputs if name in read),
            tuple(Output(value, value) for value in values),
            tuple(self._nodes[name] for name in read if name in self._nodes),
            read,
            {name: self.constants[name] for name in read if name in self.constants},
        )

    def emit(self, op: Op, inputs: Sequence[str], name: str) -> str:
        """Append ``op(*inputs)``; return its value's name.  Raises ``ValueError`` on bad shapes.

        A movement, a concatenation or a gather keeps the narrow type of its first operand; what
        other operators make has none until the importer says so.  What is moved, joined, converted
        or computed element by element from constants is made once.
        """
        key = (op, *inputs) if isinstance(op, Movement | Concat | Cast | Elementwise) else None
        if key in self._folded:
            return self._folded[key]
        name = self.fresh(name)
        self._append(Node(op, tuple(inputs), name))
        if isinstance(op, Movement | Concat | Gather) and inputs[0] in self.narrow:
            self.narrow[name] = self.narrow[inputs[0]]
        if key is not None and name in self.constants:
            self._folded[key] = name
        return name

    def add_node(self, node: Node) -> None:
        """Append *node* under its own name, which is that of a value in the original graph."""
        assert node.output in self._kept and node.output not in self.types
        self._append(node)

    def _append(self, node: Node) -> None:
        operands = [self.types[i] for i in node.inputs]
        inferred = node.op.infer(operands)
        if any(least(extent) < 0 for extent in inferred.shape):
            raise ValueError(f"the result would have negative sizes: {list(inferred.shape)}")
        if inferred.size == 0:
            self._hold_empty(node.output, inferred)
            return
        extents = (e for kind in (inferred, *operands) for e in kind.shape)
        if all(i in self.constants for i in node.inputs) and not dims_of(extents):
            require_small(inferred, operands)
            value = node.op.evaluate([self.constants[i] for i in node.inputs])
            if value is not None:
                self._hold(node.output, compact(value))
                return
        if any(operand.size == 0 for operand in operands):
            raise ValueError(f"operands without elements: {[o.shape for o in operands]}")
        self.types[node.output] = inferred
        self._nodes[node.output] = node

    def _hold(self, name: str, array: Array) -> None:
        self.types[name] = TensorType(tuple(array.shape), as_dtype(array.dtype))
        self.constants[name] = array

    def _hold_empty(self, name: str, kind: TensorType) -> None:
        shape = [e if isinstance(e, int) else 1 for e in kind.shape]
        self._hold(name, np.zeros(shape, kind.dtype.numpy))
        self.types[name] = kind

    def finish(self, outputs: Iterable[Output]) -> Graph:
        """The graph that computes *outputs*, without nodes and constants they do not need.

        The integers that needed values were dequantized from stay, too, and the dimensions that
        runs count.
        """
        results = tuple(outputs)
        kept, live = self._reached(results)
        while more := self._counts_for(kept, live, results):
            results += more
            kept, live = self._reached(results)
        return Graph(
            tuple(self._inputs),
            results,
            tuple(reversed(kept)),
            {name: t for name, t in self.types.items() if name in live},
            {name: a for name, a in self.constants.items() if name in live},
            {name: q for name, q in self.quantized.items() if name in live},
            dict(self.ports),
        )

    def _reached(self, results: Iterable[Output]) -> tuple[list[Node], set[str]]:
        """The nodes that *results* need, last first, and the values that stay."""
        live = {output.value for output in results}
        kept: list[Node] = []
        for node in reversed(self._nodes.values()):
            if node.output in live:
                kept.append(node)
                live.update(*(self._with_parts(name) for name in (node.output, *node.inputs)))
        live.update(self._inputs)
        return kept, live

    def _counts_for(
        self, nodes: Iterable[Node], values: Iterable[str], results: Iterable[Output]
    ) -> tuple[Output, ...]:
        """The dimensions of *nodes* and *values* that runs count, without those in *results*."""
        if not self.counts:
            return ()
        extents = [extent for value in values for extent in self.types[value].shape]
        used = {*dims_of(extents), *(dim for node in nodes for dim in node.op.dims)}
        used |= {count.dim for count in self.counts.values() if count.dim.low == count.dim.high}
        known = {output.counts for output in results}
        return tuple(
            Output(value, value, count)
            for value, count in self.counts.items()
            if count.dim in used and count not in known
        )

    def _with_parts(self, name: str) -> tuple[str, ...]:
        """The value *name*, and the values it was dequantized from."""
        found = self.quantized.get(name)
        return (name,) if found is None else (name, *found.parts)

    def fresh(self, name: str) -> str:
        """*name*, or if it is taken, *name* with a number."""
        fresh, number = name, self._numbers.get(name, 0)
        while self._is_taken(fresh):
            number += 1
            fresh = f"{name}.{number}"
        self._numbers[name] = number
        return fresh

    def _is_taken(self, name: str) -> bool:
        return name in self.types or name in self._kept


def text(graph: Graph) -> str:
    """One line per node: ``value[shape] = op(inputs)``; constants are marked ``%``.

    The bodies of regions follow, indented, behind the last node of each.
    """
    last = {id(body): node.output for node in graph.nodes for body in node.op.bodies}
    lines = [f"input {name}{list(graph.types[name].shape)}" for name in graph.inputs]
    for node in graph.nodes:
        args = ", ".join(f"%{i}" if i in graph.constants else i for i in node.inputs)
        lines.append(f"{node.output}{list(graph.types[node.output].shape)} = {node.op!r}({args})")
        for body in node.op.bodies:
            if last[id(body)] == node.output:
                lines += [f"  {line}" for line in text(body).splitlines()]
    for output in graph.outputs:
        known = output.counts
        what = f"output {output.name}" if known is None else f"size {known.dim}"
        lines.append(f"{what} = {output.value}")
    return "\n".join(lines)
