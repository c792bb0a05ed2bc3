"""Recognising transposed convolutions: sums whose taps meet the data at some places only.

However it is written (a stage that inserts zeros before a convolution, or guards in the sum), a
window of it reads ``data[i]`` wherever ``stride * i == out + tap + offset`` or
``== out - tap + offset``, and nothing elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
    walk,
)
from ansorpy.ir.interpret.evaluate import Evaluator, Frame, Mask
from ansorpy.ir.interpret.numerics import Value
from ansorpy.ir.rewrite import substitute
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["SparseWindow", "Transposed", "axes_of", "find_transposed"]

Law = tuple[int, int, int]
Mask2d = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SparseWindow:
    """A dimension of the data with ``stride * index == out + direction * tap + offset``.

    Args:
        dim: Of the data.
        direction: 1 or -1.
    """

    dim: int
    out: Axis
    tap: Axis
    stride: int
    direction: int
    offset: int


@dataclass(frozen=True, eq=False)
class Transposed:
    """``op[...] = sum(data[...] * weight)`` with windows of which some meet few of their taps.

    Args:
        data: What is read, below padding and inserted zeros.
        weight: How the weight is read, in terms of the operator's axes.
        data_axes: Dimension of the data -> the axis that alone indexes it, windows left out.
        channels: Reduce axes that are no taps.
        out_channels: Output axes that only the weight has.
    """

    op: ComputeOp
    data: Tensor
    weight: Load
    windows: tuple[SparseWindow, ...]
    data_axes: tuple[tuple[int, Axis], ...]
    channels: tuple[Axis, ...]
    out_channels: tuple[Axis, ...]

    @property
    def kept(self) -> tuple[Axis, ...]:
        """Output axes the data have too, windows left out: batch, groups."""
        return tuple(axis for _, axis in self.data_axes if axis not in self.channels)


def find_transposed(dag: ComputeDAG) -> list[Transposed]:
    """Every transposed convolution of *dag*, in order; matched on what is read, not on names."""
    found = [_match(dag, op) for op in dag.computes if op not in dag.constant_ops]
    return [conv for conv in found if conv is not None]


@dataclass(frozen=True)
class _Guarded:
    """*value* where all *conditions* hold, and 0 elsewhere."""

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
    """*e* without selections of 0, read through stages that only choose and move elements."""
    conditions: list[Expr] = []
    while True:
        if isinstance(e, Select) and isinstance(e.other, Const) and e.other.value == 0:
            conditions += _conjuncts(e.cond)
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


def _conjuncts(condition: Expr) -> list[Expr]:
    if isinstance(condition, Binary) and condition.op is BinaryOp.AND:
        return [*_conjuncts(condition.a), *_conjuncts(condition.b)]
    return [condition]


def _as_transposed(
    op: ComputeOp, data: Load, weight: Load, conditions: Sequence[Expr]
) -> Transposed | None:
    rest, windows, plain = list(conditions), list[SparseWindow](), list[tuple[int, Axis]]()
    for dim, index in enumerate(data.indices):
        axes = axes_of(index)
        if len(axes) == 1 and isinstance(index, Axis):
            plain.append((dim, index))
            continue
        own = [c for c in rest if axes_of(c) <= axes]
        rest = [c for c in rest if c not in own]
        window = _window(op, data, dim, axes, own)
        if window is None:
            return None
        windows.append(window)
    if rest or not any(w.stride > 1 for w in windows):
        return None
    return _assembled(op, data, weight, windows, plain)


def _assembled(
    op: ComputeOp, data: Load, weight: Load, windows: list[SparseWindow],
    plain: list[tuple[int, Axis]],
) -> Transposed | None:  # fmt: skip
    """The match, when every axis has one part in it."""
    of_weight = set[Axis]().union(*map(axes_of, weight.indices))
    outs, taps = {w.out for w in windows}, {w.tap for w in windows}
    alone = {axis for _, axis in plain}
    used = [*alone, *outs, *taps]
    channels = tuple(a for a in op.reduce_axes if a not in taps)
    out_channels = tuple(a for a in op.axes if a not in used)
    apart = len(set(used)) == len(plain) + 2 * len(windows)
    summed = set(channels) <= alone & of_weight and taps <= of_weight
    covered = set(out_channels) <= of_weight and not outs & of_weight
    if not (apart and summed and covered):
        return None
    assert isinstance(data.source, Tensor)
    return Transposed(op, data.source, weight, tuple(windows), tuple(plain), channels, out_channels)


def axes_of(e: Expr) -> set[Axis]:
    """The axes in *e*."""
    return {x for x in walk(e) if isinstance(x, Axis)}


def _window(
    op: ComputeOp, data: Load, dim: int, axes: set[Axis], conditions: Sequence[Expr]
) -> SparseWindow | None:
    """The window of a dimension when one output and one reduce axis decide what it reads."""
    outs, taps = ([a for a in of if a in axes] for of in (op.axes, op.reduce_axes))
    if len(outs) != 1 or len(taps) != 1 or len(axes) != 2:
        return None
    (out,), (tap,) = outs, taps
    index, met = _reads(data.indices[dim], out, tap, conditions)
    assert isinstance(data.source, Tensor)
    extent = data.source.shape[dim]
    if met is None or not met.any() or index[met].min() < 0 or index[met].max() >= extent:
        return None
    law = _law(index, met)
    if law is None:
        return None
    stride, direction, offset = law
    at = np.arange(out.extent)[:, None] + direction * np.arange(tap.extent) + offset
    wanted = (at % stride == 0) & (at >= 0) & (at < stride * extent)
    if not np.array_equal(met, wanted) or not np.array_equal(index[met] * stride, at[met]):
        return None
    return SparseWindow(dim, out, tap, stride, direction, offset)


class _Indices(Evaluator):
    """Evaluates expressions that read nothing."""

    def load(self, source: Any, indices: tuple[Value, ...], frame: Frame, mask: Mask) -> Value:
        raise LookupError


def _reads(
    index: Expr, out: Axis, tap: Axis, conditions: Sequence[Expr]
) -> tuple[npt.NDArray[np.int64], Mask2d | None]:
    """The index at every (out, tap), and where it is read; None when it depends on values."""
    shape = (out.extent, tap.extent)
    frame = Frame({out: np.arange(out.extent)[:, None], tap: np.arange(tap.extent)[None, :]})
    evaluator = _Indices()
    try:
        met = np.ones(shape, dtype=np.bool_)
        for condition in conditions:
            met = met & np.asarray(evaluator.value(condition, frame), dtype=np.bool_)
        found = np.broadcast_to(np.asarray(evaluator.value(index, frame)), shape)
    except LookupError:
        return np.zeros(shape, dtype=np.int64), None
    return found.astype(np.int64), met


def _law(index: npt.NDArray[np.int64], met: Mask2d) -> Law | None:
    """(stride, direction, offset) from the first points read, to be checked at all of them."""
    points = np.argwhere(met)
    first = points[0]
    same_tap = points[(points[:, 1] == first[1]) & (points[:, 0] != first[0])]
    other = points[points[:, 1] != first[1]]
    if not len(same_tap):
        return None
    moved = int(index[tuple(same_tap[0])] - index[tuple(first)])
    if moved == 0 or (same_tap[0][0] - first[0]) % moved:
        return None
    stride = int(same_tap[0][0] - first[0]) // moved
    level = stride * int(index[tuple(first)]) - int(first[0])
    direction = 1
    if len(other):
        rise = stride * int(index[tuple(other[0])]) - int(other[0][0]) - level
        direction = 1 if rise * (other[0][1] - first[1]) > 0 else -1
    return None if stride < 1 else (stride, direction, level - direction * int(first[1]))
