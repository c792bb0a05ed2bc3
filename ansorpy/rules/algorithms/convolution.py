"""Recognise convolutions by their reads, in any layout, number of dimensions and notation."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.ir.analysis.access import Terms, accesses, multiplied_loads
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Axis, Load
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["Convolution", "Window", "find_convolutions"]


@dataclass(frozen=True, eq=False)
class Window:
    """A dimension of the data that is read at ``stride * out + dilation * tap + offset``.

    Args:
        dim: Dimension of the data.
        offset: Constant term of the index.
    """

    dim: int
    out: Axis
    tap: Axis
    stride: int
    dilation: int
    offset: int


@dataclass(frozen=True, eq=False)
class Convolution:
    """``op[...] = sum(data[...] * weight[...])`` with one or more windows.

    Args:
        read: The load of the data; the weight may be loaded from the same tensor.
        data_axes: Dimensions of the data with the single axis that indexes each, without windows.
        weight_axes: The axis of each dimension of the weight.
        channels: Reduce axes that are not taps.
    """

    op: ComputeOp
    read: Load
    weight: Tensor
    windows: tuple[Window, ...]
    data_axes: tuple[tuple[int, Axis], ...]
    weight_axes: tuple[Axis, ...]
    channels: tuple[Axis, ...]

    @property
    def data(self) -> Tensor:
        """The tensor in which the windows lie."""
        assert isinstance(self.read.source, Tensor)
        return self.read.source

    @property
    def kept(self) -> tuple[Axis, ...]:
        """Output axes that also index the data, without windows: batch, groups."""
        return tuple(axis for _, axis in self.data_axes if axis not in self.channels)

    @property
    def out_channels(self) -> tuple[Axis, ...]:
        """Output axes that only the weight has."""
        of_data = {axis for _, axis in self.data_axes} | {w.out for w in self.windows}
        return tuple(axis for axis in self.op.axes if axis not in of_data)


def find_convolutions(dag: ComputeDAG) -> list[Convolution]:
    """Every convolution of *dag*, in order; matched on index functions, not on names."""
    found = [_match(op) for op in dag.computes if op not in dag.constant_ops]
    return [conv for conv in found if conv is not None]


def _match(op: ComputeOp) -> Convolution | None:
    loads = multiplied_loads(op)
    if loads is None:
        return None
    for data, weight in (loads, loads[::-1]):
        conv = _as_convolution(op, data, weight)
        if conv is not None:
            return conv
    return None


def _as_convolution(op: ComputeOp, data: Load, weight: Load) -> Convolution | None:
    weight_axes = _plain_axes(weight)
    if weight_axes is None or not isinstance(data.source, Tensor):
        return None
    windows: list[Window] = []
    data_axes: list[tuple[int, Axis]] = []
    access = next(access for access in accesses(op) if access.indices is data.indices)
    for dim, found in enumerate(access.terms):
        if found is None:
            return None
        window = _window(op, dim, found)
        if window is not None:
            windows.append(window)
        elif len(found[0]) == 1 and found[1] == 0 and set(found[0].values()) == {1}:
            data_axes.append((dim, next(iter(found[0]))))
        else:
            return None
    taps = {w.tap for w in windows}
    used = [*(axis for _, axis in data_axes), *(w.out for w in windows), *taps]
    channels = tuple(a for a in op.reduce_axes if a not in taps)
    apart = len(set(used)) == len(used) and taps <= set(weight_axes)
    summed = set(channels) <= set(weight_axes) & {axis for _, axis in data_axes}
    outs = {w.out for w in windows}
    covered = set(op.axes) <= set(used) | set(weight_axes) and not outs & set(weight_axes)
    if not windows or not (apart and summed and covered):
        return None
    assert isinstance(weight.source, Tensor)
    return Convolution(
        op, data, weight.source, tuple(windows), tuple(data_axes), weight_axes, channels
    )


def _plain_axes(load: Load) -> tuple[Axis, ...] | None:
    """The axis of each dimension if each index of the load is a different single axis, or None."""
    axes = [index for index in load.indices if isinstance(index, Axis)]
    plain = len(axes) == len(load.indices) == len(set(axes))
    return tuple(axes) if plain and isinstance(load.source, Tensor) else None


def _window(op: ComputeOp, dim: int, found: Terms) -> Window | None:
    """The window for an index with one output axis and one reduce axis; None for other indices."""
    terms, offset = found
    outs = [a for a in terms if a in op.axes]
    taps = [a for a in terms if a in op.reduce_axes]
    if len(outs) != 1 or len(taps) != 1 or len(terms) != 2 or min(terms.values()) < 1:
        return None
    return Window(dim, outs[0], taps[0], terms[outs[0]], terms[taps[0]], offset)
