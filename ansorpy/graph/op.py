"""The operators of a network graph: one frozen class a kind, with typed attributes.

Every operator has one output.  ``infer`` gives its shape and type from its inputs'; ``pattern``
says how it may be fused.  What the frontend's richer operators mean is said in these few:
batch normalisation is a multiply and an add, an average is a sum and a multiply, a matrix product
has no transposes and no bias of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import ClassVar

from ansorpy.ir.dtypes import DType

__all__ = [
    "Cast", "Concat", "Conv", "ConvTranspose", "Elementwise", "Fn", "Lrn", "MatMul", "Op", "Pad",
    "PadMode", "Pattern", "Pool", "PoolKind", "Reduce", "ReduceOp", "Reshape", "Shape", "Shuffle",
    "Slice", "Softmax", "TensorType", "Transpose", "broadcast", "windows",
]  # fmt: skip

Shape = tuple[int, ...]


@dataclass(frozen=True)
class TensorType:
    """What a tensor is, apart from its name: a static shape and an element type."""

    shape: Shape
    dtype: DType

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.bytes


class Pattern(IntEnum):
    """How an operator may be fused; a larger value is harder to fuse.

    ELEMENTWISE reads each input at its own (broadcast) index.  INJECTIVE reads one element of one
    input an output element, anywhere.  REDUCTION accepts both before it and ELEMENTWISE after it.
    COMPLEX (convolution, matrix product, pooling) accepts ELEMENTWISE after it.  OPAQUE
    stays alone.
    """

    ELEMENTWISE = 0
    INJECTIVE = 1
    REDUCTION = 2
    COMPLEX = 3
    OPAQUE = 4


class Op:
    """Base of all operators."""

    pattern: ClassVar[Pattern]
    moves_only: ClassVar[bool] = False
    """True when the operator only reads elsewhere: it costs nothing as an index map."""

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        """Shape and type of the output; raises ``ValueError`` for inputs that do not fit."""
        raise NotImplementedError(type(self).__name__)

    @property
    def label(self) -> str:
        """A short lower-case word for names and tables."""
        return type(self).__name__.lower()


class Fn(Enum):
    """Elementwise functions; ``Elementwise.params`` holds their literal parameters."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    MAX = "max"
    MIN = "min"
    POW = "pow"
    RELU = "relu"
    LEAKY_RELU = "leaky_relu"
    PRELU = "prelu"
    ELU = "elu"
    SELU = "selu"
    SIGMOID = "sigmoid"
    HARD_SIGMOID = "hard_sigmoid"
    TANH = "tanh"
    SOFTPLUS = "softplus"
    SOFTSIGN = "softsign"
    CLIP = "clip"
    EXP = "exp"
    LOG = "log"
    SQRT = "sqrt"
    RECIPROCAL = "reciprocal"
    NEG = "neg"
    ABS = "abs"
    ERF = "erf"
    FLOOR = "floor"
    CEIL = "ceil"


@dataclass(frozen=True)
class Elementwise(Op):
    """``fn`` at each element, operands broadcast as numpy does."""

    fn: Fn
    params: tuple[float, ...] = ()
    pattern: ClassVar[Pattern] = Pattern.ELEMENTWISE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        if len({t.dtype for t in inputs}) > 1:
            raise ValueError("operands have different element types")
        return TensorType(broadcast([t.shape for t in inputs]), inputs[0].dtype)

    @property
    def label(self) -> str:
        return self.fn.value


@dataclass(frozen=True)
class Cast(Op):
    """Convert to ``dtype``."""

    dtype: DType
    pattern: ClassVar[Pattern] = Pattern.ELEMENTWISE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(inputs[0].shape, self.dtype)


