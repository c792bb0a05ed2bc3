"""Common parts of all convolutions: sizes, zero padding, and the peers' operator."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from onnx import helper

import ansorpy as ap
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import Tensor
from benchmarks.ops.case import Case, OnnxGraph
from benchmarks.ops.layout import Layout, channels_first

__all__ = ["Convolution", "channels_last_formats", "padded"]


@dataclass(frozen=True)
class Convolution(Case):
    """Sizes of a convolution, channels last; ``size`` is that of the image, without channels."""

    size: tuple[int, ...]
    ci: int
    co: int
    k: int
    stride: int = 1
    pad: int = 0
    _: KW_ONLY
    dilation: int = 1
    batch: int = 1

    @property
    def label(self) -> str:
        sizes = "x".join(map(str, self.size))
        window = f"k{self.k}s{self.stride}" + (f"d{self.dilation}" if self.dilation > 1 else "")
        return f"{sizes}.{self.ci}-{self.co}.{window}.b{self.batch}"

    @property
    def rank(self) -> int:
        """Number of spatial axes of the image."""
        return len(self.size)

    @property
    def out_size(self) -> tuple[int, ...]:
        """Spatial size of the output."""
        reach = self.dilation * (self.k - 1) + 1
        return tuple((s + 2 * self.pad - reach) // self.stride + 1 for s in self.size)

    @property
    def groups(self) -> int:
        """Number of channel groups."""
        return 1

    @abstractmethod
    def weight_layout(self) -> Layout:
        """Layout of the weight as ``[co, ci / groups, *k]``."""

    def layouts(self) -> Mapping[str, Layout]:
        images = channels_first(self.rank)
        return {"x": images, "w": self.weight_layout(), "out": images}

    def onnx_graphs(self) -> Sequence[OnnxGraph]:
        return [OnnxGraph((helper.make_node("Conv", ["x", "w"], ["out"], **self.attributes()),))]

    def attributes(self) -> dict[str, Any]:
        """The attributes of ONNX's ``Conv``."""
        return {
            "strides": [self.stride] * self.rank,
            "pads": [self.pad] * (2 * self.rank),
            "dilations": [self.dilation] * self.rank,
            "group": self.groups,
        }

    def torch_calls(self, torch: Any, values: Mapping[str, Any]) -> Sequence[Callable[[], Any]]:
        conv = getattr(torch.nn.functional, f"conv{self.rank}d")

        def call(x: Any, w: Any) -> Callable[[], Any]:
            return lambda: conv(x, w, None, self.stride, self.pad, self.dilation, self.groups)

        return [
            call(values["x"].to(memory_format=form), values["w"].to(memory_format=form))
            for form in channels_last_formats(torch, self.rank)
        ]


def channels_last_formats(torch: Any, rank: int) -> list[Any]:
    """torch's memory formats for images of *rank* axes."""
    last = {2: torch.channels_last, 3: torch.channels_last_3d}
    return [torch.contiguous_format, *([last[rank]] if rank in last else [])]


def padded(x: Tensor, pads: Sequence[int]) -> Tensor:
    """Pad axis ``d + 1`` of *x* with ``pads[d]`` zeros on each side; *x* itself if all are 0."""
    if not any(pads):
        return x
    around = {d: pad for d, pad in enumerate(pads, 1) if pad}
    shape = [extent + 2 * around.get(d, 0) for d, extent in enumerate(x.shape)]

    def body(*i: Expr) -> Expr:
        inside = [
            c for d, p in around.items() for c in (i[d] >= p, i[d] < x.shape[d] + p)
        ]  # fmt: skip
        moved = tuple(e - around[d] if d in around else e for d, e in enumerate(i))
        return ap.select(ap.all_of(*inside), x[moved], 0.0)

    names = ["n", *"dhw"[3 - len(pads) :], *"cij"][: x.ndim]
    return ap.compute(shape, body, name="pad", names=names)
