"""Convolution, batch normalization (as scale and offset) and relu: one layer of a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import helper

import ansorpy as ap
from ansorpy.ir.tensor import Tensor
from benchmarks.ops.case import OnnxGraph
from benchmarks.ops.families.conv2d import Conv2d
from benchmarks.ops.families.convolution import channels_last_formats

__all__ = ["ConvLayer"]


@dataclass(frozen=True)
class ConvLayer(Conv2d):
    """``relu(conv(x, w) * scale + offset)``."""

    def tensors(self) -> list[Tensor]:
        x, w, conv = self.convolution("conv")
        scale, offset = (
            ap.placeholder((self.co,), name=name, constant=True) for name in ("scale", "offset")
        )
        norm = ap.compute(
            conv.shape,
            lambda n, i, j, co: conv[n, i, j, co] * scale[co] + offset[co],
            name="norm",
        )
        out = ap.compute(
            conv.shape, lambda n, i, j, co: ap.maximum(norm[n, i, j, co], 0.0), name="out"
        )
        return [x, w, scale, offset, out]

    def onnx_graphs(self) -> Sequence[OnnxGraph]:
        statistics = ["mean", "variance"]
        nodes = (
            helper.make_node("Conv", ["x", "w"], ["conv"], **self.attributes()),
            helper.make_node(
                "BatchNormalization", ["conv", "scale", "offset", *statistics], ["norm"],
                epsilon=0.0,
            ),
            helper.make_node("Relu", ["norm"], ["out"]),
        )  # fmt: skip
        zeros, ones = np.zeros(self.co, np.float32), np.ones(self.co, np.float32)
        return [OnnxGraph(nodes, dict(zip(statistics, (zeros, ones), strict=True)))]

    def torch_calls(self, torch: Any, values: Mapping[str, Any]) -> Sequence[Callable[[], Any]]:
        """Fold the scale into the weights, as is usual for inference with torch."""
        conv = torch.nn.functional.conv2d
        folded = values["w"] * values["scale"].reshape(-1, 1, 1, 1)

        def call(x: Any, w: Any, b: Any) -> Callable[[], Any]:
            return lambda: conv(x, w, b, self.stride, self.pad, self.dilation).relu_()

        return [
            call(
                values["x"].to(memory_format=form), folded.to(memory_format=form), values["offset"]
            )
            for form in channels_last_formats(torch, self.rank)
        ]
