"""The table of definitions: operator class -> the function that builds its stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansorpy.graph.op import (
    ArgReduce,
    Attention,
    Cast,
    Concat,
    Conv,
    ConvTranspose,
    CumSum,
    Elementwise,
    Expand,
    Gather,
    GatherElements,
    GatherND,
    LayerNorm,
    Lrn,
    MatMul,
    Op,
    Pad,
    Pool,
    Reduce,
    Repeat,
    Resample,
    Reshape,
    Shuffle,
    Slice,
    Softmax,
    Transpose,
)
from ansorpy.graph.ops.attention import attention
from ansorpy.graph.ops.conv import convolution
from ansorpy.graph.ops.conv_transpose import transposed_convolution
from ansorpy.graph.ops.elementwise import cast, elementwise
from ansorpy.graph.ops.gather import gather, gather_elements, gather_nd
from ansorpy.graph.ops.layer_norm import layer_norm
from ansorpy.graph.ops.lrn import lrn
from ansorpy.graph.ops.matmul import matmul
from ansorpy.graph.ops.movement import concat, move, pad
from ansorpy.graph.ops.pool import pool
from ansorpy.graph.ops.reduce import arg_reduce, reduce, softmax
from ansorpy.graph.ops.resample import resample
from ansorpy.graph.ops.scan import cumulative_sum
from ansorpy.ir.tensor import ComputeOp

__all__ = ["DEFINITIONS"]

DEFINITIONS: Mapping[type[Op], Callable[[Any, Any, Any], ComputeOp]] = {
    ArgReduce: arg_reduce,
    Attention: attention,
    Cast: cast,
    Concat: concat,
    Conv: convolution,
    ConvTranspose: transposed_convolution,
    CumSum: cumulative_sum,
    Elementwise: elementwise,
    Expand: move,
    Gather: gather,
    GatherElements: gather_elements,
    GatherND: gather_nd,
    LayerNorm: layer_norm,
    Lrn: lrn,
    MatMul: matmul,
    Pad: pad,
    Pool: pool,
    Reduce: reduce,
    Repeat: move,
    Resample: resample,
    Reshape: move,
    Shuffle: move,
    Slice: move,
    Softmax: softmax,
    Transpose: move,
}
