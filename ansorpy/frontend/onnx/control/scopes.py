"""Bodies that become graphs of their own, and how control operators have bodies translated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from onnx import GraphProto

from ansorpy.errors import UnsupportedRow
from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.control.values import Value, leaves, with_leaves
from ansorpy.frontend.onnx.elements import Elements
from ansorpy.frontend.onnx.nodes import initializer_names
from ansorpy.frontend.onnx.quantized.narrow import refused
from ansorpy.graph.ir import Graph, GraphBuilder, Output
from ansorpy.graph.ops import Sizes, TensorType
from ansorpy.ir.dtypes import DType

__all__ = ["Blamed", "Inner", "Translator", "body_of"]

V = TypeVar("V")


class Blamed(Exception):
    """A body cannot be translated; the table has its nodes already."""


class Translator(Protocol):
    """What translates the nodes of bodies."""

    rows: list[UnsupportedRow]

    def inlined(self, body: GraphProto, given: Mapping[str, Value]) -> list[Value]:
        """Translate *body* in place, with its inputs *given*; return its outputs.

        Raises:
            Blamed: Nodes of it are refused.
        """

    def inside(self) -> AbstractContextManager[Inner]:
        """While this lasts, what is translated becomes part of another graph."""

    def both(self) -> AbstractContextManager[None]:
        """While this lasts, no size that nobody stated is chosen so that a node becomes possible:
        it is in one of two branches, of which a run may take the other."""

    def value(self, name: str) -> Value:
        """What *name* stands for."""


def body_of(ctx: NodeContext, name: str) -> GraphProto:
    """The body that is the attribute *name*; its inputs are those that the node gives.

    Old versions of the format list initializers as inputs, too.
    """
    bodies: dict[str, GraphProto] = {a.name: a.g for a in ctx.node.attribute}
    body = bodies[name]
    held = initializer_names(body)
    given = [info for info in body.input if info.name not in held]
    if len(given) == len(body.input):
        return body
    made = GraphProto()
    made.CopyFrom(body)
    del made.input[:]
    made.input.extend(given)
    return made


class _Captured(MutableMapping[str, V]):
    """Names in a body; those from outside are made values of the body when they are looked up."""

    def __init__(self, outside: Mapping[str, V], capture: Callable[[V], V]):
        self._own: dict[str, V] = {}
        self._outside = outside
        self._capture = capture

    def __getitem__(self, name: str) -> V:
        if name not in self._own:
            self._own[name] = self._capture(self._outside[name])
        return self._own[name]

    def __setitem__(self, name: str, value: V) -> None:
        self._own[name] = value

    def __delitem__(self, name: str) -> None:
        del self._own[name]

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._outside

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._outside), **self._own})

    def __len__(self) -> int:
        return len(self._own.keys() | self._outside.keys())


class Inner:
    """The graph of a body while it is built, and what it reads from outside.

    Constants, and what follows from sizes, become part of the body.  Other values become inputs,
    which ``captured`` has by their names outside.
    """

    def __init__(
        self,
        builder: GraphBuilder,
        values: Mapping[str, str],
        lists: Mapping[str, Value],
        known: Mapping[str, Elements],
    ):
        self.builder = GraphBuilder()
        self.builder.dim_names = builder.dim_names
        self.values: MutableMapping[str, str] = _Captured(values, self.captured_value)
        self.lists: MutableMapping[str, Value] = _Captured(lists, self.copied)
        self.known: dict[str, Elements] = {}
        self.captured: dict[str, str] = {}
        self._outside = builder
        self._outside_known = known
        self._inputs: list[str] = []
        self._copied: dict[str, str] = {}

    def add_input(self, name: str, kind: TensorType) -> str:
        """A value that is different in each run of the body."""
        added = self.builder.add_input(self.builder.fresh(name), kind)
        self._inputs.append(added)
        return added

    def add_part(self, value: str, kind: TensorType) -> str:
        """A value, different in each run of the body, of the element type of *value* outside."""
        return self._of_type(value, self.add_input(value, kind))

    def _of_type(self, value: str, made: str) -> str:
        """*made*, which has the narrow type of *value* outside, if that has one."""
        if value in self._outside.narrow:
            self.builder.narrow[made] = self._outside.narrow[value]
        return made

    def copied(self, value: Value) -> Value:
        """The value outside in the body."""
        return with_leaves(value, iter([self.captured_value(leaf) for leaf in leaves(value)]))

    def captured_value(self, value: str) -> str:
        """The graph value *value* of outside in the body."""
        if value not in self._copied:
            self._copied[value] = self._of_type(value, self._new(value))
        return self._copied[value]

    def _new(self, value: str) -> str:
        outside, builder = self._outside, self.builder
        if value in outside.constants:
            if outside.types[value].size == 0:
                return builder.add_empty(value, outside.types[value])
            return builder.add_constant(value, outside.constants[value])
        elements, kind = self._outside_known.get(value), outside.types[value]
        if elements is not None and not kind.dtype.is_float:
            extents = Sizes(elements.shape, tuple(elements.flat), DType.INT64)
            made = builder.emit(extents, (), value)
            if kind.dtype is extents.dtype:
                self.known[made] = elements
                return made
        self.captured[value] = builder.add_input(builder.fresh(value), kind)
        return self.captured[value]

    def finish(self, outputs: list[Output], behind: list[str]) -> Graph:
        """The body's graph, whose inputs are those added, then those captured and *behind*."""
        for output in outputs:
            if output.value in self.builder.narrow:
                raise refused(self.builder.narrow[output.value])
        graph = self.builder.finish(outputs)
        first = [name for name in self._inputs if name not in behind]
        return Graph(
            (*first, *self.captured.values(), *behind), graph.outputs, graph.nodes, graph.types,
            graph.constants,
        )  # fmt: skip
