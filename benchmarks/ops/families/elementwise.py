"""Softmax over rows, and gelu."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import helper

import ansorpy as ap
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import Tensor
from benchmarks.ops.case import Case, OnnxGraph

__all__ = ["Gelu", "Softmax"]


@dataclass(frozen=True)
class Softmax(Case):
    """Softmax over the last axis of ``x``."""

    shape: tuple[int, ...]

    @property
    def label(self) -> str:
        return "x".join(map(str, self.shape))

    def tensors(self) -> list[Tensor]:
        *lead, size = self.shape
        names = "bijk"[: len(lead)]
        x = ap.placeholder(self.shape, name="x")
        rm, rs = ap.reduce_axis(size, name="rm"), ap.reduce_axis(size, name="rs")
        top = ap.compute(
            lead, lambda *i: ap.max(x[(*i, rm)], axis=rm), name="top", names=names
        )  # fmt: skip

        def exponential(*i: Expr) -> Expr:
            return ap.exp(x[i] - top[i[:-1]])

        raised = ap.compute(self.shape, exponential, name="raised", names=(*names, "c"))
        total = ap.compute(
            lead, lambda *i: ap.sum(raised[(*i, rs)], axis=rs), name="total", names=names
        )
        out = ap.compute(
            self.shape, lambda *i: raised[i] / total[i[:-1]], name="out", names=(*names, "c")
        )
        return [x, out]

    def onnx_graphs(self) -> Sequence[OnnxGraph]:
        return [OnnxGraph((helper.make_node("Softmax", ["x"], ["out"], axis=-1),))]

    def torch_calls(self, torch: Any, values: Mapping[str, Any]) -> Sequence[Callable[[], Any]]:
        x = values["x"]
        out = torch.empty_like(x)
        return [lambda: torch.softmax(x, -1, out=out)]


@dataclass(frozen=True)
class Gelu(Case):
    """``x (1 + erf(x / sqrt(2))) / 2``."""

    shape: tuple[int, ...]

    @property
    def label(self) -> str:
        return "x".join(map(str, self.shape))

    def tensors(self) -> list[Tensor]:
        x = ap.placeholder(self.shape, name="x")
        out = ap.compute(
            self.shape, lambda *i: 0.5 * x[i] * (1.0 + ap.erf(x[i] * 0.5**0.5)), name="out"
        )
        return [x, out]

    def onnx_graphs(self) -> Sequence[OnnxGraph]:
        return [OnnxGraph((helper.make_node("Gelu", ["x"], ["out"]),))]

    def torch_calls(self, torch: Any, values: Mapping[str, Any]) -> Sequence[Callable[[], Any]]:
        x, out = values["x"], torch.empty_like(values["x"])
        gelu = torch._C._nn.gelu
        return [lambda: gelu(x, approximate="none", out=out)]
