"""Signals: windows, Fourier transforms as products with constant matrices, mel filters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ansorpy.frontend.onnx.context import Cut, NodeContext, Translate, dtype_of
from ansorpy.frontend.onnx.operators.movement import resized
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Fn, Gather, MatMul
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, extreme, least
from ansorpy.ir.symbols import SizeOp

__all__ = ["OPERATORS"]

FLOAT64 = DType.FLOAT64
Matrix = NDArray[np.float64]


def _window(*weights: float) -> Callable[[NodeContext], str]:
    """The sum of *weights*, each times the cosine of so many periods over the window's size."""

    def build(ctx: NodeContext) -> str:
        (size,) = ctx.extents(0, "size")
        ctx.constant_shape((size,), FLOAT64)
        length = size if ctx.attr("periodic", 1) else size - 1
        period = ctx.size(extreme(SizeOp.MAX, length, 1), FLOAT64)
        turns = ctx.apply(Fn.DIV, ctx.cast(ctx.places(size), FLOAT64), period)
        total = ctx.literal(weights[0], FLOAT64)
        for n, weight in enumerate(weights[1:], 1):
            angle = ctx.apply(Fn.MUL, turns, ctx.literal(2 * np.pi * n, FLOAT64))
            wave = ctx.apply(Fn.MUL, ctx.apply(Fn.COS, angle), ctx.literal(weight, FLOAT64))
            total = ctx.apply(Fn.ADD, total, wave)
        return ctx.cast(total, dtype_of(ctx.attr("output_datatype", 1)))

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
    gives_real = inverse and onesided
    given, parts = (ctx.number(ctx.shape()[a], "a transform") for a in (axis, rank - 1))
    whole = 2 * (given - 1) if gives_real else given
    (length,) = ctx.constant_ints(1, "dft_length") if ctx.has_input(1) else (whole,)
    if axis == rank - 1 or parts not in (1, 2) or length < 1:
        raise Unsupported(f"a transform along axis {axis} of {list(ctx.shape())}",
                          "the last axis holds the real and the imaginary part")  # fmt: skip
    if onesided and parts == (1 if inverse else 2):
        raise Unsupported("onesided=1", "use it from real to complex data, or back with inverse=1")
    matrix = _inverse_real(length) if gives_real else _transform(length, inverse, onesided)
    if parts == 1:  # then, the result is complex
        matrix = matrix[::2]
    moved = ctx.move_axis(ctx.input(), axis, rank - 2)
    shape = ctx.type_of(moved).shape
    taken = resized(ctx, moved, (*shape[:-2], matrix.shape[0] // parts, parts))
    made = _product(ctx, taken, matrix, 1 if gives_real else 2)
    return ctx.move_axis(made, rank - 2, axis)


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


def _product(ctx: NodeContext, value: str, matrix: Matrix, parts: int) -> str:
    """The last two axes of *value*, flattened, times *matrix*, whose columns have *parts*."""
    shape, dtype = ctx.type_of(value).shape, ctx.type().dtype
    ctx.constant_shape(matrix.shape, dtype)
    flat = ctx.reshape(value, (*(shape[:-2] or (1,)), matrix.shape[0]))
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
        advice = f"the signal may have only {least(length)} elements; let it have {size} or more"
        raise Unsupported(f"frames of {size} every {step}", advice)
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
    """Triangular filters, evenly spaced on the mel scale: a row for each frequency."""
    (bins,), (length,) = ctx.extents(0, "num_mel_bins"), ctx.extents(1, "dft_length")
    spectrum = length // 2 + 1
    ctx.constant_shape((spectrum, bins), FLOAT64)
    edges = _mel_edges(ctx, bins, ctx.size(length + 1, FLOAT64))
    first, top, last = (ctx.reshape(ctx.slice(edges, {0: Cut(n, bins)}), (1, bins))
                        for n in range(3))  # fmt: skip
    place = ctx.cast(ctx.places(spectrum, 1), FLOAT64)
    zero, one = (ctx.literal(float(number), FLOAT64) for number in range(2))

    def side(start: str, end: str) -> str:
        """From 0 at *start* to 1 at *end*; 1 if these are alike."""
        way = ctx.apply(Fn.SUB, end, start)
        is_point = ctx.apply(Fn.EQUAL, way, zero)
        share = ctx.apply(Fn.DIV, ctx.apply(Fn.SUB, place, start),
                          ctx.apply(Fn.WHERE, is_point, one, way))  # fmt: skip
        inside = ctx.apply(Fn.EQUAL, place, end)
        return ctx.apply(Fn.WHERE, is_point, ctx.cast(inside, FLOAT64), share)

    is_rising = ctx.apply(Fn.LESS_EQUAL, place, top)
    height = ctx.apply(Fn.WHERE, is_rising, side(first, top), side(last, top))
    return ctx.cast(ctx.apply(Fn.MAX, height, zero), dtype_of(ctx.attr("output_datatype", 1)))


def _mel_edges(ctx: NodeContext, bins: AnyExtent, count: str) -> str:
    """``[bins + 2]``: the frequencies between which filters lie, of *count* up to the rate."""
    rate, low, high = (ctx.reshape(ctx.cast(ctx.input(n), FLOAT64), ()) for n in (2, 3, 4))

    def number(value: float) -> str:
        return ctx.literal(value, FLOAT64)

    def mels(hertz: str) -> str:
        raised = ctx.apply(Fn.ADD, ctx.apply(Fn.DIV, hertz, number(700.0)), number(1.0))
        return ctx.apply(Fn.MUL, ctx.apply(Fn.LOG, raised), number(2595 / np.log(10)))

    start = mels(low)
    step = ctx.apply(Fn.DIV, ctx.apply(Fn.SUB, mels(high), start), ctx.size(bins + 2, FLOAT64))
    steps = ctx.apply(Fn.MUL, ctx.cast(ctx.places(bins + 2), FLOAT64), step)
    raised = ctx.apply(Fn.EXP, ctx.apply(
        Fn.MUL, ctx.apply(Fn.ADD, steps, start), number(np.log(10) / 2595)
    ))  # fmt: skip
    hertz = ctx.apply(Fn.MUL, ctx.apply(Fn.SUB, raised, number(1.0)), number(700.0))
    return ctx.apply(Fn.FLOOR, ctx.apply(Fn.DIV, ctx.apply(Fn.MUL, hertz, count), rate))


OPERATORS: dict[str, Translate] = {
    "BlackmanWindow": _window(0.42, -0.5, 0.08),
    "DFT": dft,
    "HammingWindow": _window(25 / 46, -21 / 46),
    "HannWindow": _window(0.5, -0.5),
    "MelWeightMatrix": mel_weight_matrix,
    "STFT": stft,
}
