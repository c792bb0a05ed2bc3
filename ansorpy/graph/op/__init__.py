"""The operators of a network graph: one frozen class per kind, with typed attributes.

Every operator has one output.  ``infer`` gives its shape and type from those of its inputs;
``pattern`` says how it may be fused.  The frontend expresses richer operators by these few: batch
normalisation is a multiply and an add, an average is a sum and a multiply, and a matrix product
has no transposes or bias of its own.
"""

from __future__ import annotations

from ansorpy.graph.op.attention import Attention
from ansorpy.graph.op.base import NARROW, Op, Pattern, Shape, TensorType, broadcast
from ansorpy.graph.op.conv import Conv, ConvTranspose, windows
from ansorpy.graph.op.elementwise import Cast, Elementwise, Fn
from ansorpy.graph.op.gather import Gather, GatherElements, GatherND
from ansorpy.graph.op.matmul import MatMul
from ansorpy.graph.op.movement import (
    Concat,
    Expand,
    Pad,
    PadMode,
    Repeat,
    Reshape,
    Shuffle,
    Slice,
    Transpose,
)
from ansorpy.graph.op.normalize import LayerNorm, Lrn, Softmax
from ansorpy.graph.op.pool import Pool, PoolKind
from ansorpy.graph.op.reduce import ArgReduce, Reduce, ReduceOp
from ansorpy.graph.op.resample import Resample
from ansorpy.graph.op.scan import CumSum

__all__ = [
    "NARROW",
    "ArgReduce",
    "Attention",
    "Cast",
    "Concat",
    "Conv",
    "ConvTranspose",
    "CumSum",
    "Elementwise",
    "Expand",
    "Fn",
    "Gather",
    "GatherElements",
    "GatherND",
    "LayerNorm",
    "Lrn",
    "MatMul",
    "Op",
    "Pad",
    "PadMode",
    "Pattern",
    "Pool",
    "PoolKind",
    "Reduce",
    "ReduceOp",
    "Repeat",
    "Resample",
    "Reshape",
    "Shape",
    "Shuffle",
    "Slice",
    "Softmax",
    "TensorType",
    "Transpose",
    "broadcast",
    "windows",
]
