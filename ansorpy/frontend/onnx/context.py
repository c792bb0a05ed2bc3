"""The interface between an importer and the node that it translates or refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import numpy as np
import onnx
from onnx import NodeProto

from ansorpy.graph.emits import Emits
from ansorpy.graph.ir import Array, GraphBuilder, LargeConstant, Quantized, require_small
from ansorpy.graph.ops import (
    Concat,
    Op,
    Shape,
    Slice,
    TensorType,
    Transpose,
)
from ansorpy.ir.dtypes import DType, as_dtype

__all__ = ["NodeContext", "Unsupported", "TooLarge", "dtype_of", "widely"]

T = TypeVar("T")


class Unsupported(Exception):
    """A node cannot be translated; names the attribute or input at fault, and what to do."""

    def __init__(self, attribute: str, advice: str):
        super().__init__(f"{attribute}: {advice}")
        self.attribute = attribute
        self.advice = advice


class TooLarge(Unsupported):
    """A constant would be larger than a library can hold."""

    def __init__(self, what: str):
        super().__init__(what, "values that large must be inputs")


def dtype_of(code: int) -> DType:
    """The element type of an ONNX type code; raises :class:`Unsupported` for others (strings)."""
    try:
        return as_dtype(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code)))
    except (KeyError, ValueError, TypeError):
        names = onnx.TensorProto.DataType
        name = names.Name(code) if code in names.values() else code
        raise Unsupported(f"element type {name}", "convert the model to float32") from None


@dataclass(frozen=True)
class NodeContext(Emits):
    """One ONNX node, its operands as graph values, and the builder to emit into.

    ``values`` maps ONNX tensor names to graph values; ``used`` holds the names that are read.
    If ``wide``, operands are read in the type in which sums are computed (16-bit floats as
    float32).  Each read has its own cast, so that it is fused into the kernel that reads the
    operand.
    """

    node: NodeProto
    opset: int
    builder: GraphBuilder
    values: Mapping[str, str]
    used: frozenset[str]
    wide: bool = False

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

    def type(self, index: int = 0) -> TensorType:
        held = self.builder.types[self.operand(index)]
        return replace(held, dtype=held.dtype.of_sums) if self.wide else held

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
            raise Unsupported(what, "it must be a constant or follow from the shapes")
        return array

    def constant_ints(self, index: int, what: str) -> Shape:
        return tuple(int(v) for v in np.asarray(self.constant(index, what)).reshape(-1))

    def constant_shape(self, shape: Shape, dtype: DType) -> Shape:
        """*shape*, of a constant to be made; refuses one that no library could hold."""
        if min(shape, default=0) < 0:
            raise Unsupported(f"input shape {shape}", "no size may be negative")
        try:
            require_small(TensorType(shape, dtype))
        except LargeConstant as error:
            raise TooLarge(str(error)) from None
        return shape

    def emit(self, op: Op, inputs: Sequence[str]) -> str:
        """Append a graph node named after this node's first output."""
        try:
            return self.builder.emit(op, inputs, self.node.output[0])
        except LargeConstant as error:
            raise TooLarge(str(error)) from None
        except ValueError as error:
            raise Unsupported("operand shapes", str(error)) from None

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

    def slice(self, value: str, ranges: Sequence[range]) -> str:
        """The elements of *value* at *ranges*, one per axis."""
        shape = tuple(map(len, ranges))
        if shape == self.builder.types[value].shape and all(r.step == 1 for r in ranges):
            return value
        starts, steps = tuple(r.start for r in ranges), tuple(r.step for r in ranges)
        return self.emit(Slice(starts, shape, steps), [value])

    def concat(self, values: Sequence[str], axis: int) -> str:
        """*values* joined along *axis*; those without elements add nothing."""
        parts = [v for v in values if self.builder.types[v].size] or values
        return parts[0] if len(parts) == 1 else self.emit(Concat(axis), parts)

    def literal(self, array: Array | float, dtype: DType | None = None) -> str:
        """A constant of *dtype* (default: the first operand's); refuses values it cannot hold."""
        wanted = dtype or self.type().dtype
        held = np.asarray(array, wanted.numpy)
        if not wanted.is_float and not np.array_equal(held, array):
            raise Unsupported(f"{array} as {wanted.value}", "convert the model to float32")
        return self.builder.add_constant(f"{self.node.output[0]}.const", held)

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


def widely(build: Callable[[NodeContext], str]) -> Callable[[NodeContext], str]:
    """*build* applied to wide operands, with the result rounded to the first operand's type.

    In 16-bit floats, the sums of means and norms would overflow or lose terms.
    """

    def built(ctx: NodeContext) -> str:
        return ctx.cast(build(replace(ctx, wide=True)), ctx.type().dtype)

    return built