@dataclass(frozen=True)
class Conv(Op):
    """Convolution over the spatial axes; inputs are data and weight.

    Channels first: data ``[n, c, *s]``, weight ``[co, c / groups, *k]``.
    Channels last: data ``[n, *s, c]``, weight ``[*k, c, co]``; with groups
    ``[*k, groups, c / groups, co / groups]``; depthwise (groups of one channel) ``[*k, c]``.
    """

    strides: Shape
    pads_begin: Shape
    pads_end: Shape
    dilations: Shape
    groups: int = 1
    channels_last: bool = False
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        data, weight = inputs
        rank = len(self.strides)
        if self.channels_last:
            batch, spatial = data.shape[0], data.shape[1:-1]
            kernel, channels = weight.shape[:rank], self._channels(weight.shape[rank:])
        else:
            batch, spatial = data.shape[0], data.shape[2:]
            kernel, channels = weight.shape[2:], weight.shape[0]
            if weight.shape[1] * self.groups != data.shape[1]:
                raise ValueError(
                    f"the weight expects {weight.shape[1] * self.groups} input channels, "
                    f"the data has {data.shape[1]}"
                )
        out = windows(spatial, kernel, self.strides, self.pads_begin, self.pads_end, self.dilations)
        shape = (batch, *out, channels) if self.channels_last else (batch, channels, *out)
        return TensorType(shape, data.dtype)

    @property
    def is_padded(self) -> bool:
        """True when there is a padding stage for certain: end padding alone may go unread."""
        return any(self.pads_begin)

    def _channels(self, tail: Shape) -> int:
        return tail[-1] if len(tail) < 3 else tail[0] * tail[-1]


@dataclass(frozen=True)
class ConvTranspose(Op):
    """A transposed convolution: ``out[i * stride + k * dilation - pad] += data[i] * w[k]``.

    Channels first: data ``[n, c, *s]``, weight ``[c, co / groups, *k]``.
    Channels last: data ``[n, *s, c]``, weight ``[*k, c, co]``; with groups
    ``[*k, groups, c / groups, co / groups]``.  ``out`` is the image's size, whatever the rule
    that chose it; what no tap reaches is 0.
    """

    strides: Shape
    pads_begin: Shape
    out: Shape
    dilations: Shape
    groups: int = 1
    channels_last: bool = False
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        data, weight = inputs
        rank = len(self.strides)
        if self.channels_last:
            tail = weight.shape[rank:]
            co = tail[-1] if len(tail) == 2 else tail[0] * tail[-1]
            return TensorType((data.shape[0], *self.out, co), data.dtype)
        if weight.shape[0] != data.shape[1]:
            raise ValueError(
                f"the weight expects {weight.shape[0]} input channels, the data has {data.shape[1]}"
            )
        return TensorType((data.shape[0], weight.shape[1] * self.groups, *self.out), data.dtype)


@dataclass(frozen=True)
class MatMul(Op):
    """Matrix product of the last two axes, leading axes broadcast: ``[.., m, k] x [.., k, n]``."""

    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        a, b = inputs
        if a.shape[-1] != b.shape[-2]:
            raise ValueError(f"inner sizes differ: {a.shape} x {b.shape}")
        batch = broadcast([a.shape[:-2], b.shape[:-2]])
        return TensorType((*batch, a.shape[-2], b.shape[-1]), a.dtype)


class PoolKind(Enum):
    MAX = "max"
    SUM = "sum"


@dataclass(frozen=True)
class Pool(Op):
    """Reduce each window; positions outside the data count as the reduction's identity."""

    kind: PoolKind
    kernel: Shape
    strides: Shape
    pads_begin: Shape
    pads_end: Shape
    dilations: Shape
    channels_last: bool = False
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        (data,) = inputs
        spatial = data.shape[1:-1] if self.channels_last else data.shape[2:]
        out = windows(
            spatial, self.kernel, self.strides, self.pads_begin, self.pads_end, self.dilations
        )
        if self.channels_last:
            return TensorType((data.shape[0], *out, data.shape[-1]), data.dtype)
        return TensorType((*data.shape[:2], *out), data.dtype)

    @property
    def label(self) -> str:
        return f"{self.kind.value}pool"


@dataclass(frozen=True)
class Lrn(Op):
    """``x * (bias + alpha / size * sum of squares in a window of channels) ** -beta``."""

    size: int
    alpha: float
    beta: float
    bias: float
    axis: int = 1
    pattern: ClassVar[Pattern] = Pattern.OPAQUE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]


class ReduceOp(Enum):
    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"


