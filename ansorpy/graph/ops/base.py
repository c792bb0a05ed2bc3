"""The interface of operators of a network graph, and functions on shapes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar

from numpy.typing import NDArray

from ansorpy.graph.ops.names import Names
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, Extent, Symbolic, dims_of, least, most, prod_of
from ansorpy.ir.symbols import Dim
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = [
    "NARROW", "Arrangement", "Op", "Operand", "Pattern", "Rows", "Shape", "Stored", "TensorType",
    "are_broadcast_rows", "broadcast", "channels_last_order", "common_dtype", "identity_order",
    "is_first_cut", "pick", "product_dtype", "runs", "types_of",
]  # fmt: skip

NARROW = (DType.INT8, DType.UINT8)
"""Types whose products are summed as int32, which is exact; operands may differ in signedness."""

Shape = tuple[AnyExtent, ...]


@dataclass(frozen=True)
class TensorType:
    """The type of a tensor: extents, which may depend on dimensions, and an element type."""

    shape: Shape
    dtype: DType

    def __str__(self) -> str:
        return f"{self.dtype.value}{list(self.shape)}"

    @property
    def size(self) -> AnyExtent:
        return prod_of(self.shape)

    @property
    def bytes(self) -> AnyExtent:
        return self.size * self.dtype.bytes


class Pattern(IntEnum):
    """How an operator may be fused; a larger value is harder to fuse.

    ELEMENTWISE reads each input at its own (broadcast) index.  INJECTIVE reads one element of one
    input, anywhere, per output element.  REDUCTION accepts both before it and ELEMENTWISE after it.
    COMPLEX (convolution, matrix product, pooling) accepts ELEMENTWISE after it.  OPAQUE
    is never fused.
    """

    ELEMENTWISE = 0
    INJECTIVE = 1
    REDUCTION = 2
    COMPLEX = 3
    OPAQUE = 4


@dataclass(frozen=True)
class Stored:
    """An operand in storage: its shape in the model, and the order in which its axes are stored.

    Stored axis ``d`` is the model's axis ``order[d]``.
    """

    shape: Shape
    order: Shape


@dataclass(frozen=True)
class Operand:
    """How an operand is arranged: stored in *order*, then passed through *moves* in sequence.

    If *order* has more axes than the operand, unit axes are added in front of the operand.
    """

    order: Shape
    moves: tuple[Op, ...] = ()


@dataclass(frozen=True)
class Arrangement:
    """An operator on operands in a chosen storage order.

    Attributes:
        op: The operator on the arranged operands; None if the first operand, as it is stored, is
            already the result.
        operands: One entry per operand.
        order: The stored order of the result.
    """

    op: Op | None
    operands: tuple[Operand, ...]
    order: Shape


@dataclass(frozen=True)
class Rows:
    """An operand whose first axis is *cut* into pieces, or that every piece reads as a whole.

    *shape* is the shape of the whole operand.
    """

    shape: Shape
    cut: bool

    def spans(self, rank: int) -> bool:
        """True when it has one row per row of a result of *rank* axes, or is the same for all."""
        if self.cut:
            return len(self.shape) == rank
        return len(self.shape) < rank or self.shape[0] == 1


def _symbolic(values: Iterable[object]) -> Iterator[Symbolic]:
    """The extents among *values*, and in tuples and types among them, that are no numbers."""
    for value in values:
        if isinstance(value, Symbolic):
            yield value
        elif isinstance(value, TensorType):
            yield from _symbolic(value.shape)
        elif isinstance(value, tuple):
            yield from _symbolic(value)


class Op(ABC):
    """Base of all operators: frozen dataclasses with typed attributes and one output."""

    pattern: ClassVar[Pattern]
    roles: ClassVar[tuple[str, ...]] = ()
    """Names of a product's operands, which are read as they are stored; further ones are masks.

    Empty for operators that work on any view of their operands.
    """
    enlarges: ClassVar[bool] = False
    """True if the result may be much larger than the operands, so transposing these is cheaper."""

    @property
    def bodies(self) -> Sequence[Any]:
        """The graphs that it runs; none, unless it is the result of a region."""
        return ()

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The dimensions that its attributes depend on."""
        return dims_of(_symbolic(vars(self).values()))

    @abstractmethod
    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        """Shape and type of the output; raises ``ValueError`` for inputs that do not fit."""

    @abstractmethod
    def define(self, inputs: Sequence[Any], names: Names) -> ComputeOp:
        """The last of the stages that compute the output from the tensors *inputs*.

        At this point images and weights are stored channels last.  ``Elementwise`` also accepts
        literals.
        """

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        """True if rows of a result of *shape* need only the same rows of *operands* that are cut.

        A row consists of all elements with the same index on the first axis.
        """
        return False

    def on_rows(self, rows: int) -> Op:
        """The operator that computes *rows* rows of its result, if it keeps rows."""
        return self

    def arrange(self, operands: Sequence[Stored], shape: Shape) -> Arrangement:
        """How the operator takes *operands*, given how they are stored, for a result of *shape*.

        By default all operands take the order of the first operand of the highest rank that is not
        in the model's order, if :meth:`reordered` supports that; otherwise the model's order.
        """
        rank = max((len(o.shape) for o in operands), default=0)
        model = identity_order(rank)
        turned = (o.order for o in operands if len(o.shape) == rank and o.order != model)
        order = next(turned, model)
        op = self.reordered(order)
        if op is None:
            kept = tuple(Operand(identity_order(len(o.shape))) for o in operands)
            return Arrangement(self, kept, identity_order(len(shape)))
        placed = Operand(order)
        return Arrangement(op, (placed,) * len(operands), self.output_order(order))

    def reordered(self, order: Shape) -> Op | None:
        """The same operator on operands that are all stored in *order*.

        None if it accepts its operands only in the model's order.
        """
        return None

    def output_order(self, order: Shape) -> Shape:
        """Stored order of the result of :meth:`reordered`."""
        return order

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
        """The result for constant *inputs*, by numpy; None to use the definition instead."""
        return None

    @property
    def label(self) -> str:
        """A short lower-case word for names and tables."""
        return type(self).__name__.lower()


