"""Windows of signals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, dtype_of

__all__ = ["OPERATORS"]


def _window(*weights: float) -> Callable[[NodeContext], str]:
    """The sum of *weights*, each times the cosine of so many periods over the window's size."""

    def build(ctx: NodeContext) -> str:
        (size,) = ctx.constant_ints(0, "size")
        dtype = dtype_of(ctx.attr("output_datatype", 1))
        ctx.constant_shape((size,), dtype)
        length = size if ctx.attr("periodic", 1) else size - 1
        turns = 2 * np.pi * np.arange(size) / max(length, 1)
        values = sum(weight * np.cos(n * turns) for n, weight in enumerate(weights))
        return ctx.builder.add_constant(ctx.node.output[0], np.asarray(values).astype(dtype.numpy))

    return build


OPERATORS: dict[str, Callable[[NodeContext], str]] = {
    "BlackmanWindow": _window(0.42, -0.5, 0.08),
    "HammingWindow": _window(25 / 46, -21 / 46),
    "HannWindow": _window(0.5, -0.5),
}
