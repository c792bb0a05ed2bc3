"""A small case of every operator: the operator, and operands of random numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansorpy.graph.ops import (
    ArgReduce,
    Attention,
    Cast,
    Computed,
    Concat,
    Conv,
    ConvTranspose,
    Cumulative,
    Elementwise,
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
    Pad,
    PadMode,
    Pool,
    PoolKind,
    Reduce,
    ReduceOp,
    Repeat,
    Resample,
    Reshape,
    Shape,
    Shuffle,
    Slice,
    Softmax,
    Transpose,
)
from ansorpy.graph.ops.names import Names
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType, as_dtype
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.routines.top import TopPlaces
from ansorpy.ir.tensor import placeholder

Array = NDArray[Any]


@dataclass(frozen=True)
class Sample:
    """An operator, the shapes of its float operands, and integer operands after them."""

    op: Op
    shapes: tuple[Shape, ...]
    integers: tuple[tuple[Shape, int], ...] = ()
    """Shape of each, and the bound (exclusive) of its values."""
    floats_behind: tuple[Shape, ...] = ()

    def arrays(self) -> list[Array]:
        rng = np.random.default_rng(7)
        floats = [rng.standard_normal(shape).astype(np.float32) for shape in self.shapes]
        places = [rng.integers(0, bound, shape) for shape, bound in self.integers]
        behind = [rng.standard_normal(shape).astype(np.float32) for shape in self.floats_behind]
        return [*floats, *places, *behind]

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

SAMPLES = [
    Sample(ArgReduce(ReduceOp.MIN, 1, last=True), (X,)),
    Sample(Attention(0.5, (0, 2, 1)), ((2, 3, 4), (2, 4, 5), (2, 5, 6), (3, 5))),
    Sample(Cast(DType.INT32), (X,)),
    Sample(Concat(1), (X, (2, 3, 5))),
    Sample(Extend(1), (X, (2, 3, 5))),
    Sample(Conv(TWO, ONE, NONE, ONE), (IMAGE, (3, 4, 3, 2))),
    Sample(Conv(ONE, ONE, ONE, ONE, groups=2), (IMAGE, (6, 2, 3, 3))),
    Sample(Conv(ONE, ONE, ONE, ONE, groups=4), (IMAGE, (4, 1, 3, 3))),
    Sample(ConvTranspose(TWO, ONE, (9, 8), ONE), (IMAGE, (4, 3, 3, 2))),
    Sample(ConvTranspose(TWO, ONE, (9, 8), ONE, groups=2), (IMAGE, (4, 3, 3, 2))),
    Sample(Computed(TopPlaces(largest=True), (3, 2), DType.INT64), ((3, 8),)),
    Sample(Cumulative(ReduceOp.SUM, 1, exclusive=True), (X,)),
    Sample(Elementwise(Fn.ADD), (X, (6, 1))),
    Sample(Elementwise(Fn.DIV), (X, X)),
    Sample(Elementwise(Fn.CLIP, (-0.5, 0.5)), (IMAGE,)),
    Sample(Expand((2, 6, 3)), ((2, 6, 1),)),
    Sample(Gather(1), (X,), (((4,), 6),)),
    Sample(GatherElements(2), (X,), (((2, 3, 4), 5),)),
    Sample(GatherND(1), (X,), (((2, 3, 2), 5),)),
    Sample(LayerNorm((1, 2), 1e-5), (X,)),
    Sample(LayerNorm((1,), 1e-3, centred=False), (IMAGE,)),
    Sample(Lrn(3, 1e-2, 0.75, 1.0), (IMAGE,)),
    Sample(MatMul((0, 2, 1)), (X, (5, 3))),
    Sample(GridSample("linear", "zeros", False), ((2, 3, 5, 7), (2, 4, 3, 2))),
    Sample(Pad((0, 1, 2), (1, 0, 2), PadMode.REFLECT, 0.0), (X,)),
    Sample(Pad((0, 1, -1), (1, 0, 2), PadMode.CONSTANT, 0.5), (X,)),
    Sample(Pool(PoolKind.MAX, (3, 2), TWO, ONE, NONE, ONE), (IMAGE,)),
    Sample(Pool(PoolKind.SUM, (2, 2), ONE, NONE, ONE, TWO), (IMAGE,)),
    Sample(Reduce(ReduceOp.SUM, (1,), keepdims=False), (IMAGE,)),
    Sample(Reduce(ReduceOp.MAX, (0, 2), keepdims=True), (IMAGE,)),
    Sample(Repeat((1, 2, 3)), (X,)),
    Sample(Resample(2, 8), (IMAGE,), (((8, 3), 5),), ((8, 3),)),
    Sample(Reshape((2, 3, 10)), (X,)),
    Sample(Shuffle(1, (2, 3), (1, 0)), (X,)),
    Sample(Slice((1, 5, 0), (1, 2, 5), (1, -3, 1)), (X,)),
    Sample(Softmax((2,)), (X,)),
    Sample(Softmax((0, 1), guarded=True), (IMAGE,)),
    Sample(Transpose((2, 0, 1)), (X,)),
]