def types_of(tensors: Iterable[Tensor]) -> list[TensorType]:
    """Shape and element type of each of *tensors*."""
    return [TensorType(t.shape, t.dtype) for t in tensors]


def common_dtype(inputs: Sequence[TensorType]) -> DType:
    """The common element type of *inputs*; raises ``ValueError`` if their types differ."""
    found = {t.dtype for t in inputs}
    if len(found) > 1:
        names = ", ".join(sorted(dtype.value for dtype in found))
        raise ValueError(f"operands have different element types: {names}")
    return inputs[0].dtype


def product_dtype(inputs: Sequence[TensorType]) -> DType:
    """The element type of sums of products of *inputs*."""
    return DType.INT32 if all(t.dtype in NARROW for t in inputs) else common_dtype(inputs)


def identity_order(rank: int) -> Shape:
    """The model's own order of *rank* axes."""
    return tuple(range(rank))


def channels_last_order(rank: int) -> Shape:
    """The order of an image, ``[n, c, *s]`` in the model, whose channels are stored last."""
    return (0, *range(2, rank), 1) if rank > 2 else identity_order(rank)


def is_first_cut(operands: Sequence[Rows]) -> bool:
    """True when the first operand is cut and every piece reads the others as a whole."""
    return operands[0].cut and not any(o.cut for o in operands[1:])


def are_broadcast_rows(operands: Sequence[Rows], shape: Shape) -> bool:
    """True when operands that are cut have all rows of *shape*, and all rows share the others."""
    return all(o.spans(len(shape)) for o in operands) and all(
        o.shape[0] == shape[0] for o in operands if o.cut
    )


def pick(values: Shape, perm: Shape) -> Shape:
    """*values*, one per axis, in the order *perm*."""
    return tuple(values[p] for p in perm)


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The numpy broadcast of *shapes*; raises ``ValueError`` when two extents disagree."""
    rank = max(len(shape) for shape in shapes)
    aligned = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    columns = zip(*aligned, strict=True)
    result = tuple(next((e for e in column if e != 1), 1) for column in columns)
    for shape in aligned:
        if any(e not in (1, r) for e, r in zip(shape, result, strict=True)):
            raise ValueError(f"shapes {list(shapes)} do not broadcast")
    return result


def runs(before: Shape, after: Shape) -> Iterator[tuple[Shape, Shape]]:
    """The shortest runs of axes of *before* that become runs of *after*, in order."""
    i = j = 0
    while i < len(before) or j < len(after):
        first, second = i, j
        left, i = (before[i], i + 1) if i < len(before) else (1, i)
        right, j = (after[j], j + 1) if j < len(after) else (1, j)
        while left != right:
            if j == len(after) or (i < len(before) and _is_part(left, right)):
                left, i = left * before[i], i + 1
            else:
                right, j = right * after[j], j + 1
        yield tuple(range(first, i)), tuple(range(second, j))


def _is_part(a: Extent, b: Extent) -> bool:
    """True when *a*, which is not *b*, grows into a common multiple of both before *b* does."""
    if most(a - b) < 0 or least(a - b) > 0:
        return most(a - b) < 0
    return b % a == 0
