"""Weights of 2, 4 or 8 bits in blocks that share a scale."""

from __future__ import annotations

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Unsupported
from ansorpy.frontend.onnx.microsoft.domain import Importer, in_domain
from ansorpy.frontend.onnx.quantized.narrow import add_constant
from ansorpy.graph.ir import Array
from ansorpy.graph.ops import Decode, Fn, Gather, MatMul, Spread
from ansorpy.ir.dtypes import DType
from ansorpy.ir.narrow import Narrow

__all__ = ["OPERATORS"]


def matmul_nbits(ctx: NodeContext) -> str:
    """``A W'``, where W ``[N, K]`` is stored in blocks along K."""
    columns, rows = ctx.attr("N", 0), ctx.attr("K", 0)
    if ctx.has_input(4):
        raise Unsupported("g_idx", "quantize without reordering of groups")
    blocks = -(-rows // ctx.attr("block_size", 0))
    packed = np.asarray(ctx.constant(1, "B")).reshape(columns, -1)
    codes = _codes(ctx, _unpacked(packed, _bits(ctx))[:, :rows])
    scales = ctx.reshape(ctx.input(2), (columns, blocks))
    zeros = None
    if ctx.has_input(3) and ctx.type(3).dtype is not DType.UINT8:
        zeros = ctx.reshape(ctx.input(3), (columns, blocks))
    elif ctx.has_input(3):
        held = np.asarray(ctx.constant(3, "zero_points")).reshape(columns, -1)
        zeros = ctx.literal(_unpacked(held, _bits(ctx))[:, :blocks], DType.UINT8)
    weight = _dequantized(ctx, codes, scales, zeros, 1)
    product = ctx.emit(MatMul(), [ctx.input(0), ctx.transpose(weight, (1, 0))])
    return ctx.apply(Fn.ADD, product, ctx.input(5)) if ctx.has_input(5) else product


def gather_block_quantized(ctx: NodeContext) -> str:
    """Rows of a table that is stored in blocks; only the rows that are chosen are converted."""
    rank = len(ctx.shape(0))
    along = ctx.axis(ctx.attr("quantize_axis", 1), rank)
    if ctx.axis(ctx.attr("gather_axis", 0), rank) != 0 or along == 0:
        raise Unsupported("gather_axis, quantize_axis", "gather along the first axis only")
    if ctx.input() in ctx.builder.narrow or ctx.type(0).dtype is not DType.UINT8:
        raise Unsupported("element type of data", "pack the data as uint8")
    tables = [_codes(ctx, _unpacked(np.asarray(ctx.constant(0, "data")), _bits(ctx)))]
    tables.append(ctx.input(2))
    if ctx.has_input(3):
        held = _unpacked(np.asarray(ctx.constant(3, "zero_points")), _bits(ctx))
        held = held[..., : ctx.number(ctx.shape(2)[-1], "scales")]
        tables.append(ctx.literal(held, DType.UINT8))
    codes, scales, *rest = (ctx.emit(Gather(0), [table, ctx.input(1)]) for table in tables)
    zeros = rest[0] if rest else None
    return _dequantized(ctx, codes, scales, zeros, along - 1 + len(ctx.shape(1)))


def _bits(ctx: NodeContext) -> int:
    bits = ctx.attr("bits", 4)
    if bits not in (2, 4, 8):
        raise Unsupported(f"bits={bits}", "use 2, 4 or 8")
    return bits


def _unpacked(packed: Array, bits: int) -> Array:
    """The numbers in each byte of the last axis, the first one in its lowest bits."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    found = np.right_shift(packed.astype(np.uint8)[..., None], shifts) & np.uint8((1 << bits) - 1)
    return np.reshape(found, (*packed.shape[:-1], -1))


def _codes(ctx: NodeContext, codes: Array) -> str:
    """A constant of numbers of the node's bits, which is kept packed."""
    bits = _bits(ctx)
    if bits == 8:
        return ctx.literal(codes, DType.UINT8)
    kind = {2: Narrow.UINT2, 4: Narrow.UINT4}[bits]
    return add_constant(ctx.builder, f"{ctx.node.output[0]}.codes", codes.astype(kind.numpy))


def _dequantized(ctx: NodeContext, codes: str, scales: str, zeros: str | None, axis: int) -> str:
    """``(codes - zeros) * scales``, which are those of blocks along *axis*.

    Without *zeros*, codes are around the middle of their range.
    """
    shape, dtype = ctx.builder.types[codes].shape, ctx.builder.types[scales].dtype
    block = ctx.attr("block_size", 128)

    def spread(value: str) -> str:
        times = tuple(block if d == axis else 1 for d in range(len(shape)))
        return ctx.emit(Spread(times, shape), [value])

    middle = ctx.literal(1 << (_bits(ctx) - 1), dtype)
    zero = middle if zeros is None else spread(ctx.cast(zeros, dtype))
    numbers = ctx.cast(ctx.emit(Decode(DType.UINT8), [codes]), dtype)
    return ctx.apply(Fn.MUL, ctx.apply(Fn.SUB, numbers, zero), spread(scales))


OPERATORS: dict[str, Importer] = in_domain({
    "GatherBlockQuantized": gather_block_quantized,
    "MatMulNBits": matmul_nbits,
})  # fmt: skip
