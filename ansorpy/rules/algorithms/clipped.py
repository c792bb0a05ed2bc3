"""Convolutions that skip taps beyond the border instead of multiplying by zeros."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.ir import builders
from ansorpy.ir.analysis.affine import axes_in
from ansorpy.ir.analysis.conditions import conjuncts, held_at, share_held
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Binary, Const, Expr, Load, Reduce, Select, Var, has_load
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.rewrite.simplify import simplify
from ansorpy.ir.tensor import ComputeOp, compute
from ansorpy.rules.algorithms.base import Algorithm, Definition
from ansorpy.rules.algorithms.convolution import Convolution, Window, find_convolutions
from ansorpy.schedule.lowering.dag_edit import map_loads, replace_ops, with_body
from ansorpy.target import Target

__all__ = ["Clipped", "clipped"]


@dataclass(frozen=True)
class Clipped(Algorithm):
    """Replace the padding of all windows but the last one by a condition on the sum.

        pad[h, w] = x[h - p, w - p] or 0         pad[h, w] = x[h, w - p] or 0
        out[i, j] += pad[i + ky, j + kx] * w --> if 0 <= i + ky - p < H:
                                                   out[i, j] += pad[i + ky - p, j + kx] * w

    The condition is tested outside the loops that do not change it, so whole rows of taps are
    skipped.  The last window stays padded: its outputs share a register tile, where a condition
    would have to select between lanes or rows.

    Args:
        most_kept: A window stays padded if more than this fraction of its taps read data, or if
            none do.
    """

    most_kept: float = 0.95

    def rewrite(self, dag: ComputeDAG, target: Target) -> Iterable[Definition]:
        for conv in find_convolutions(dag):
            padding = _padding(conv)
            if padding is None:
                continue
            fixed = [w for w in conv.windows[:-1] if isinstance(w.out.extent, int)]
            share = {w: _taps_inside(conv, w, padding) for w in fixed}
            windows = [w for w, kept in share.items() if 0 < kept <= self.most_kept]
            if windows:
                yield clipped(dag, conv, windows)

    def rewrite_for_all(self, dag: ComputeDAG, target: Target) -> Iterable[Definition]:
        """Windows over dimensions stay padded."""
        return self.rewrite(dag, target)


def _taps_inside(conv: Convolution, window: Window, padding: _Padding) -> float:
    """The fraction of a window's (output, tap) pairs that read data."""
    return share_held(*_conditions(conv, window, padding))


def _conditions(conv: Convolution, window: Window, padding: _Padding) -> list[Expr]:
    """Conditions on a window's output and tap under which data are read."""
    at: dict[Var, Expr] = {padding.op.axes[window.dim]: conv.read.indices[window.dim]}
    return [simplify(substitute(c, at)) for c in padding.conditions.get(window.dim, [])]


def clipped(dag: ComputeDAG, conv: Convolution, windows: Sequence[Window]) -> Definition:
    """*dag* with *conv* skipping the taps of *windows* that read no data.

    Stages: ``<name>.rows``, the data padded along the other windows only, and the convolution.

    Raises:
        ValueError: The data of *conv* is not a padded tensor.
    """
    padding = _padding(conv)
    if padding is None:
        raise ValueError(f"{conv.op.name} does not read a padded tensor")
    first, shape = {}, list(padding.op.shape)
    for window in windows:
        inside = padding.inside(window.dim)
        first[window.dim], shape[window.dim] = inside.start, len(inside)
    rows = compute(
        shape,
        lambda *axes: padding.value([a + first.get(d, 0) for d, a in enumerate(axes)], set(first)),
        name=f"{conv.op.name}.rows",
        names=[axis.name for axis in padding.op.axes],
    )
    conditions = [c for w in windows for c in _conditions(conv, w, padding)]
    replaced, _ = replace_ops(dag, {conv.op: _summed(conv, conditions, rows, first)})
    return Definition("clipped", replaced)


def _summed(
    conv: Convolution, conditions: Sequence[Expr], rows: ComputeOp, first: Mapping[int, int]
) -> ComputeOp:
    """The convolution over *rows*, whose dimension ``d`` starts at padded index ``first[d]``."""
    body = conv.op.body
    assert isinstance(body, Reduce) and isinstance(body.source, Binary)

    def moved(load: Load) -> Expr:
        if load is not conv.read:
            return load
        at = (simplify(index - first.get(d, 0)) for d, index in enumerate(load.indices))
        return Load(rows, tuple(at))

    zero = Const(0.0 if body.dtype.is_float else 0, body.dtype)
    value = Select(builders.all_of(*conditions), map_loads(body.source, moved), zero)
    return with_body(conv.op, Reduce(body.kind, value, body.axes))


@dataclass(frozen=True)
class _Padding:
    """A stage that is zero where conditions on individual dimensions fail.

    Args:
        conditions: Conditions on the axis of each dimension, by dimension.
    """

    op: ComputeOp
    chosen: Select
    conditions: Mapping[int, list[Expr]]

    def inside(self, dim: int) -> range:
        """The indices of dimension *dim* that hold data: a range, since conditions are bounds."""
        held = held_at([self.op.axes[dim]], self.conditions.get(dim, []))
        [kept] = np.nonzero(held)
        return range(int(kept[0]), int(kept[-1]) + 1) if len(kept) else range(0)

    def value(self, at: list[Expr], without: set[int]) -> Expr:
        """The element at *at*; conditions of the dimensions in *without* are not tested."""
        mapping: dict[Var, Expr] = dict(zip(self.op.axes, at, strict=True))
        held = [c for dim, cs in self.conditions.items() if dim not in without for c in cs]
        body = self.chosen.then
        if held:
            body = Select(builders.all_of(*held), self.chosen.then, self.chosen.other)
        return simplify(substitute(body, mapping))


def _padding(conv: Convolution) -> _Padding | None:
    """The padding of the data; None unless each condition refers to a single dimension's axis."""
    op = conv.data
    if not isinstance(op, ComputeOp) or not isinstance(op.body, Select):
        return None
    zero = op.body.other
    if not isinstance(zero, Const) or zero.value != 0:
        return None
    conditions: dict[int, list[Expr]] = {}
    for part in conjuncts(op.body.cond):
        axes = axes_in(part)
        if len(axes) != 1 or has_load(part):
            return None
        [axis] = axes
        conditions.setdefault(op.axes.index(axis), []).append(part)
    return _Padding(op, op.body, conditions)