@dataclass(frozen=True)
class Reduce(Op):
    """Reduce over ``axes``; each is kept with extent 1 when ``keepdims``."""

    kind: ReduceOp
    axes: Shape
    keepdims: bool
    pattern: ClassVar[Pattern] = Pattern.REDUCTION

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        shape = inputs[0].shape
        kept = (
            (1 if d in self.axes else e) for d, e in enumerate(shape)
            if self.keepdims or d not in self.axes
        )  # fmt: skip
        return TensorType(tuple(kept), inputs[0].dtype)

    @property
    def label(self) -> str:
        return f"reduce_{self.kind.value}"


@dataclass(frozen=True)
class Softmax(Op):
    """``exp(x) / sum(exp(x))``, the sum over all of ``axes`` together."""

    axes: Shape
    pattern: ClassVar[Pattern] = Pattern.OPAQUE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]


@dataclass(frozen=True)
class Concat(Op):
    """Join along ``axis``."""

    axis: int
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        first = inputs[0]
        rest = {t.shape[: self.axis] + t.shape[self.axis + 1 :] for t in inputs}
        if len(rest) > 1:
            raise ValueError(f"parts differ outside axis {self.axis}: {[t.shape for t in inputs]}")
        total = sum(t.shape[self.axis] for t in inputs)
        shape = (*first.shape[: self.axis], total, *first.shape[self.axis + 1 :])
        return TensorType(shape, first.dtype)


@dataclass(frozen=True)
class Reshape(Op):
    """The same elements in the same row-major order under another shape."""

    shape: Shape
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE
    moves_only: ClassVar[bool] = True

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        if math.prod(self.shape) != inputs[0].size:
            raise ValueError(f"{inputs[0].shape} cannot be reshaped to {self.shape}")
        return TensorType(self.shape, inputs[0].dtype)


@dataclass(frozen=True)
class Transpose(Op):
    """Output axis ``d`` is input axis ``perm[d]``."""

    perm: Shape
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE
    moves_only: ClassVar[bool] = True

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(tuple(inputs[0].shape[p] for p in self.perm), inputs[0].dtype)


@dataclass(frozen=True)
class Shuffle(Op):
    """Split ``axis`` into ``factors``, permute the parts by ``perm``, merge them again."""

    axis: int
    factors: Shape
    perm: Shape
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE
    moves_only: ClassVar[bool] = True

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]


@dataclass(frozen=True)
class Slice(Op):
    """Element ``i`` along axis ``d`` is input element ``starts[d] + i * steps[d]``."""

    starts: Shape
    sizes: Shape
    steps: Shape
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE
    moves_only: ClassVar[bool] = True

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(self.sizes, inputs[0].dtype)


class PadMode(Enum):
    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"


@dataclass(frozen=True)
class Pad(Op):
    """Extend each axis; ``value`` fills CONSTANT padding.  Negative amounts crop."""

    begin: Shape
    end: Shape
    mode: PadMode
    value: float
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        shape = tuple(
            b + e + a for b, e, a in zip(self.begin, inputs[0].shape, self.end, strict=True)
        )
        return TensorType(shape, inputs[0].dtype)


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The numpy broadcast of *shapes*; raises ``ValueError`` when two extents disagree."""
    rank = max(len(shape) for shape in shapes)
    aligned = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result = tuple(max(column) for column in zip(*aligned, strict=True))
    for shape in aligned:
        if any(e not in (1, r) for e, r in zip(shape, result, strict=True)):
            raise ValueError(f"shapes {list(shapes)} do not broadcast")
    return result


def windows(
    spatial: Shape, kernel: Shape, strides: Shape, begin: Shape, end: Shape, dilations: Shape
) -> Shape:
    """How many windows fit along each spatial axis; raises ``ValueError`` when none does."""
    counts = tuple(
        (size + lo + hi - dilation * (k - 1) - 1) // stride + 1
        for size, k, stride, lo, hi, dilation in zip(
            spatial, kernel, strides, begin, end, dilations, strict=True
        )
    )
    if any(count < 1 for count in counts):
        raise ValueError(f"a window of {kernel} does not fit into {spatial}")
    return counts
