"""Signals: windows, Fourier transforms as products with constant matrices, mel filters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ansorpy.frontend.onnx.context import Cut, NodeContext, Unsupported, dtype_of
from ansorpy.graph.ops import Fn, Gather, MatMul, Pad, PadMode
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import least

__all__ = ["OPERATORS"]

Matrix = NDArray[np.float64]


def _window(*weights: float) -> Callable[[NodeContext], str]:
    """The sum of *weights*, each times the cosine of so many periods over the window's size."""

    def build(ctx: NodeContext) -> str:
        (size,) = ctx.constant_ints(0, "size")
        dtype = dtype_of(ctx.attr("output_datatype", 1))
        ctx.constant_shape((size,), dtype)
        length = size if ctx.attr("periodic", 1) else size - 1
        turns = 2 * np.pi * np.arange(size) / max(length, 1)
        values = sum(weight * np.cos(n * turns) for n, weight in enumerate(weights))
        return ctx.builder.add_constant(ctx.node.output[0], np.asarray(values).astype(dtype.numpy))

    return build


def dft(ctx: NodeContext) -> str:
    """The Fourier transform along an axis of real (``[..., 1]``) or complex (``[..., 2]``) data."""
    rank = len(ctx.shape())
    if ctx.opset >= 20:
        (axis,) = ctx.constant_ints(2, "axis") if ctx.has_input(2) else (-2,)
    else:
        axis = ctx.attr("axis", 1)
    axis = ctx.axis(axis, rank)
    inverse, onesided = bool(ctx.attr("inverse", 0)), bool(ctx.attr("onesided", 0))
    given, parts = (ctx.number(ctx.shape()[a], "a transform") for a in (axis, rank - 1))
    whole = 2 * (given - 1) if inverse and onesided else given
    (length,) = ctx.constant_ints(1, "dft_length") if ctx.has_input(1) else (whole,)
    if axis == rank - 1 or parts not in (1, 2) or length < 1:
        raise Unsupported(f"a transform along axis {axis} of {list(ctx.shape())}",
                          "the last axis holds the real and the imaginary part")  # fmt: skip
    if onesided and parts == (1 if inverse else 2):
        raise Unsupported("onesided=1", "use it from real to complex data, or back with inverse=1")
    matrix = (
        _inverse_real(length) if inverse and onesided else _transform(length, inverse, onesided)
    )
    if parts == 1 and not (inverse and onesided):
        matrix = matrix[::2]
    taken = matrix.shape[0] // parts
    last = (*(a for a in range(rank) if a not in (axis, rank - 1)), axis, rank - 1)
    moved = _resized(ctx, ctx.transpose(ctx.input(), last), taken)
    made = _product(ctx, moved, matrix, 1 if inverse and onesided else 2)
    return ctx.transpose(made, tuple(last.index(a) for a in range(rank)))


def _transform(length: int, inverse: bool, onesided: bool) -> Matrix:
    """``[length * 2, kept * 2]``: from parts of the data to parts of the result."""
    kept = length // 2 + 1 if onesided else length
    angles = 2 * np.pi * (np.outer(np.arange(length), np.arange(kept)) % length) / length
    cos, sin = np.cos(angles), np.sin(angles) * (-1 if inverse else 1)
    matrix = np.empty((length, 2, kept, 2))
    matrix[:, 0, :, 0], matrix[:, 0, :, 1] = cos, -sin
    matrix[:, 1, :, 0], matrix[:, 1, :, 1] = sin, cos
    return matrix.reshape(length * 2, kept * 2) / (length if inverse else 1)


def _inverse_real(length: int) -> Matrix:
    """``[kept * 2, length]``: from the parts of half a spectrum to real data."""
    kept = length // 2 + 1
    angles = 2 * np.pi * (np.outer(np.arange(kept), np.arange(length)) % length) / length
    twice = np.where((np.arange(kept) == 0) | (2 * np.arange(kept) == length), 1.0, 2.0)[:, None]
    matrix = np.stack([np.cos(angles), -np.sin(angles)], axis=1) * twice[:, None] / length
    return matrix.reshape(kept * 2, length)


