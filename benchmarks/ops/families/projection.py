"""A dense layer of a network: rows times a constant weight, plus bias."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import helper

import ansorpy as ap
from ansorpy.ir.tensor import Tensor
from benchmarks.ops.case import Case, OnnxGraph

__all__ = ["Projection"]


@dataclass(frozen=True)
class Projection(Case):
    """``out[i, j] = bias[j]`` plus the sum over k of ``x[i, k] w[k, j]``."""

    rows: int
    ci: int
    co: int

    @property
    def label(self) -> str:
        return f"{self.rows}x{self.ci}-{self.co}"

    def tensors(self) -> list[Tensor]:
        x = ap.placeholder((self.rows, self.ci), name="x")
        w = ap.placeholder((self.ci, self.co), name="w", constant=True)
        bias = ap.placeholder((self.co,), name="bias", constant=True)
        k = ap.reduce_axis(self.ci, name="k")
        shape = (self.rows, self.co)
        product = ap.compute(shape, lambda i, j: ap.sum(x[i, k] * w[k, j], axis=k), name="product")
        out = ap.compute(shape, lambda i, j: product[i, j] + bias[j], name="out")
        return [x, w, bias, out]

    def onnx_graphs(self) -> Sequence[OnnxGraph]:
        return [OnnxGraph((helper.make_node("Gemm", ["x", "w", "bias"], ["out"]),))]

    def torch_calls(self, torch: Any, values: Mapping[str, Any]) -> Sequence[Callable[[], Any]]:
        x, w, bias = values["x"], values["w"], values["bias"]
        out = torch.empty(self.rows, self.co)
        transposed = w.t().contiguous()
        linear = torch.nn.functional.linear
        return [
            lambda: torch.addmm(bias, x, w, out=out),
            lambda: linear(x, transposed, bias),
        ]
