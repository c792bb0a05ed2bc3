"""A small case of every operator: the operator, and operands of random numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansorpy.graph.custom import Custom
from ansorpy.graph.ops import (
    ArgReduce,
    Attention,
    Cast,
    ChosenMatMul,
    Columns,
    Computed,
    Concat,
    Conv,
    ConvTranspose,
    Cumulative,
    Decode,
    DeformedPatches,
    Elementwise,
    Encode,
    Expand,
    Extend,
    Fn,
    Gather,
    GatherElements,
    GatherND,
    GridSample,
    LayerNorm,
    Lrn,
    MatMul,
    Op,
    Pack,
    Pad,
    PadMode,
    Pool,
    PoolPlaces,
    Reduce,
    ReduceKind,
    RegionAlign,
    RegionCrop,
    RegionMax,
    RegionMean,
    RegionPeak,
    Reinterpret,
    Repeat,
    Resample,
    Reshape,
    Scatter,
    Shape,
    Shuffle,
    Slice,
    Softmax,
    Spread,
    Transpose,
    UniformInLoop,
    Unpack,
    Unpool,
    Wrap,
)
from ansorpy.graph.ops.names import Names
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType, as_dtype
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.narrow import Narrow
from ansorpy.ir.routines.top import TopPlaces
from ansorpy.ir.tensor import Tensor, compute, placeholder

Array = NDArray[Any]


@dataclass(frozen=True)
class Sample:
    """An operator, the shapes of its float operands, and integer operands after them."""

    op: Op
    shapes: tuple[Shape, ...]
    integers: tuple[tuple[Shape, int], ...] = ()
    """Shape of each, and the bound (exclusive) of its values."""
    floats_behind: tuple[Shape, ...] = ()
    codes: tuple[Shape, ...] = ()
    """Shapes of bytes with any bits."""

    def arrays(self) -> list[Array]:
        rng = np.random.default_rng(7)
        floats = [rng.standard_normal(shape).astype(np.float32) for shape in self.shapes]
        places = [rng.integers(0, bound, shape) for shape, bound in self.integers]
        behind = [rng.standard_normal(shape).astype(np.float32) for shape in self.floats_behind]
        codes = [rng.integers(0, 256, shape).astype(np.uint8) for shape in self.codes]
        return [*floats, *places, *behind, *codes]

    def defined(self) -> Array:
        """The result of the operator's compute definition."""
        arrays = self.arrays()
        args = [placeholder(a.shape, as_dtype(a.dtype), name=f"x{n}") for n, a in enumerate(arrays)]
        stage = self.op.define(args, Names())
        given = {arg.name: array for arg, array in zip(args, arrays, strict=True)}
        return run_dag(ComputeDAG([stage], args), given)[0]

    def __str__(self) -> str:
        return self.op.label


X = (2, 6, 5)
IMAGE = (2, 4, 5, 7)
TWO, ONE, NONE = (2, 1), (1, 1), (0, 0)
HALVES = Pool(ReduceKind.MAX, (2, 2), (2, 2), NONE, NONE, ONE)


def _halves(x: Tensor) -> Tensor:
    """What a user may define: ``x / 2``, in two stages."""
    half = compute(x.shape, lambda *i: x[i] * 0.25, name="half")
    return compute(x.shape, lambda *i: half[i] + x[i] * 0.25, name="y")


