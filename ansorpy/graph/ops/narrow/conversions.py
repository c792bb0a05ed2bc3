"""Operators that pack, unpack and convert elements of narrow types."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar, Literal

from ansorpy.graph.ops.base import Op, Pattern, Rows, Shape, TensorType, are_broadcast_rows
from ansorpy.graph.ops.movement import digits, flat
from ansorpy.graph.ops.names import Names, image_axes
from ansorpy.graph.ops.narrow.codes import decoded, encoded, wrapped
from ansorpy.ir import builders as b
from ansorpy.ir.attrs import Attrs
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, as_expr
from ansorpy.ir.extents import AnyExtent, prod_of
from ansorpy.ir.narrow import Narrow
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["Converted", "Decode", "Encode", "Pack", "Unpack", "Wrap", "packed_shape"]


class Converted(Op):
    """Converts each element."""

    pattern: ClassVar[Pattern] = Pattern.ELEMENTWISE
    attrs: ClassVar[Attrs] = Attrs()

    @abstractmethod
    def converted(self, x: Expr) -> Expr:
        """One element converted."""

    @property
    @abstractmethod
    def made(self) -> DType:
        """The element type of the result."""

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(inputs[0].shape, self.made)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        (x,) = inputs
        name, axes = names.fresh(self.label), image_axes(x.ndim)
        return compute(
            x.shape, lambda *i: self.converted(x[i]), name=name, names=axes, attrs=self.attrs
        )

    def reordered(self, order: Shape) -> Op:
        return self

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return are_broadcast_rows(operands, shape)


@dataclass(frozen=True)
class Decode(Converted):
    """The float32 numbers that codes of ``kind`` stand for; bytes are numbers themselves."""

    kind: Narrow | Literal[DType.UINT8]
    attrs: ClassVar[Attrs] = Attrs(each_call=True)

    @property
    def made(self) -> DType:
        return DType.FLOAT32

    def converted(self, x: Expr) -> Expr:
        if self.kind is DType.UINT8:
            return x.astype(DType.FLOAT32)
        return decoded(x, self.kind)


@dataclass(frozen=True)
class Encode(Converted):
    """The codes of floats as numbers of ``kind`` (:func:`.codes.encoded`)."""

    kind: Narrow
    saturate: bool = True
    rounding: str = "up"

    @property
    def made(self) -> DType:
        return DType.UINT8

    def converted(self, x: Expr) -> Expr:
        return encoded(x, self.kind, saturate=self.saturate, rounding=self.rounding)


@dataclass(frozen=True)
class Wrap(Converted):
    """Numbers as integers of ``kind``, which keep the low bits."""

    kind: Narrow

    @property
    def made(self) -> DType:
        return self.kind.held

    def converted(self, x: Expr) -> Expr:
        return wrapped(x, self.kind)


def packed_shape(shape: Shape, kind: Narrow) -> Shape:
    """The shape of the bytes that hold elements of ``kind`` of the given *shape*.

    Rows of whole bytes keep the other axes.
    """
    count = kind.in_a_byte
    if count == 1:
        return shape
    if _in_rows(shape, kind):
        return (*shape[:-1], shape[-1] // count)
    total = prod_of(shape)
    return ((total + (count - 1)) // count,)


@dataclass(frozen=True)
class Unpack(Op):
    """Elements of ``kind``, of the given shape, one a byte, from bytes that hold several."""

    kind: Narrow
    shape: Shape
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        if inputs[0] != TensorType(packed_shape(self.shape, self.kind), DType.UINT8):
            raise ValueError(f"{inputs[0]} does not hold {self.shape} of {self.kind.value}")
        return TensorType(self.shape, self.kind.held)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        (x,) = inputs

        def element(*i: Expr) -> Expr:
            if _in_rows(self.shape, self.kind):
                return self._part(x[(*i[:-1], i[-1] // self.kind.in_a_byte)], i[-1])
            place = flat(i, self.shape)
            return self._part(x[place // self.kind.in_a_byte], place)

        name, axes = names.fresh("unpack"), image_axes(len(self.shape))
        return compute(self.shape, element, name=name, names=axes, attrs=Attrs(each_call=True))

    def _part(self, byte: Expr, place: Expr) -> Expr:
        """The element at *place* in its row, which lies in *byte*."""
        bits, count = self.kind.bits, self.kind.in_a_byte
        held = byte.astype(self.kind.held)
        parts = [held << (8 - bits * (n + 1)) >> (8 - bits) for n in range(count - 1)]
        parts.append(held >> (8 - bits))
        found = parts[-1]
        for n in reversed(range(count - 1)):
            found = b.select((place % count).equal(n), parts[n], found)
        return found


@dataclass(frozen=True)
class Pack(Op):
    """Bytes that hold elements of ``kind``, which are given one a byte."""

    kind: Narrow
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(packed_shape(inputs[0].shape, self.kind), DType.UINT8)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        (x,) = inputs
        shape = packed_shape(x.shape, self.kind)
        count, bits = self.kind.in_a_byte, self.kind.bits
        rows = _in_rows(x.shape, self.kind)

        def part(i: Sequence[Expr], n: int) -> Expr:
            place = i[-1] * count + n
            value = x[(*i[:-1], place)] if rows else _guarded(x, place)
            return (value.astype(DType.UINT8) & ((1 << bits) - 1)) << (bits * n)

        def byte(*i: Expr) -> Expr:
            return reduce(lambda a, c: a | c, (part(i, n) for n in range(count)))

        return compute(shape, byte, name=names.fresh("pack"), names=image_axes(len(shape)))


def _in_rows(shape: Shape, kind: Narrow) -> bool:
    """Whether the rows of an array of *shape* fill whole bytes, whatever its sizes are."""
    last: AnyExtent = shape[-1] if shape else 1
    return isinstance(last, int) and last > 0 and last % kind.in_a_byte == 0


def _guarded(x: Tensor, place: Expr) -> Expr:
    """The element of *x* at *place* of all its elements, 0 beyond the last one."""
    inside = place < as_expr(prod_of(x.shape))
    return b.select(inside, x[tuple(digits(place, x.shape))], 0)
