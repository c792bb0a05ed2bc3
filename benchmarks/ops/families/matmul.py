"""Matrix products of two run-time operands, single or batched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import helper

import ansorpy as ap
from ansorpy.ir.tensor import Tensor
from benchmarks.ops.case import Case, OnnxGraph

__all__ = ["Matmul"]


@dataclass(frozen=True)
class Matmul(Case):
    """``out[b, i, j]``, the sum over k of ``x[b, i, k] y[b, k, j]``; no axis ``b`` for batch 1."""

    n: int
    m: int
    k: int
    batch: int = 1

    @property
    def label(self) -> str:
        return f"{self.n}x{self.m}x{self.k}.b{self.batch}"

    def tensors(self) -> list[Tensor]:
        lead = () if self.batch == 1 else (self.batch,)
        x = ap.placeholder((*lead, self.n, self.k), name="x")
        y = ap.placeholder((*lead, self.k, self.m), name="y")
        k = ap.reduce_axis(self.k, name="k")
        out = ap.compute(
            (*lead, self.n, self.m),
            lambda *i: ap.sum(x[(*i[:-1], k)] * y[(*i[:-2], k, i[-1])], axis=k),
            name="out",
            names=("b", "i", "j")[1 - len(lead) :],
        )
        return [x, y, out]

    def onnx_graphs(self) -> Sequence[OnnxGraph]:
        return [OnnxGraph((helper.make_node("MatMul", ["x", "y"], ["out"]),))]

    def torch_calls(self, torch: Any, values: Mapping[str, Any]) -> Sequence[Callable[[], Any]]:
        x, y = values["x"], values["y"]
        out = torch.empty(self.dag.outputs[0].shape)
        return [lambda: torch.matmul(x, y, out=out)]
