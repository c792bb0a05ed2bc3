"""Norms of a whole matrix and of each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import helper

import ansorpy as ap
from ansorpy.ir.tensor import Tensor
from benchmarks.ops.case import Case, OnnxGraph

__all__ = ["LayerNorm", "MatrixNorm"]

EPSILON = 1e-5


@dataclass(frozen=True)
class MatrixNorm(Case):
    """``out[b]``, the square root of the sum of squares of ``x[b, i, j]``."""

    n: int
    m: int
    batch: int = 1

    @property
    def label(self) -> str:
        return f"{self.n}x{self.m}.b{self.batch}"

    def tensors(self) -> list[Tensor]:
        x = ap.placeholder((self.batch, self.n, self.m), name="x")
        i, j = ap.reduce_axis(self.n, name="i"), ap.reduce_axis(self.m, name="j")
        total = ap.compute(
            (self.batch,), lambda b: ap.sum(x[b, i, j] * x[b, i, j], axis=(i, j)), name="total"
        )
        return [x, ap.compute((self.batch,), lambda b: ap.sqrt(total[b]), name="out")]

    def onnx_graphs(self) -> Sequence[OnnxGraph]:
        node = helper.make_node("ReduceL2", ["x", "axes"], ["out"], keepdims=0)
        return [OnnxGraph((node,), {"axes": np.array([1, 2], np.int64)})]

    def torch_calls(self, torch: Any, values: Mapping[str, Any]) -> Sequence[Callable[[], Any]]:
        x, out = values["x"], torch.empty(self.batch)
        flat = x.reshape(self.batch, -1)
        norm = torch.linalg.vector_norm
        calls = [lambda: norm(x, 2, (1, 2), out=out), lambda: norm(flat, 2, 1, out=out)]
        if self.batch == 1:
            whole = x.reshape(-1)
            calls.append(lambda: torch.sqrt(torch.dot(whole, whole)))
        return calls


@dataclass(frozen=True)
class LayerNorm(Case):
    """``(x - mean) / sqrt(variance + 1e-5) * scale + offset`` of each row."""

    rows: int
    size: int

    @property
    def label(self) -> str:
        return f"{self.rows}x{self.size}"

    def tensors(self) -> list[Tensor]:
        shape, size = (self.rows, self.size), float(self.size)
        x = ap.placeholder(shape, name="x")
        scale, offset = (
            ap.placeholder((self.size,), name=name, constant=True) for name in ("scale", "offset")
        )
        rm, rv = ap.reduce_axis(self.size, name="rm"), ap.reduce_axis(self.size, name="rv")
        total = ap.compute((self.rows,), lambda i: ap.sum(x[i, rm], axis=rm), name="total")
        mean = ap.compute((self.rows,), lambda i: total[i] / size, name="mean")
        squares = ap.compute(
            (self.rows,),
            lambda i: ap.sum((x[i, rv] - mean[i]) * (x[i, rv] - mean[i]), axis=rv),
            name="squares",
        )
        root = ap.compute(
            (self.rows,), lambda i: ap.rsqrt(squares[i] / size + EPSILON), name="root"
        )
        out = ap.compute(
            shape,
            lambda i, j: (x[i, j] - mean[i]) * root[i] * scale[j] + offset[j],
            name="out",
        )
        return [x, scale, offset, out]

    def onnx_graphs(self) -> Sequence[OnnxGraph]:
        node = helper.make_node(
            "LayerNormalization", ["x", "scale", "offset"], ["out"], axis=-1, epsilon=EPSILON
        )
        return [OnnxGraph((node,))]

    def torch_calls(self, torch: Any, values: Mapping[str, Any]) -> Sequence[Callable[[], Any]]:
        x, scale, offset = (values[name] for name in ("x", "scale", "offset"))
        norm, shape = torch.nn.functional.layer_norm, (self.size,)
        return [lambda: norm(x, shape, scale, offset, EPSILON)]
