"""Convolutions, plain and transposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.graph.op.base import Op, Pattern, Shape, TensorType, common_dtype, product_dtype

__all__ = ["Conv", "ConvTranspose", "windows"]


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
            kernel, channels = weight.shape[:rank], _channels(weight.shape[rank:])
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
        return TensorType(shape, product_dtype(inputs))

    @property
    def is_padded(self) -> bool:
        """True when there certainly is a padding stage: end padding alone may never be read."""
        return any(self.pads_begin)


@dataclass(frozen=True)
class ConvTranspose(Op):
    """A transposed convolution: ``out[i * stride + k * dilation - pad] += data[i] * w[k]``.

    Channels first: data ``[n, c, *s]``, weight ``[c, co / groups, *k]``.
    Channels last: data ``[n, *s, c]``, weight ``[*k, c, co]``; with groups
    ``[*k, groups, c / groups, co / groups]``.  ``out`` is the size of the
    output image, however it was chosen; elements that no tap reaches are 0.
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
            channels = _channels(weight.shape[rank:])
            return TensorType((data.shape[0], *self.out, channels), data.dtype)
        if weight.shape[0] != data.shape[1]:
            raise ValueError(
                f"the weight expects {weight.shape[0]} input channels, the data has {data.shape[1]}"
            )
        shape = (data.shape[0], weight.shape[1] * self.groups, *self.out)
        return TensorType(shape, common_dtype(inputs))


def _channels(tail: Shape) -> int:
    """Output channels of a channels-last weight, given its axes after the kernel's."""
    return tail[-1] if len(tail) < 3 else tail[0] * tail[-1]


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
