"""The products of attention, and attention as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from onnx import helper

import ansorpy as ap
from ansorpy.ir.tensor import Tensor
from benchmarks.ops.case import Case, OnnxGraph

__all__ = ["Attention", "TransposedBatchMatmul"]


@dataclass(frozen=True)
class TransposedBatchMatmul(Case):
    """``out[b, h, i, j]``, the sum over k of ``q[b, i, h, k] y[b, j, h, k]``.

    Both operands have the layout of the projections' outputs, with the heads inside.
    """

    tokens: int
    heads: int
    dim: int
    batch: int = 1

    @property
    def label(self) -> str:
        return f"{self.tokens}x{self.heads}x{self.dim}.b{self.batch}"

    def tensors(self) -> list[Tensor]:
        given = (self.batch, self.tokens, self.heads, self.dim)
        x, y = ap.placeholder(given, name="x"), ap.placeholder(given, name="y")
        k = ap.reduce_axis(self.dim, name="k")
        xt = ap.compute(
            (self.batch, self.heads, self.tokens, self.dim),
            lambda b, h, i, d: x[b, i, h, d],
            name="xt",
        )
        yt = ap.compute(
            (self.batch, self.heads, self.dim, self.tokens),
            lambda b, h, d, j: y[b, j, h, d],
            name="yt",
        )
        out = ap.compute(
            (self.batch, self.heads, self.tokens, self.tokens),
            lambda b, h, i, j: ap.sum(xt[b, h, i, k] * yt[b, h, k, j], axis=k),
            name="out",
        )
        return [x, y, out]

    def onnx_graphs(self) -> Sequence[OnnxGraph]:
        moves = (
            helper.make_node("Transpose", ["x"], ["xt"], perm=[0, 2, 1, 3]),
            helper.make_node("Transpose", ["y"], ["yt"], perm=[0, 2, 3, 1]),
            helper.make_node("MatMul", ["xt", "yt"], ["out"]),
        )
        einsum = helper.make_node("Einsum", ["x", "y"], ["out"], equation="bihk,bjhk->bhij")
        return [OnnxGraph(moves), OnnxGraph((einsum,))]

    def torch_calls(self, torch: Any, values: Mapping[str, Any]) -> Sequence[Callable[[], Any]]:
        x, y = values["x"].permute(0, 2, 1, 3), values["y"].permute(0, 2, 3, 1)
        out = torch.empty(self.dag.outputs[0].shape)
        return [lambda: torch.matmul(x, y, out=out)]


@dataclass(frozen=True)
class Attention(Case):
    """``softmax(q k^T / sqrt(dim)) v`` over heads: all three ``[heads, tokens, dim]``."""

    tokens: int
    heads: int
    dim: int

    @property
    def label(self) -> str:
        return f"{self.tokens}x{self.heads}x{self.dim}"

    def tensors(self) -> list[Tensor]:
        given, square = (self.heads, self.tokens, self.dim), (self.heads, self.tokens, self.tokens)
        q, k, v = (ap.placeholder(given, name=name) for name in "qkv")
        rd = ap.reduce_axis(self.dim, name="rd")
        rj, rs, rv = (ap.reduce_axis(self.tokens, name=name) for name in ("rj", "rs", "rv"))
        scale = 1.0 / sqrt(self.dim)
        scores = ap.compute(
            square, lambda h, i, j: ap.sum(q[h, i, rd] * k[h, j, rd], axis=rd), name="scores"
        )
        top = ap.compute(
            square[:2], lambda h, i: ap.max(scores[h, i, rj], axis=rj), name="top"
        )  # fmt: skip
        raised = ap.compute(
            square, lambda h, i, j: ap.exp((scores[h, i, j] - top[h, i]) * scale), name="raised"
        )
        total = ap.compute(
            square[:2], lambda h, i: ap.sum(raised[h, i, rs], axis=rs), name="total"
        )  # fmt: skip
        mixed = ap.compute(
            given, lambda h, i, d: ap.sum(raised[h, i, rv] * v[h, rv, d], axis=rv), name="mixed"
        )
        out = ap.compute(given, lambda h, i, d: mixed[h, i, d] / total[h, i], name="out")
        return [q, k, v, out]

    def onnx_graphs(self) -> Sequence[OnnxGraph]:
        nodes = (
            helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
            helper.make_node("MatMul", ["q", "kt"], ["scores"]),
            helper.make_node("Mul", ["scores", "scale"], ["scaled"]),
            helper.make_node("Softmax", ["scaled"], ["weights"], axis=-1),
            helper.make_node("MatMul", ["weights", "v"], ["out"]),
        )
        return [OnnxGraph(nodes, {"scale": np.array([1.0 / sqrt(self.dim)], np.float32)})]

    def torch_calls(self, torch: Any, values: Mapping[str, Any]) -> Sequence[Callable[[], Any]]:
        q, k, v = (values[name] for name in "qkv")
        whole = [t.unsqueeze(0) for t in (q, k, v)]
        fused = torch.nn.functional.scaled_dot_product_attention
        kt, scale = k.transpose(1, 2), 1.0 / sqrt(self.dim)
        zero = torch.zeros(1)
        return [
            lambda: fused(*whole),
            lambda: torch.softmax(torch.baddbmm(zero, q, kt, beta=0, alpha=scale), -1) @ v,
        ]
