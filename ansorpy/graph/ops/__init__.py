"""The operators of a network graph: one frozen class per kind, with typed attributes.

Every operator has one output.  Its class holds everything that the compiler knows about it
(:class:`Op`): the type of its output, how it may be fused, its compute definition, and its forms
for another storage order and for some rows of a batch.  The frontend expresses richer operators in
terms of these few: batch normalisation is a multiply and an add, an average is a sum and a
multiply, and a matrix product has no transposes or bias of its own.
"""

from __future__ import annotations

from ansorpy.graph.ops.attention import Attention
from ansorpy.graph.ops.base import NARROW, Op, Pattern, Shape, TensorType, broadcast
from ansorpy.graph.ops.concat import Concat
from ansorpy.graph.ops.conv import Conv
from ansorpy.graph.ops.conv_transpose import ConvTranspose
from ansorpy.graph.ops.elementwise import Cast, Elementwise, Fn
from ansorpy.graph.ops.extend import Extend
from ansorpy.graph.ops.gather import Gather, GatherElements, GatherND
from ansorpy.graph.ops.images.columns import Columns
from ansorpy.graph.ops.images.deform import DeformedPatches
from ansorpy.graph.ops.images.grid_sample import GridSample
from ansorpy.graph.ops.images.regions import (
    RegionAlign,
    RegionCrop,
    RegionMax,
    RegionMean,
    RegionPeak,
)
from ansorpy.graph.ops.images.resample import Resample
from ansorpy.graph.ops.images.unpool import PoolPlaces, Unpool
from ansorpy.graph.ops.layer_norm import LayerNorm
from ansorpy.graph.ops.lrn import Lrn
from ansorpy.graph.ops.matmul import ChosenMatMul, MatMul
from ansorpy.graph.ops.movement import (
    Expand,
    Movement,
    Repeat,
    Reshape,
    Shuffle,
    Slice,
    Spread,
    Transpose,
)
from ansorpy.graph.ops.narrow.conversions import Decode, Encode, Pack, Unpack, Wrap
from ansorpy.graph.ops.narrow.reinterpret import Reinterpret
from ansorpy.graph.ops.pad import Pad, PadMode
from ansorpy.graph.ops.pool import Pool
from ansorpy.graph.ops.random import Uniform, UniformInLoop
from ansorpy.graph.ops.reduce import ArgReduce, Reduce
from ansorpy.graph.ops.routine import Computed
from ansorpy.graph.ops.scan import Cumulative
from ansorpy.graph.ops.scatter import Scatter
from ansorpy.graph.ops.sizes import Iota, Sizes
from ansorpy.graph.ops.softmax import Softmax
from ansorpy.ir.expr import ReduceKind

__all__ = [
    "NARROW",
    "ArgReduce",
    "Attention",
    "Cast",
    "ChosenMatMul",
    "Columns",
    "Computed",
    "Concat",
    "Conv",
    "ConvTranspose",
    "Cumulative",
    "Decode",
    "DeformedPatches",
    "Elementwise",
    "Encode",
    "Expand",
    "Extend",
    "Fn",
    "Gather",
    "GatherElements",
    "GatherND",
    "GridSample",
    "Iota",
    "LayerNorm",
    "Lrn",
    "MatMul",
    "Movement",
    "Op",
    "Pack",
    "Pad",
    "PadMode",
    "Pattern",
    "Pool",
    "PoolPlaces",
    "Reduce",
    "ReduceKind",
    "Reinterpret",
    "RegionAlign",
    "RegionCrop",
    "RegionMax",
    "RegionMean",
    "RegionPeak",
    "Repeat",
    "Resample",
    "Reshape",
    "Scatter",
    "Shape",
    "Shuffle",
    "Sizes",
    "Slice",
    "Softmax",
    "Spread",
    "TensorType",
    "Transpose",
    "Unpack",
    "Wrap",
    "Uniform",
    "UniformInLoop",
    "Unpool",
    "broadcast",
]