def _resized(ctx: NodeContext, value: str, wanted: int) -> str:
    """*value* cut, or filled up with zeros, to *wanted* elements of its last axis but one."""
    shape = ctx.builder.types[value].shape
    have = ctx.number(shape[-2], "a transform")
    if have >= wanted:
        return ctx.slice(value, {len(shape) - 2: Cut(0, wanted)})
    none = (0,) * len(shape)
    return ctx.emit(Pad(none, (*none[:-2], wanted - have, 0), PadMode.CONSTANT, 0.0), [value])


def _product(ctx: NodeContext, value: str, matrix: Matrix, parts: int) -> str:
    """The last two axes of *value*, flattened, times *matrix*, whose columns have *parts*."""
    shape, dtype = ctx.builder.types[value].shape, ctx.type().dtype
    ctx.constant_shape(matrix.shape, dtype)
    flat = ctx.reshape(value, (*shape[:-2], matrix.shape[0]))
    made = ctx.emit(MatMul(), [flat, ctx.literal(matrix.astype(dtype.numpy), dtype)])
    return ctx.reshape(made, (*shape[:-2], matrix.shape[1] // parts, parts))


def stft(ctx: NodeContext) -> str:
    """Fourier transforms of frames of a signal, each times a window."""
    (step,) = ctx.constant_ints(1, "frame_step")
    window = ctx.has_input(2)
    if ctx.has_input(3):
        (size,) = ctx.constant_ints(3, "frame_length")
    elif window:
        size = ctx.number(ctx.shape(2)[0], "a window")
    else:
        raise Unsupported("frame_length", "give it, or a window")
    batch, length, *rest = ctx.shape()
    parts = ctx.number(rest[0], "the parts of a number") if rest else 1
    if step < 1 or size < 1 or least(length - size) < 0:
        raise Unsupported(f"frames of {size} every {step}", f"the signal has {length} elements")
    frames = (length - size) // step + 1
    starts = ctx.apply(Fn.MUL, ctx.places(frames, 1), ctx.literal(step, DType.INT64))
    places = ctx.apply(Fn.ADD, starts, ctx.literal(np.arange(size), DType.INT64))
    signal = ctx.reshape(ctx.input(), (batch, length, parts))
    cut = ctx.emit(Gather(1), [signal, places])  # [batch, frames, size, parts]
    if window:
        cut = ctx.apply(Fn.MUL, cut, ctx.reshape(ctx.input(2), (1, 1, size, 1)))
    matrix = _transform(size, inverse=False, onesided=bool(ctx.attr("onesided", 1)))
    return _product(ctx, cut, matrix[::2] if parts == 1 else matrix, 2)


def mel_weight_matrix(ctx: NodeContext) -> str:
    """Triangular filters, evenly spaced on the mel scale; all parameters must be known."""
    (bins,), (length,), (rate,) = (
        ctx.constant_ints(n, name)
        for n, name in enumerate(("num_mel_bins", "dft_length", "sample_rate"))
    )
    low, high = (
        float(ctx.constant(n, name).item())
        for n, name in ((3, "lower_edge_hertz"), (4, "upper_edge_hertz"))
    )
    dtype = dtype_of(ctx.attr("output_datatype", 1))
    spectrum = length // 2 + 1
    ctx.constant_shape((spectrum, bins), dtype)
    mels = 2595 * np.log10(1 + np.array([low, high]) / 700)
    steps = mels[0] + np.arange(bins + 2) * ((mels[1] - mels[0]) / (bins + 2))
    hertz = 700 * (10 ** (steps / 2595) - 1)
    edges = ((length + 1) * hertz // rate).astype(np.int64)
    found = np.zeros((spectrum, bins))
    for n in range(bins):
        first, top, last = edges[n : n + 3]
        if top == first:
            found[top, n] = 1
        else:
            found[first : top + 1, n] = (np.arange(first, top + 1) - first) / (top - first)
        if last > top:
            found[top:last, n] = (last - np.arange(top, last)) / (last - top)
    return ctx.builder.add_constant(ctx.node.output[0], found.astype(dtype.numpy))


OPERATORS: dict[str, Callable[[NodeContext], str]] = {
    "BlackmanWindow": _window(0.42, -0.5, 0.08),
    "DFT": dft,
    "HammingWindow": _window(25 / 46, -21 / 46),
    "HannWindow": _window(0.5, -0.5),
    "MelWeightMatrix": mel_weight_matrix,
    "STFT": stft,
}
