"""The interface between an importer and the node that it translates or refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from typing import NamedTuple, TypeVar, cast

import numpy as np
import onnx
from onnx import NodeProto

from ansorpy.frontend.onnx.bounded import GivenBounds, may_have_bounds
from ansorpy.frontend.onnx.elements import Elements, elements_of, evaluated, numbers_of
from ansorpy.frontend.onnx.ratio import Ratio
from ansorpy.frontend.onnx.unsupported import TooLarge, Unknown, Unsupported, one_size, unfit
from ansorpy.graph.emits import Emits
from ansorpy.graph.ir import Array, GraphBuilder, LargeConstant, Output, Quantized, require_small
from ansorpy.graph.ops import (
    Concat,
    Fn,
    Iota,
    Op,
    Shape,
    Sizes,
    Slice,
    TensorType,
    Transpose,
)
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, dims_of, least, most
from ansorpy.ir.narrow import ElementType, element_type

__all__ = ["Cut", "NodeContext", "Translate", "dtype_of", "element_type_of", "widely"]

T = TypeVar("T")

_ITERATION = "\0iteration {}"
"""The name, which no model has, of the number of an iteration, with the depth of its loop."""


class Cut(NamedTuple):
    """The elements ``start``, ``start + step``, .. of an axis, *size* of them."""

    start: AnyExtent
    size: AnyExtent
    step: int = 1


def dtype_of(code: int) -> DType:
    """The type of an ONNX type code; raises :class:`Unsupported` for others (strings, float8)."""
    found = element_type_of(code)
    if isinstance(found, DType):
        return found
    raise Unsupported(f"element type {found.value}", "convert the model to float32")


def element_type_of(code: int) -> ElementType:
    """The type, perhaps a narrow one, of an ONNX type code; raises :class:`Unsupported` if it is
    none of ours (texts, complex numbers)."""
    try:
        return element_type(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code)).name)
    except (KeyError, ValueError, TypeError):
        names = onnx.TensorProto.DataType
        name = names.Name(code) if code in names.values() else code
        is_text = code == names.STRING
        wanted = "turn texts into numbers outside of the model" if is_text else "use real numbers"
        raise Unsupported(f"element type {name}", wanted) from None


@dataclass(frozen=True)
class NodeContext(Emits):
    """One ONNX node, its operands as graph values, and the builder to emit into.

    ``values`` maps ONNX tensor names to graph values; ``used`` holds the names that are read.
    ``known`` has the elements of graph values that follow from sizes, ``stated`` the types that the
    model declares.
    If ``wide``, operands are read in the type in which sums are computed (16-bit floats as
    float32).  Each read has its own cast, so that it is fused into the kernel that reads the
    operand.
    """

    node: NodeProto
    opset: int
    builder: GraphBuilder
    values: Mapping[str, str]
    used: frozenset[str]
    known: MutableMapping[str, Elements] = field(default_factory=dict)
    stated: Mapping[str, TensorType] = field(default_factory=dict)
    wide: bool = False
    bounds: GivenBounds | None = None

    def attr(self, name: str, default: T) -> T:
        """The attribute *name*, decoded, or *default*; byte strings become text.

        A float default is rounded to float32, as all attributes of a model are.
        """
        for attribute in self.node.attribute:
            if attribute.name == name:
                value = onnx.helper.get_attribute_value(attribute)
                return cast(
                    T, value.decode(errors="replace") if isinstance(value, bytes) else value
                )
        if isinstance(default, float):
            return cast(T, float(np.float32(default)))
        return default

    def ints(self, name: str, default: Sequence[int]) -> Shape:
        return tuple(int(v) for v in self.attr(name, default))

    def has_input(self, index: int) -> bool:
        return index < len(self.node.input) and bool(self.node.input[index])

    def input(self, index: int = 0) -> str:
        """The graph value of an operand, which must be present."""
        return self.cast(self.operand(index), self.type(index).dtype)

    def operand(self, index: int = 0) -> str:
        """The graph value of an operand in its own type, for sums, which widen it themselves."""
        if not self.has_input(index):
            raise Unsupported(f"input {index}", "it is required")
        return self.values[self.node.input[index]]

    @property
    def inputs(self) -> list[str]:
        return [self.values[name] for name in self.node.input if name]

    @property
    def iterations(self) -> list[str]:
        """The numbers of the iterations that the node is part of, the outermost loop first."""
        return [self.values[name] for name in self._loops]

    @property
    def _loops(self) -> Iterable[str]:
        return takewhile(self.values.__contains__, map(_ITERATION.format, count()))

    def numbered(self, iteration: str) -> dict[str, str]:
        """What makes *iteration* the number of this iteration for nodes of the node's body."""
        return {_ITERATION.format(len([*self._loops])): iteration}

    def type(self, index: int = 0) -> TensorType:
        held = self.builder.types[self.operand(index)]
        return replace(held, dtype=held.dtype.of_sums) if self.wide else held

    def type_of(self, value: str) -> TensorType:
        """The type of a value of the graph, such as what :meth:`emit` returned."""
        return self.builder.types[value]

    def shape(self, index: int = 0) -> Shape:
        return self.type(index).shape

    def require_rank(self, index: int, rank: int) -> None:
        """Refuse operand *index* unless it has *rank* dimensions."""
        shape = self.shape(index)
        if len(shape) != rank:
            raise Unsupported(f"input {index} of shape {shape}", f"it must have {rank} dimensions")

    def is_output_used(self, index: int) -> bool:
        return index < len(self.node.output) and self.node.output[index] in self.used

    def require_float(self) -> None:
        """Refuse a node whose first operand is not a float."""
        dtype = self.type().dtype
        if not dtype.is_float:
            raise Unsupported(f"element type {dtype.value}", "only floats are supported")

    def constant(self, index: int, what: str) -> Array:
        """The array of constant operand *index*; refuses an operand computed at run time."""
        array = self.builder.constants.get(self.input(index))
        if array is None:
            raise self.unknown(what, self.input(index))
        return array

    def unknown(self, what: str, value: str, bound: str = "") -> Unsupported:
        """Why *value* is not known: it depends on inputs, or on dimensions.

        Args:
            bound: As of :class:`Unknown`.
        """
        graph = self.builder.finish([Output(value, value)])
        read = {value, *(name for node in graph.nodes for name in node.inputs)}
        inputs = [name for name in graph.inputs if name in read]
        if inputs:
            return Unknown(what, inputs, bound)
        ops = [node.op for node in graph.nodes]
        extents = [e for op in ops if isinstance(op, Sizes) for e in op.extents]
        shapes = (graph.types[node.output].shape for node in graph.nodes)
        return self.undecided(what, [*extents, *(e for s in shapes for e in s)])

    def undecided(self, what: str, extents: Iterable[AnyExtent]) -> Unsupported:
        """Why *what* is refused, because *extents* depend on sizes."""
        return Unsupported(what, one_size(dims_of(extents), self.builder.dim_names))

    def constant_ints(self, index: int, what: str) -> Shape:
        return tuple(int(v) for v in self.constant(index, what).reshape(-1))

    def extents(self, index: int, what: str) -> Shape:
        """The elements of integer operand *index*, which is constant or follows from sizes."""
        known = self.known.get(self.operand(index))
        if known is not None:
            return tuple(known.reshape(-1))
        if self.input(index) not in self.builder.constants:
            bound = self.node.input[index] if may_have_bounds(self.type(index)) else ""
            raise self.unknown(what, self.input(index), bound)
        return self.constant_ints(index, what)

    def most_rows(self, index: int = 0) -> int | None:
        """How many rows output *index* has at most, if the user gave a bound."""
        if self.bounds is None or index >= len(self.node.output):
            return None
        return self.bounds.length(self.node.output[index])

    def number(self, extent: AnyExtent, what: str) -> int:
        """*extent*, which must be a number for *what*; refuses one that depends on a dimension."""
        if isinstance(extent, int):
            return extent
        raise self.undecided(f"{what} of {extent}", [extent])

    def is_less(self, a: AnyExtent, b: AnyExtent) -> bool:
        """Whether ``a < b``; refuses extents for which that depends on a size."""
        if most(a - b) < 0 or least(a - b) >= 0:
            return most(a - b) < 0
        why = self.undecided("", [a, b]).advice
        raise Unsupported(f"{a} and {b}", f"either may be larger; {why}")

    def constant_shape(self, shape: Shape, dtype: DType) -> Shape:
        """*shape*, of a value that follows from sizes; refuses one of a constant that no library
        could hold."""
        if any(least(extent) < 0 for extent in shape):
            raise Unsupported(f"input shape {shape}", "no size may be negative")
        try:
            if not dims_of(shape):
                require_small(TensorType(shape, dtype))
        except LargeConstant as error:
            raise TooLarge(str(error)) from None
        return shape

    def emit(self, op: Op, inputs: Sequence[str]) -> str:
        """Append a graph node named after this node's first output.

        What it computes from sizes alone is known, too.
        """
        value = self._emitted(op, inputs)
        if value in self.builder.constants or self.known.keys().isdisjoint(inputs):
            return value
        kind = self.builder.types[value]
        operands = [self._elements(name) for name in inputs]
        known = [elements for elements in operands if elements is not None]
        is_array = len(known) == len(operands) and not dims_of(kind.shape)
        found = evaluated(op, known, kind.dtype) if is_array else None
        return value if found is None else self.from_sizes(found, kind.dtype)

    def _elements(self, value: str) -> Elements | None:
        if value in self.known:
            return self.known[value]
        array = self.builder.constants.get(value)
        return None if array is None else elements_of(array)

    def from_sizes(self, elements: Elements, dtype: DType = DType.INT64) -> str:
        """A value that has *elements*: a constant, if none of them depends on a dimension."""
        numbers = numbers_of(elements, dtype)
        if numbers is not None:
            return self.builder.add_constant(self.node.output[0], numbers)
        ratios = [e if isinstance(e, Ratio) else Ratio(e) for e in elements.flat]
        held = DType.INT64 if dtype.is_float else dtype
        value = self._emitted(Sizes(elements.shape, tuple(r.above for r in ratios), held), ())
        if dtype.is_float:
            below = np.asarray([r.below for r in ratios]).reshape(elements.shape)
            value = self.apply(Fn.DIV, self.cast(value, dtype), self.literal(below, dtype))
        self.known[value] = elements
        return value

    def size(self, extent: AnyExtent, dtype: DType) -> str:
        """*extent* as a number of *dtype*."""
        if isinstance(extent, int):
            return self.literal(extent, dtype)
        return self.cast(self._emitted(Sizes((), (extent,)), ()), dtype)

    def places(self, extent: AnyExtent, behind: int = 0, dtype: DType = DType.INT64) -> str:
        """``0, 1, .. extent - 1`` along an axis that has *behind* axes of extent one after it."""
        return self._emitted(Iota((extent, *(1,) * behind), dtype=dtype), ())

    def divided(self, total: str, count: AnyExtent) -> str:
        """*total* over *count*, times its reciprocal if that is a number."""
        dtype = self.builder.types[total].dtype
        if isinstance(count, int):
            return self.apply(Fn.MUL, total, self.literal(1.0 / np.float64(count), dtype))
        return self.apply(Fn.DIV, total, self.size(count, dtype))

    def plus(self, value: str, index: int) -> str:
        """*value* plus operand *index*, if there is one."""
        return self.apply(Fn.ADD, value, self.input(index)) if self.has_input(index) else value

    def _emitted(self, op: Op, inputs: Sequence[str]) -> str:
        try:
            return self.builder.emit(op, inputs, self.node.output[0])
        except LargeConstant as error:
            raise TooLarge(str(error)) from None
        except ValueError as error:
            shapes = [self.builder.types[name].shape for name in inputs]
            counted = {count.dim for count in self.builder.counts.values()}
            raise unfit(op, shapes, counted, error) from None

    def transpose(self, value: str, perm: Shape) -> str:
        if perm == tuple(range(len(perm))):
            return value
        before = self.builder.quantized.get(value)
        if before is None:
            return self.emit(Transpose(perm), [value])

        def moved(part: str) -> str:
            return self.transpose(part, perm) if self.builder.types[part].shape else part

        zero = None if before.zero is None else moved(before.zero)
        parts = Quantized(moved(before.value), zero, moved(before.scale))
        turned = self.emit(Transpose(perm), [value])
        self.builder.quantized[turned] = parts
        return turned

    def move_axis(self, value: str, source: int, target: int) -> str:
        """*value* with the axis *source* at the place *target*, the others in their order."""
        order = [d for d in range(len(self.builder.types[value].shape)) if d != source]
        order.insert(target, source)
        return self.transpose(value, tuple(order))

    def slice(self, value: str, cuts: Mapping[int, Cut]) -> str:
        """The elements of *value* that *cuts* keep along some axes, and all along the others."""
        shape = self.builder.types[value].shape
        whole = [cuts.get(axis, Cut(0, extent)) for axis, extent in enumerate(shape)]
        sizes = tuple(cut.size for cut in whole)
        if sizes == shape and all(cut.step == 1 for cut in whole):
            return value
        starts, steps = tuple(cut.start for cut in whole), tuple(cut.step for cut in whole)
        return self.emit(Slice(starts, sizes, steps), [value])

    def concat(self, values: Sequence[str], axis: int) -> str:
        """*values* joined along *axis*; those without elements add nothing."""
        parts = [v for v in values if self.builder.types[v].size != 0] or values
        return parts[0] if len(parts) == 1 else self.emit(Concat(axis), parts)

    def literal(self, array: Array | float, dtype: DType | None = None) -> str:
        """A constant of *dtype* (default: the first operand's); refuses values it cannot hold."""
        wanted = dtype or self.type().dtype
        held = np.asarray(array, wanted.numpy)
        if not wanted.is_float and not np.array_equal(held, array):
            raise Unsupported(f"{array} as {wanted.value}", "convert the model to float32")
        return self.builder.share_constant(f"{self.node.output[0]}.const", held)

    def axes(self, values: Sequence[int], rank: int) -> set[int]:
        """Non-negative axes; refuses axes outside the rank or given twice."""
        found = {self.axis(value, rank) for value in values}
        if len(found) < len(values):
            raise Unsupported(f"axes={tuple(values)}", "name each axis once")
        return found

    def axis(self, value: int, rank: int) -> int:
        """A non-negative axis; refuses one outside the rank."""
        if not -rank <= value < rank:
            raise Unsupported(f"axis={value}", f"the operand has {rank} dimensions")
        return value % rank


Translate = Callable[[NodeContext], str | tuple[str, ...]]
"""Translates a node into the graph value that it computes, or one for each of its outputs."""


def widely(build: Callable[[NodeContext], str]) -> Callable[[NodeContext], str]:
    """*build* applied to wide operands, with the result rounded to the first operand's type.

    In 16-bit floats, the sums of means and norms would overflow or lose terms.
    """

    def built(ctx: NodeContext) -> str:
        return ctx.cast(build(replace(ctx, wide=True)), ctx.type().dtype)

    return built
