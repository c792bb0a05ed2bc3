"""Transposed convolutions, channels last, without multiplications by inserted zeros.

Along an axis of stride ``s``, only every ``s``-th tap contributes to output ``h * s + a``: the taps
of its residue, ``(a + pad) % s + s * t``, from input ``h + (a + pad) // s - t``.  So the sum runs
over ``ceil(k / s)`` taps, residues get their own axes, and a last stage interleaves the residues.
A dilated axis keeps all of its taps and skips those that do not contribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ansorpy.graph.ops.base import (
    Arrangement,
    Op,
    Operand,
    Pattern,
    Rows,
    Shape,
    Stored,
    TensorType,
    channels_last_order,
    common_dtype,
    identity_order,
    is_first_cut,
)
from ansorpy.graph.ops.conv import output_channels
from ansorpy.graph.ops.indexing import kernel_axes, pad_spatial
from ansorpy.graph.ops.movement import Reshape, Transpose
from ansorpy.graph.ops.names import Names, spatial_axes
from ansorpy.ir.builders import all_of, select
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.expr import Axis, Expr, ExprLike, as_expr
from ansorpy.ir.extents import AnyExtent, most
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["ConvTranspose"]


@dataclass(frozen=True)
class ConvTranspose(Op):
    """A transposed convolution: ``out[i * stride + k * dilation - pad] += data[i] * w[k]``.

    Channels first: data ``[n, c, *s]``, weight ``[c, co / groups, *k]``.
    Channels last: data ``[n, *s, c]``, weight ``[*k, c, co]``; with groups
    ``[*k, groups, c / groups, co / groups]``.  ``out`` is the size of the
    output image, however it was chosen; elements to which no tap contributes are 0.
    """

    strides: Shape
    pads_begin: Shape
    out: Shape
    dilations: Shape
    groups: int = 1
    channels_last: bool = False
    pattern: ClassVar[Pattern] = Pattern.COMPLEX
    roles: ClassVar[tuple[str, ...]] = ("data", "weight")

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        data, weight = inputs
        rank = len(self.strides)
        if self.channels_last:
            channels = output_channels(weight.shape[rank:])
            return TensorType((data.shape[0], *self.out, channels), data.dtype)
        if weight.shape[0] != data.shape[1]:
            raise ValueError(
                f"the weight expects {weight.shape[0]} input channels, the data has {data.shape[1]}"
            )
        shape = (data.shape[0], weight.shape[1] * self.groups, *self.out)
        return TensorType(shape, common_dtype(inputs))

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """``out[n, *o, co]`` is a sum of ``data[n, *i, ci] * weight``.

        The sum is over all ``i``, taps and ``ci`` with ``i * stride + tap * dilation - pad == o``.
        """
        data, weight = inputs
        rank = len(self.strides)
        kernel, tail = weight.shape[:rank], weight.shape[rank:]
        columns = zip(
            spatial_axes(rank), data.shape[1:-1], kernel, self.strides, self.pads_begin,
            self.dilations, self.out, strict=True,
        )  # fmt: skip
        spatial = [_Spatial(*column) for column in columns]
        parts = _by_residue(spatial, pad_spatial(data, *_zeros(spatial), names), weight, names)
        grouped = len(tail) == 3

        def place(*i: Expr) -> Expr:
            index: list[Expr] = [i[0]]
            for axis, o in zip(spatial, i[1:-1], strict=True):
                index += [o // axis.parts, o % axis.parts] if axis.parts > 1 else [o]
            channel = [i[-1] // tail[-1], i[-1] % tail[-1]] if grouped else [i[-1]]
            return parts[(*index, *channel)]

        co = tail[-1] * (tail[0] if grouped else 1)
        return compute(
            (data.shape[0], *self.out, co), place,
            name=names.fresh("placed"), names=("n", *(axis.name for axis in spatial), "co"),
        )  # fmt: skip

    def arrange(self, operands: Sequence[Stored], shape: Shape) -> Arrangement:
        """Weight ``[ci, co, *k]`` to ``[*k, ci, co]``, with groups to ``[*k, groups, ci, co]``."""
        ci, co, *kernel = operands[1].shape
        taps = tuple(range(2, len(kernel) + 2))
        if self.groups == 1:
            weight = Operand((*taps, 0, 1))
        else:
            grouped = Reshape((self.groups, ci // self.groups, co, *kernel))
            turned = Transpose((*(t + 1 for t in taps), 0, 1, 2))
            weight = Operand(identity_order(len(kernel) + 2), (grouped, turned))
        last = channels_last_order(len(shape))
        return Arrangement(replace(self, channels_last=True), (Operand(last), weight), last)

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return is_first_cut(operands)


@dataclass(frozen=True)
class _Spatial:
    """One spatial axis: input size, taps, stride, cropping in front, dilation, output size."""

    name: str
    size: AnyExtent
    kernel: int
    stride: int
    cut: int
    dilation: int
    out: AnyExtent

    @property
    def parts(self) -> int:
        """Extent of the axis of residues; 1 if there is none."""
        return self.stride if self.dilation == 1 else 1

    @property
    def rows(self) -> AnyExtent:
        """Number of outputs of each residue."""
        return -(-self.out // self.parts)

    @property
    def taps(self) -> int:
        """Number of taps that the sum runs over."""
        return -(-self.kernel // self.parts)

    def zeros(self) -> tuple[int, int]:
        """The most zeros needed before and after the input so that no read is outside."""
        if self.dilation > 1:
            first = -(-((self.kernel - 1) * self.dilation - self.cut) // self.stride)
            last = (self.out - 1 + self.cut) // self.stride
        else:
            first = self.taps - 1 - self.cut // self.stride
            last = self.rows - 1 + (self.stride - 1 + self.cut) // self.stride
        return max(first, 0), max(most(last - (self.size - 1)), 0)

    def reached(self, h: Expr, a: Expr, t: ExprLike) -> tuple[Expr, ExprLike, list[Expr]]:
        """(input, tap, conditions) of the *t*-th tap that adds to output *h* of residue *a*."""
        s, cut = self.stride, self.cut
        if self.dilation > 1:
            offset = h + cut - t * self.dilation + self.zeros()[0] * s
            return offset // s, t, [offset % s < 1] if s > 1 else []
        if s == 1:
            return h + cut - t + self.zeros()[0], t, []
        tap = (a + cut) % s + t * s
        place = h + (a + cut) // s - t + self.zeros()[0]
        return place, tap, [tap < self.kernel] if self.kernel % s else []


def _zeros(spatial: Sequence[_Spatial]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    both = [axis.zeros() for axis in spatial]
    return tuple(front for front, _ in both), tuple(behind for _, behind in both)


def _by_residue(
    spatial: Sequence[_Spatial], padded: Tensor, weight: Tensor, names: Names
) -> ComputeOp:
    """``[n, (row, residue) of each spatial axis, (group,) co]``; single residues have no axis."""
    tail = weight.shape[len(spatial) :]
    taps = kernel_axes(tuple(a.taps for a in spatial), [a.name for a in spatial])
    ci: Axis | int = reduce_axis(tail[-2], name="ci") if tail[-2] > 1 else 0
    shape, axis_names = [padded.shape[0]], ["n"]
    for axis in spatial:
        shape += [axis.rows, axis.parts] if axis.parts > 1 else [axis.rows]
        axis_names += [axis.name, f"{axis.name}r"] if axis.parts > 1 else [axis.name]
    channels = ("co",) if len(tail) == 2 else ("g", "co")

    def body(*i: Expr) -> Expr:
        index = list(i[1 : len(i) - len(channels)])
        where: list[Expr] = []
        tap_index: list[ExprLike] = []
        conditions: list[Expr] = []
        for axis, tap in zip(spatial, taps, strict=True):
            h, a = index.pop(0), index.pop(0) if axis.parts > 1 else as_expr(0)
            place, k, needed = axis.reached(h, a, tap)
            where.append(place)
            tap_index.append(k)
            conditions += needed
        group, co = i[-len(channels) : -1], i[-1]
        channel = group[0] * tail[-2] + ci if group else ci
        product = padded[(i[0], *where, channel)] * weight[(*tap_index, *group, ci, co)]
        if conditions:
            product = select(all_of(*conditions), product, 0.0)
        return sum_over(product, axis=[k for k in (*taps, ci) if isinstance(k, Axis)])

    return compute(
        (*shape, *(tail[:1] if len(channels) == 2 else ()), tail[-1]), body,
        name=names.fresh("conv_transpose"), names=(*axis_names, *channels),
    )  # fmt: skip
