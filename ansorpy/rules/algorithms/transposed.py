"""Recognise transposed convolutions: sums in which only some taps read data.

However a transposed convolution is written (a stage that inserts zeros before a convolution, or
guards in the sum), its window reads ``data[i]`` wherever ``stride * i == out + step * tap +
offset``, and nothing elsewhere.  The step is usually -1; dilation makes it larger in magnitude.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ansorpy.ir.analysis.affine import axes_in, index_terms
from ansorpy.ir.analysis.conditions import conjuncts
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import (
    Axis,
    Binary,
    BinaryOp,
    Const,
    Expr,
    Load,
    Reduce,
    ReduceKind,
    Select,
    SizeVar,
    Var,
    walk,
)
from ansorpy.ir.interpret.evaluate import Evaluator, Frame, Mask
from ansorpy.ir.interpret.numerics import Value
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["POINTS", "SparseWindow", "Transposed", "counted", "find_transposed"]

Points = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SparseWindow:
    """A dimension of the data that is read where ``stride * index == out + step * tap + offset``.

    Args:
        dim: Dimension of the data.
        outs: Output axes whose flat index (last axis fastest) is ``out``.
        taps: Number of taps; ``tap`` indexes the weight's dimension *weight_dim*.
        summed: The reduce axis that runs over all or some of the taps.
    """

    dim: int
    outs: tuple[Axis, ...]
    weight_dim: int
    taps: int
    summed: Axis
    stride: int
    step: int
    offset: int

    @property
    def extent(self) -> int:
        """Number of values of ``out``."""
        return prod(axis.extent for axis in self.outs)


@dataclass(frozen=True, eq=False)
class Transposed:
    """``op[...] = sum(data[...] * weight[...])`` with windows that read data at few of their taps.

    Args:
        data: The load of the data, below padding and inserted zeros; dimensions without a window
            are in terms of axes of the operator.
        weight: The load of the weight; dimensions without a window are in terms of the other
            axes of the operator.
        data_axes: Dimensions of the data and axes that index them, without windows; several axes
            of one dimension (groups and their channels) form a flat index (last axis fastest).
        channels: Reduce axes that belong to no window.
        out_channels: Output axes that only the weight has.
    """

    op: ComputeOp
    data: Load
    weight: Load
    windows: tuple[SparseWindow, ...]
    data_axes: tuple[tuple[int, Axis], ...]
    channels: tuple[Axis, ...]
    out_channels: tuple[Axis, ...]

    @property
    def kept(self) -> tuple[Axis, ...]:
        """Output axes that also index the data, without windows: batch, groups."""
        return tuple(axis for _, axis in self.data_axes if axis not in self.channels)


@lru_cache(maxsize=8)
def find_transposed(dag: ComputeDAG) -> tuple[Transposed, ...]:
    """Every transposed convolution of *dag*, in order; matched on its reads, not on names.

    Several algorithms ask for those of the same DAG, and all reads of long windows take seconds.
    """
    found = [_match(dag, op) for op in dag.computes if op not in dag.constant_ops]
    return tuple(conv for conv in found if conv is not None)


@dataclass(frozen=True)
class _Guarded:
    """An expression that is *value* where all *conditions* hold, and 0 elsewhere."""

    value: Expr
    conditions: tuple[Expr, ...]


def _match(dag: ComputeDAG, op: ComputeOp) -> Transposed | None:
    body = op.body
    if not isinstance(body, Reduce) or body.kind is not ReduceKind.SUM:
        return None
    product = _guarded(dag, body.source)
    if not isinstance(product.value, Binary) or product.value.op is not BinaryOp.MUL:
        return None
    sides = (_guarded(dag, product.value.a), _guarded(dag, product.value.b))
    for data, weight in (sides, sides[::-1]):
        conditions = (*product.conditions, *data.conditions, *weight.conditions)
        if isinstance(data.value, Load) and isinstance(weight.value, Load):
            found = _as_transposed(op, data.value, weight.value, conditions)
            if found is not None:
                return found
    return None


def _guarded(dag: ComputeDAG, e: Expr) -> _Guarded:
    """*e* without its selects with 0, looking through stages that only select and move elements."""
    conditions: list[Expr] = []
    while True:
        if isinstance(e, Select) and isinstance(e.other, Const) and e.other.value == 0:
            conditions += conjuncts(e.cond)
            e = e.then
            continue
        source = e.source if isinstance(e, Load) else None
        if not isinstance(e, Load) or not isinstance(source, ComputeOp) or source.reduce_axes:
            break
        body = substitute(source.body, dict(zip(source.axes, e.indices, strict=True)))
        inner = _guarded(dag, body)
        if source in dag.constant_ops or not isinstance(inner.value, Load):
            break
        return _Guarded(inner.value, (*conditions, *inner.conditions))
    return _Guarded(e, tuple(conditions))


def _as_transposed(
    op: ComputeOp, data: Load, weight: Load, conditions: Sequence[Expr]
) -> Transposed | None:
    rest, windows, plain = list(conditions), list[SparseWindow](), list[tuple[int, Axis]]()
    readings: list[_Reading] = []
    indices = list(data.indices)
    for dim, index in enumerate(data.indices):
        alone = _counting(op, index)
        if alone:
            plain += [(dim, axis) for axis in alone]
            indices[dim] = counted(alone)
            continue
        part = _part(op, weight, index)
        if part is None:
            return None
        own = [c for c in rest if axes_in(c) <= part.axes]
        rest = [c for c in rest if c not in own]
        readings.append(_Reading(part, index, tuple(own)))
        window = _window(readings[-1], weight, dim)
        if window is None:
            return None
        windows.append(window)
    if rest or not any(w.stride > 1 for w in windows):
        return None
    extents = data.source.shape
    if not all(_holds(w, r, extents[w.dim]) for w, r in zip(windows, readings, strict=True)):
        return None
    return _assembled(op, Load(data.source, tuple(indices)), weight, windows, plain)


def _assembled(
    op: ComputeOp, data: Load, weight: Load, windows: list[SparseWindow],
    plain: list[tuple[int, Axis]],
) -> Transposed | None:  # fmt: skip
    """The match, if every axis has exactly one role in it."""
    tap_dims = {w.weight_dim for w in windows}
    others = [axes_in(x) for d, x in enumerate(weight.indices) if d not in tap_dims]
    of_weight = set[Axis]().union(*others)
    of_windows = [axis for w in windows for axis in (*w.outs, w.summed)]
    alone = [axis for _, axis in plain]
    used = [*alone, *of_windows]
    channels = tuple(a for a in op.reduce_axes if a not in of_windows)
    out_channels = tuple(a for a in op.axes if a not in used)
    apart = len(set(used)) == len(used) and len(tap_dims) == len(windows)
    summed = set(channels) <= set(alone) & of_weight
    covered = set(out_channels) <= of_weight and not set(of_windows) & of_weight
    if not (apart and summed and covered):
        return None
    return Transposed(op, data, weight, tuple(windows), tuple(plain), channels, out_channels)


def _counting(op: ComputeOp, index: Expr) -> list[Axis]:
    """The axes whose flat index is *index*, slowest first; empty if it is not a flat index."""
    found = index_terms(index, (*op.axes, *op.reduce_axes))
    if found is None or found[1]:
        return []
    axes = sorted(found[0], key=lambda axis: -found[0][axis])
    run = 1
    for axis in reversed(axes):
        if found[0][axis] != run:
            return []
        run *= axis.extent
    return axes


@dataclass(frozen=True)
class _Part:
    """The axes of one window, and the dimension of the weight that its tap indexes."""

    outs: tuple[Axis, ...]
    summed: Axis
    weight_dim: int
    tap: Expr

    @property
    def axes(self) -> set[Axis]:
        return {*self.outs, self.summed}


def _part(op: ComputeOp, weight: Load, index: Expr) -> _Part | None:
    """The window to which *index* of the data belongs: one reduce axis, and output axes."""
    axes = axes_in(index)
    summed = [a for a in op.reduce_axes if a in axes]
    if len(summed) != 1:
        return None
    taps = [(d, x) for d, x in enumerate(weight.indices) if summed[0] in axes_in(x)]
    if len(taps) != 1:
        return None
    axes |= axes_in(taps[0][1])
    outs = tuple(a for a in op.axes if a in axes)
    return _Part(outs, summed[0], *taps[0]) if outs and len(outs) + 1 == len(axes) else None


@dataclass(frozen=True)
class _Reading:
    """The reads of the data along a window: at *index*, where all *conditions* hold."""

    part: _Part
    index: Expr
    conditions: tuple[Expr, ...]

    @property
    def is_listable(self) -> bool:
        """Whether the reads depend neither on values of elements nor on sizes of dimensions."""
        parts = (self.index, self.part.tap, *self.conditions)
        is_plain = not any(isinstance(x, Load | SizeVar) for e in parts for x in walk(e))
        return is_plain and all(isinstance(axis.extent, int) for axis in self.part.outs)

    def blocks(self) -> Iterator[tuple[range, Points]]:
        """Consecutive outputs, and rows (out, tap, index) of all their reads."""
        total = prod(axis.extent for axis in self.part.outs)
        step = max(POINTS // self.part.summed.extent, 1)
        for first in range(0, total, step):
            outs = range(first, min(first + step, total))
            yield outs, self._reads(outs)

    def _reads(self, outs: range) -> Points:
        part, shape = self.part, (len(outs), self.part.summed.extent)
        out = np.arange(outs.start, outs.stop)
        places = np.unravel_index(out, [axis.extent for axis in part.outs])
        values: dict[Var, Points] = {
            a: place[:, None] for a, place in zip(part.outs, places, strict=True)
        }
        frame = Frame({**values, part.summed: np.arange(part.summed.extent)})
        evaluator = _Indices()
        met = np.ones(shape, dtype=np.bool_)
        for condition in self.conditions:
            met = met & np.asarray(evaluator.value(condition, frame), dtype=np.bool_)
        columns = (out[:, None], *(evaluator.value(e, frame) for e in (part.tap, self.index)))
        return np.stack([np.broadcast_to(x, shape)[met] for x in columns], axis=1).astype(np.int64)


POINTS = 1 << 16
"""Approximate number of (output, tap) pairs that are evaluated at once."""


class _Indices(Evaluator):
    """Evaluates expressions without loads."""

    def load(self, source: Any, indices: tuple[Value, ...], frame: Frame, mask: Mask) -> Value:
        raise AssertionError("an index must not depend on the value of an element")


def _window(reading: _Reading, weight: Load, dim: int) -> SparseWindow | None:
    """The window implied by the first reads, if :func:`_holds` confirms it for all others."""
    assert isinstance(weight.source, Tensor)
    law = _first_law(reading) if reading.is_listable else None
    if law is None:
        return None
    part, (stride, step, offset) = reading.part, law
    taps = weight.source.shape[part.weight_dim]
    return SparseWindow(dim, part.outs, part.weight_dim, taps, part.summed, stride, step, offset)


def _first_law(reading: _Reading) -> tuple[int, int, int] | None:
    """The law suggested by the first block with reads, and by the next one if these are too few."""
    before: Points | None = None
    for _, reads in reading.blocks():
        known = reads if before is None else np.concatenate([before, reads])
        law = _law(known)
        if law is not None or before is not None:
            return law
        before = reads if len(reads) else None
    return None


def _holds(window: SparseWindow, reading: _Reading, extent: int) -> bool:
    """Whether the law of *window* predicts all reads of *extent* data elements."""
    for outs, reads in reading.blocks():
        out, tap = np.meshgrid(np.array(outs), np.arange(window.taps), indexing="ij")
        at = out + window.step * tap + window.offset
        met = (at % window.stride == 0) & (at >= 0) & (at < window.stride * extent)
        wanted = np.stack([out[met], tap[met], at[met] // window.stride], axis=1)
        if not np.array_equal(reads[np.lexsort(reads.T[::-1])], wanted):
            return False
    return True


def _law(reads: Points) -> tuple[int, int, int] | None:
    """(stride, step, offset) suggested by the first rows; to be checked against all of them."""
    if not len(reads):
        return None
    out, tap, index = (int(x) for x in reads[0])
    same_tap = reads[(reads[:, 1] == tap) & (reads[:, 2] != index)]
    other = reads[reads[:, 1] != tap]
    if not len(same_tap) or (same_tap[0, 0] - out) % (same_tap[0, 2] - index):
        return None
    stride = int(same_tap[0, 0] - out) // int(same_tap[0, 2] - index)
    level, step = stride * index - out, 1
    if len(other):
        rise = int(stride * other[0, 2] - other[0, 0]) - level
        step = rise // int(other[0, 1] - tap)
    return None if stride < 1 or not step else (stride, step, level - step * tap)


def counted(axes: Sequence[Expr]) -> Expr:
    """The flat index of *axes*, the last one fastest."""
    total, *rest = axes
    for axis in rest:
        assert isinstance(axis, Axis), "outputs are counted by axes"
        total = total * axis.extent + axis
    return total