SAMPLES = [
    Sample(ArgReduce(ReduceKind.MIN, 1, last=True), (X,)),
    Sample(Attention(0.5, (0, 2, 1)), ((2, 3, 4), (2, 4, 5), (2, 5, 6), (3, 5))),
    Sample(Cast(DType.INT32), (X,)),
    Sample(ChosenMatMul(), ((3, 2, 4), (2, 4, 5)), (((3,), 2),)),
    Sample(Columns((6, 7), TWO, (1, 0), (1, 2)), ((2, 3, 2, 3, 4, 3),)),
    Sample(Concat(1), (X, (2, 3, 5))),
    Sample(Extend(1), (X, (2, 3, 5))),
    Sample(Conv(TWO, ONE, NONE, ONE), (IMAGE, (3, 4, 3, 2))),
    Sample(Conv(ONE, ONE, ONE, ONE, groups=2), (IMAGE, (6, 2, 3, 3))),
    Sample(Conv(ONE, ONE, ONE, ONE, groups=4), (IMAGE, (4, 1, 3, 3))),
    Sample(ConvTranspose(TWO, ONE, (9, 8), ONE), (IMAGE, (4, 3, 3, 2))),
    Sample(ConvTranspose(TWO, ONE, (9, 8), ONE, groups=2), (IMAGE, (4, 3, 3, 2))),
    Sample(Computed(TopPlaces(largest=True), (3, 2), DType.INT64), ((3, 8),)),
    Sample(Cumulative(ReduceKind.SUM, 1, exclusive=True), (X,)),
    Sample(Custom("com.example.Halves", _halves), (X,)),
    Sample(Decode(DType.UINT8), (), codes=(X,)),
    Sample(Decode(Narrow.FLOAT8E5M2), (), codes=(X,)),
    Sample(
        DeformedPatches(TWO, (1, 0), ONE),
        (IMAGE, (2, 2, 3, 2, 2, 3, 6), (2, 2, 3, 2, 3, 6)),
    ),
    Sample(Elementwise(Fn.ADD), (X, (6, 1))),
    Sample(Elementwise(Fn.DIV), (X, X)),
    Sample(Elementwise(Fn.CLIP, (-0.5, 0.5)), (IMAGE,)),
    Sample(Encode(Narrow.FLOAT8E4M3FN), (X,)),
    Sample(Expand((2, 6, 3)), ((2, 6, 1),)),
    Sample(Gather(1), (X,), (((4,), 6),)),
    Sample(GatherElements(2), (X,), (((2, 3, 4), 5),)),
    Sample(GatherND(1), (X,), (((2, 3, 2), 5),)),
    Sample(LayerNorm((1, 2), 1e-5), (X,)),
    Sample(LayerNorm((1,), 1e-3, centred=False), (IMAGE,)),
    Sample(Lrn(3, 1e-2, 0.75, 1.0), (IMAGE,)),
    Sample(MatMul((0, 2, 1)), (X, (5, 3))),
    Sample(GridSample("linear", "zeros", False), ((2, 3, 5, 7), (2, 4, 3, 2))),
    Sample(Pack(Narrow.UINT4), (), codes=(X,)),
    Sample(Pack(Narrow.INT2), (), codes=(IMAGE,)),
    Sample(Pad((0, 1, 2), (1, 0, 2), PadMode.REFLECT, 0.0), (X,)),
    Sample(Pad((0, 1, -1), (1, 0, 2), PadMode.CONSTANT, 0.5), (X,)),
    Sample(Pool(ReduceKind.MAX, (3, 2), TWO, ONE, NONE, ONE), (IMAGE,)),
    Sample(Pool(ReduceKind.SUM, (2, 2), ONE, NONE, ONE, TWO), (IMAGE,)),
    Sample(PoolPlaces(HALVES), (IMAGE, (2, 4, 2, 3))),
    Sample(Reduce(ReduceKind.SUM, (1,), keepdims=False), (IMAGE,)),
    Sample(Reduce(ReduceKind.MAX, (0, 2), keepdims=True), (IMAGE,)),
    Sample(Reinterpret(DType.INT32), (X,)),
    Sample(RegionCrop((3, 2), False, 0.5), (IMAGE, (3, 4)), (((3,), 2),)),
    Sample(RegionAlign((3, 2), 2, 1.0, half=True, maximum=True), (IMAGE, (5, 4)), (((5,), 2),)),
    Sample(RegionMax((3, 2), 1.5), (IMAGE, (5, 4)), (((5,), 2),)),
    Sample(RegionMean((3, 2), 1.0, half=False), (IMAGE, (5, 4)), (((5,), 2),)),
    Sample(RegionPeak((3, 2), 1.0, half=False), (IMAGE, (5, 4)), (((5,), 2),)),
    Sample(Repeat((1, 2, 3)), (X,)),
    Sample(Resample(2, 8), (IMAGE,), (((8, 3), 5),), ((8, 3),)),
    Sample(Reshape((2, 3, 10)), (X,)),
    Sample(Scatter(ReduceKind.SUM, 1, 7), (), ((X, 9),), (X,)),
    Sample(Shuffle(1, (2, 3), (1, 0)), (X,)),
    Sample(Slice((1, 5, 0), (1, 2, 5), (1, -3, 1)), (X,)),
    Sample(Softmax((2,)), (X,)),
    Sample(Softmax((0, 1), guarded=True), (IMAGE,)),
    Sample(Spread((1, 2, 3), (2, 11, 15)), (X,)),
    Sample(Transpose((2, 0, 1)), (X,)),
    Sample(UniformInLoop((3, 5), 7, 11), (), (((), 9), ((), 4))),
    Sample(Unpack(Narrow.INT4, (2, 6, 10)), (), codes=(X,)),
    Sample(Unpack(Narrow.UINT2, (3, 3)), (), codes=((3,),)),
    Sample(Wrap(Narrow.INT4), (X,)),
    Sample(Unpool(HALVES, (4, 6)), ((2, 4, 2, 3),), (((2, 4, 2, 3), 192),)),
]
