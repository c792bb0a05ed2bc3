"""Weights of 2, 4 or 8 bits in blocks that share a scale."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ansorpy.arrays import Ints
from ansorpy.frontend.onnx.context import NodeContext, Translate
from ansorpy.frontend.onnx.operators.matmul import product
from ansorpy.frontend.onnx.quantized.narrow import add_constant
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ir import Array
from ansorpy.graph.ops import Decode, Fn, Gather, Spread
from ansorpy.ir.dtypes import DType
from ansorpy.ir.narrow import Narrow

__all__ = ["OPERATORS", "bits_of", "codes_of", "dequantized", "unpacked"]

_POSITIVE = (0.0, 0.0052083333, 2 / 3, 1.0, 1 / 3, 0.5, 1 / 6, 0.25)
_FP4 = (*_POSITIVE, *(-number for number in _POSITIVE))
"""The numbers of bitsandbytes' 4-bit floats, by their bits."""
_NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
    -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
    0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
"""Quantiles of a normal distribution.  Paper: Dettmers et al., QLoRA (2023), appendix E."""


def matmul_nbits(ctx: NodeContext) -> str:
    """``A W'``, where W ``[N, K]`` is stored in blocks along K."""
    columns, rows, block = _sizes(ctx)
    bits, blocks = bits_of(ctx), -(-rows // block)
    if ctx.attr("weight_prepacked", 0):
        raise Unsupported("weight_prepacked", "store the weights as they are quantized")
    held = unpacked(ctx.constant(1, "B").reshape(columns, -1), bits)[:, :rows]
    data = ctx.input(0)
    if ctx.has_input(4):
        order = _by_groups(ctx, rows, block)
        held = held[:, order]
        data = ctx.emit(Gather(len(ctx.shape()) - 1), [data, ctx.literal(order, DType.INT64)])
    codes = codes_of(ctx, held, bits)
    scales = ctx.reshape(ctx.input(2), (columns, blocks))
    zeros = None
    if ctx.has_input(3) and ctx.type(3).dtype is not DType.UINT8:
        zeros = ctx.reshape(ctx.input(3), (columns, blocks))
    elif ctx.has_input(3):
        held = ctx.constant(3, "zero_points").reshape(columns, -1)
        zeros = ctx.literal(unpacked(held, bits)[:, :blocks], DType.UINT8)
    weight = dequantized(ctx, codes, scales, zeros, 1, block, 1 << (bits - 1))
    return ctx.plus(product(ctx, data, ctx.transpose(weight, (1, 0))), 5)


def _by_groups(ctx: NodeContext, rows: int, block: int) -> Ints:
    """The rows of the weights in an order in which those that share a scale are a block."""
    groups = np.asarray(ctx.constant_ints(4, "g_idx"))
    order = np.argsort(groups, kind="stable")
    if not np.array_equal(groups[order], np.arange(rows) // block):
        raise Unsupported("g_idx", f"give {block} rows of each group")
    return order


def _sizes(ctx: NodeContext) -> tuple[int, int, int]:
    """The columns and rows of the weights, and the elements of a block."""
    columns, rows, block = (ctx.attr(name, 0) for name in ("N", "K", "block_size"))
    if block < 1:
        raise Unsupported(f"block_size={block}", "it must be positive")
    return columns, rows, block


def matmul_bnb4(ctx: NodeContext) -> str:
    """``A W'``, where W ``[N, K]`` is stored as places in a table of 16 numbers, in blocks along K.

    As bitsandbytes quantizes weights; of the two places in a byte, the upper bits are the first.
    """
    columns, rows, block = _sizes(ctx)
    kind = ctx.attr("quant_type", -1)
    if kind not in (0, 1):
        raise Unsupported(f"quant_type={kind}", "use 0 (FP4) or 1 (NF4)")
    if not ctx.attr("transB", 1):
        raise Unsupported("transB=0", "store the weights by columns of the result")
    if rows % block:
        raise Unsupported(f"block_size={block}", f"it must divide the {rows} rows")
    packed = ctx.constant(1, "B").reshape(columns, rows // 2, 1)
    places = codes_of(ctx, unpacked(packed, 4)[..., ::-1].reshape(columns, rows), 4)
    table = ctx.literal(np.asarray((_FP4, _NF4)[kind]), ctx.type(2).dtype)
    place = ctx.cast(ctx.emit(Decode(DType.UINT8), [places]), DType.INT32)
    numbers = ctx.emit(Gather(0), [table, place])
    scales = ctx.reshape(ctx.input(2), (columns, rows // block))
    spread = ctx.emit(Spread((1, block), (columns, rows)), [scales])
    weight = ctx.apply(Fn.MUL, numbers, spread)
    return product(ctx, ctx.input(0), ctx.transpose(weight, (1, 0)))


def gather_block_quantized(ctx: NodeContext) -> str:
    """Rows of a table that is stored in blocks; only the rows that are chosen are converted."""
    rank = len(ctx.shape(0))
    along = ctx.axis(ctx.attr("quantize_axis", 1), rank)
    if ctx.axis(ctx.attr("gather_axis", 0), rank) != 0 or along == 0:
        raise Unsupported("gather_axis, quantize_axis", "gather along the first axis only")
    kind = ctx.builder.narrow.get(ctx.input())
    middle = 0
    tables = [ctx.input(n) for n in (0, 2, 3) if ctx.has_input(n)]
    if kind is None:
        bits = bits_of(ctx)
        middle = 1 << (bits - 1)
        tables[0] = codes_of(ctx, unpacked(ctx.constant(0, "data"), bits), bits)
        if ctx.has_input(3):
            held = unpacked(ctx.constant(3, "zero_points"), bits)
            held = held[..., : ctx.number(ctx.shape(2)[-1], "scales")]
            tables[2] = ctx.literal(held, DType.UINT8)
    codes, scales, *rest = (ctx.emit(Gather(0), [table, ctx.input(1)]) for table in tables)
    axis = along - 1 + len(ctx.shape(1))
    zeros = rest[0] if rest else None
    block = ctx.attr("block_size", 128) or ctx.number(ctx.type_of(codes).shape[axis], "a block")
    coded: Narrow | Literal[DType.UINT8] = DType.UINT8
    if kind is not None and kind.is_float:
        coded = kind
    return dequantized(ctx, codes, scales, zeros, axis, block, middle, coded)


def bits_of(ctx: NodeContext, attribute: str = "bits") -> int:
    """The number of bits of a code that the node has in *attribute*."""
    bits = ctx.attr(attribute, 4)
    if bits not in (2, 4, 8):
        raise Unsupported(f"{attribute}={bits}", "use 2, 4 or 8")
    return bits


def unpacked(packed: Array, bits: int) -> Array:
    """The numbers of 2, 4 or 8 *bits* in each byte of the last axis, from its lowest bits on."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    found = np.right_shift(packed.astype(np.uint8)[..., None], shifts) & np.uint8((1 << bits) - 1)
    return np.reshape(found, (*packed.shape[:-1], -1))


def codes_of(ctx: NodeContext, codes: Array, bits: int) -> str:
    """A constant of numbers of 2, 4 or 8 *bits*, which is kept packed."""
    if bits == 8:
        return ctx.literal(codes, DType.UINT8)
    kind = {2: Narrow.UINT2, 4: Narrow.UINT4}[bits]
    return add_constant(ctx.builder, f"{ctx.node.output[0]}.codes", codes.astype(kind.numpy))


def dequantized(
    ctx: NodeContext,
    codes: str,
    scales: str,
    zeros: str | None,
    axis: int,
    block: int,
    usual: int,
    kind: Narrow | Literal[DType.UINT8] = DType.UINT8,
) -> str:
    """``(codes - zeros) * scales``, which are those of blocks of *block* elements along *axis*.

    Without *zeros*, *usual* is the code of 0.  Codes are numbers, or are of a float *kind*.
    """
    shape, dtype = ctx.type_of(codes).shape, ctx.type_of(scales).dtype

    def spread(value: str) -> str:
        times = tuple(block if d == axis else 1 for d in range(len(shape)))
        return ctx.emit(Spread(times, shape), [value])

    zero = ctx.literal(usual, dtype) if zeros is None else spread(ctx.cast(zeros, dtype))
    numbers = ctx.cast(ctx.emit(Decode(kind), [codes]), dtype)
    return ctx.apply(Fn.MUL, ctx.apply(Fn.SUB, numbers, zero), spread(scales))


OPERATORS: dict[str, Translate] = {
    "GatherBlockQuantized": gather_block_quantized,
    "MatMulBnb4": matmul_bnb4,
    "MatMulNBits": matmul_nbits,
}
