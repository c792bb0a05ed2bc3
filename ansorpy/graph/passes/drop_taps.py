"""Drop the taps of a convolution that only ever read padding.

    conv3x3(x[16 x 16], dilation 24, padding 24)   -->   conv1x1(x)

Widely dilated windows (atrous pyramids on small images) reach beyond the image on both sides.  Only
taps at either end of an axis are dropped, so that the result is an ordinary convolution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansorpy.graph.ir import Graph, GraphBuilder, Node
from ansorpy.graph.ops import Conv
from ansorpy.ir.extents import AnyExtent, most

__all__ = ["drop_taps"]


def drop_taps(graph: Graph) -> Graph:
    """*graph* (channels first) without these taps in convolutions with constant weights."""
    builder = GraphBuilder.like(graph)
    for node in graph.nodes:
        kept = _axes(graph, node)
        if all(axis.is_whole for axis in kept):
            builder.add_node(node)
            continue
        data, weight = node.inputs
        taps = tuple(slice(axis.first, axis.first + axis.taps) for axis in kept)
        fewer = graph.constants[weight][:, :, *taps]
        assert isinstance(node.op, Conv)
        op = replace(
            node.op,
            pads_begin=tuple(axis.pad_begin for axis in kept),
            pads_end=tuple(axis.pad_end for axis in kept),
        )
        fewer_taps = builder.add_constant(f"{weight}.taps", fewer)
        builder.add_node(Node(op, (data, fewer_taps), node.output))
    return builder.finish(graph.outputs)


@dataclass(frozen=True)
class _Axis:
    """A spatial axis of a convolution: the remaining taps and padding."""

    first: int
    taps: int
    pad_begin: int
    pad_end: int
    is_whole: bool


def _axes(graph: Graph, node: Node) -> list[_Axis]:
    """The remaining part of each axis of *node*; [] if it is not a convolution by a constant."""
    op = node.op
    if not isinstance(op, Conv) or node.inputs[1] not in graph.constants:
        return []
    sizes, kernel = graph.types[node.inputs[0]].shape[2:], graph.types[node.inputs[1]].shape[2:]
    outs = graph.types[node.output].shape[2:]
    return [
        _kept(*axis)
        for axis in zip(
            sizes, kernel, outs, op.strides, op.dilations, op.pads_begin, op.pads_end, strict=True
        )
    ]


def _kept(
    size: AnyExtent, taps: int, outs: AnyExtent, stride: int, dilation: int, begin: int, end: int
) -> _Axis:
    first, last = 0, taps - 1
    # A tap reads ``o * stride + tap * dilation - begin`` for each output o.
    while first < last and begin >= dilation and most(outs - 1) * stride < begin:
        first, begin = first + 1, begin - dilation
    while first < last and end >= dilation and (last - first) * dilation - begin >= most(size):
        last, end = last - 1, end - dilation
    return _Axis(first, last - first + 1, begin, end, last - first + 1 == taps)
