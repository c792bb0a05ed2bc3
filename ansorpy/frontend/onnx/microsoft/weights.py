"""Weights of 2, 4 or 8 bits in blocks that share a scale."""

from __future__ import annotations

import numpy as np

from ansorpy.frontend.onnx.context import Cut, NodeContext, Unsupported
from ansorpy.frontend.onnx.microsoft.domain import Importer, in_domain
from ansorpy.graph.ir import Array, Quantized
from ansorpy.graph.ops import Fn, Gather, PackedMatMul, Repeat
from ansorpy.ir.dtypes import DType

__all__ = ["OPERATORS"]


def matmul_nbits(ctx: NodeContext) -> str:
    """``A W'``, where W ``[N, K]`` is stored in blocks along K."""
    columns, rows = ctx.attr("N", 0), ctx.attr("K", 0)
    if ctx.has_input(4):
        raise Unsupported("g_idx", "quantize without reordering of groups")
    blocks = -(-rows // ctx.attr("block_size", 0))
    bits, dtype = _bits(ctx, 4), ctx.type().dtype
    packed = np.asarray(ctx.constant(1, "B")).reshape(columns, -1)[:, : -(-rows * bits // 8)]
    scales = ctx.transpose(ctx.reshape(ctx.input(2), (columns, blocks)), (1, 0))
    if ctx.has_input(3) and ctx.type(3).dtype is not DType.UINT8:
        zeros = ctx.transpose(ctx.reshape(ctx.input(3), (columns, blocks)), (1, 0))
    else:
        held = np.full((columns, blocks), 1 << (bits - 1))
        if ctx.has_input(3):
            given = np.asarray(ctx.constant(3, "zero_points")).reshape(columns, -1)
            held = _unpacked(given, bits)[:, :blocks]
        zeros = ctx.literal(held.T, dtype)
    operands = [ctx.input(0), ctx.literal(packed.T, DType.UINT8), scales, zeros]
    product = ctx.emit(PackedMatMul(bits, ctx.attr("block_size", 0)), operands)
    return ctx.apply(Fn.ADD, product, ctx.input(5)) if ctx.has_input(5) else product


def gather_block_quantized(ctx: NodeContext) -> str:
    """Rows of a table that is stored in blocks; only the rows that are chosen are converted."""
    rank = len(ctx.shape(0))
    along = ctx.axis(ctx.attr("quantize_axis", 1), rank)
    if ctx.axis(ctx.attr("gather_axis", 0), rank) != 0 or along == 0:
        raise Unsupported("gather_axis, quantize_axis", "gather along the first axis only")
    if ctx.type(0).dtype is not DType.UINT8:
        raise Unsupported(f"element type {ctx.type(0).dtype.value}", "pack the data as uint8")
    bits = _bits(ctx, 4)
    tables = [ctx.literal(_unpacked(np.asarray(ctx.constant(0, "data")), bits), DType.UINT8)]
    tables.append(ctx.input(2))
    if ctx.has_input(3):
        held = _unpacked(np.asarray(ctx.constant(3, "zero_points")), bits)
        held = held[..., : ctx.number(ctx.shape(2)[-1], "scales")]
        tables.append(ctx.literal(held, DType.UINT8))
    codes, scales, *rest = (ctx.emit(Gather(0), [table, ctx.input(1)]) for table in tables)
    zeros = rest[0] if rest else None
    return _dequantized(ctx, codes, scales, zeros, along - 1 + len(ctx.shape(1)))


def _bits(ctx: NodeContext, usual: int) -> int:
    bits = ctx.attr("bits", usual)
    if bits not in (2, 4, 8):
        raise Unsupported(f"bits={bits}", "use 2, 4 or 8")
    return bits


def _unpacked(packed: Array, bits: int) -> Array:
    """The numbers in each byte of the last axis, the first one in its lowest bits."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    found = np.right_shift(packed.astype(np.uint8)[..., None], shifts) & np.uint8((1 << bits) - 1)
    return np.reshape(found, (*packed.shape[:-1], -1))


def _dequantized(ctx: NodeContext, codes: str, scales: str, zeros: str | None, axis: int) -> str:
    """``(codes - zeros) * scales``, which are those of blocks along *axis*.

    Without *zeros*, codes are around the middle of their range.
    """
    shape, dtype = ctx.builder.types[codes].shape, ctx.builder.types[scales].dtype
    block = ctx.attr("block_size", 128)

    def spread(value: str) -> str:
        times = tuple(block if d == axis else 1 for d in range(len(shape)))
        return ctx.slice(ctx.emit(Repeat(times), [value]), {axis: Cut(0, shape[axis])})

    middle = 1 << (_bits(ctx, 4) - 1)
    zero = ctx.literal(middle, DType.UINT8) if zeros is None else spread(zeros)
    given = Quantized(codes, zero, spread(scales))
    moved = ctx.apply(Fn.SUB, ctx.cast(codes, dtype), ctx.cast(zero, dtype))
    value = ctx.apply(Fn.MUL, moved, given.scale)
    ctx.builder.quantized[value] = given
    return value


OPERATORS: dict[str, Importer] = in_domain({
    "GatherBlockQuantized": gather_block_quantized,
    "MatMulNBits": matmul_nbits,
})  # fmt: skip
