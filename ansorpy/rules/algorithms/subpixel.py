"""Compute transposed convolutions without multiplying by the zeros between elements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from ansorpy.codegen.vectors import lanes_of
from ansorpy.ir import builders
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Axis, AxisKind, Expr, Load, Var, as_expr
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.rewrite.simplify import simplify
from ansorpy.ir.tensor import ComputeOp, Tensor, reduce_axis
from ansorpy.rules.algorithms.base import Algorithm, Definition
from ansorpy.rules.algorithms.fitted import fit, groups_of, read_where, slots_of, stage
from ansorpy.rules.algorithms.transposed import (
    SparseWindow,
    Transposed,
    counted,
    find_transposed,
)
from ansorpy.schedule.lowering.dag_edit import replace_ops
from ansorpy.target import Target

__all__ = ["Subpixel", "subpixel"]


@dataclass(frozen=True)
class Subpixel(Algorithm):
    """Rewrite a transposed convolution as a plain one that computes all residues together.

        for y, k where (y + p - k) % s == 0:      for u, r, t:
          out[y] += x[(y + p - k) // s] * w[k]      P[u, r] += x[u - t] * w[r + s * t]
                                             -->  for y:
                                                    out[y] = P[(y + p) // s, (y + p) % s]

    The residues ``r`` become output channels, so no tap reads an inserted zero, and every rule and
    algorithm for stride-1 convolutions (including Winograd) applies.  If the stride does not divide
    the number of taps, some residues have a tap of weight 0: the result is exact for finite data,
    but an infinity or NaN spreads to outputs that do not depend on it in the original definition.

    Source: Shi et al., "Is the deconvolution layer the same as a convolutional layer?", 2016.
    """

    def rewrite(self, dag: ComputeDAG, target: Target) -> Iterable[Definition]:
        for conv in find_transposed(dag):
            if _applies(conv) and _fills_vectors(conv, target):
                yield subpixel(dag, conv)


def _applies(conv: Transposed) -> bool:
    return all(abs(w.step) == 1 for w in conv.windows)


def _fills_vectors(conv: Transposed, target: Target) -> bool:
    """Whether residues side by side need fewer vectors than separate residues.

    Side by side, every residue has as many taps as the longest, some of them zero unless the
    stride divides the taps; but residues fill the lanes that few output channels leave unused.
    """
    lanes = lanes_of(conv.op, target) if conv.out_channels else 1
    outputs = prod(a.extent for a in conv.out_channels)
    strides = prod(w.stride for w in conv.windows)
    together = prod(-(-w.taps // w.stride) for w in conv.windows) * -(-strides * outputs // lanes)
    return together < prod(w.taps for w in conv.windows) * -(-outputs // lanes)


def subpixel(dag: ComputeDAG, conv: Transposed) -> Definition:
    """*dag* with *conv* computed as a plain convolution, then assembled.

    The stages:

        fit:     [kept and places..., channels...], the data, zero where taps reach beyond it
        weight:  [taps..., kept..., channels..., residues and outputs], at bind time if constant
        parts:   the convolution
        the transposed convolution with its own name and axes, which reads ``parts``
    """
    replaced, _ = replace_ops(dag, {conv.op: _Stages(conv).result()})
    return Definition("subpixel", replaced)


@dataclass(frozen=True, eq=False)
class _Phase:
    """The decomposition of a window: ``out = stride * place + residue``, up to the offset.

    Args:
        lowest: Lowest place; *places* of them are computed.
        taps: Number of taps of a residue.
        first: Index of the data element that the lowest place reads with its first tap.
    """

    window: SparseWindow
    lowest: int
    places: int
    taps: int
    first: int

    @property
    def reach(self) -> int:
        """The number of elements of the data from ``first`` to the last one read."""
        return self.places + self.taps - 1

    def place(self, y: Expr) -> Expr:
        """The place to which an output belongs, counted from 0."""
        return (
            self._shifted(y) if self.window.stride == 1 else self._shifted(y) // self.window.stride
        )

    def residue(self, y: Expr) -> Expr:
        """The residue of an output, which determines its taps."""
        w = self.window
        if w.step < 0:
            return self._shifted(y) % w.stride
        return (w.stride - 1) - self._shifted(y) % w.stride

    def _shifted(self, y: Expr) -> Expr:
        """``y + offset`` relative to the lowest place, rounded up if taps run forward."""
        w = self.window
        shift = w.offset - w.stride * self.lowest + (w.stride - 1) * (w.step > 0)
        return y + shift if shift else y

    def tap(self, t: Expr, residue: Expr) -> Expr:
        """The index of a residue's *t*-th tap; it may exceed the last tap."""
        w = self.window
        at = t if w.step > 0 else (self.taps - 1) - t
        return at if w.stride == 1 else at * w.stride + residue


def _phase(window: SparseWindow) -> _Phase:
    s, forward = window.stride, window.step > 0
    up = s - 1 if forward else 0
    lowest = (window.offset + up) // s
    last = (window.extent - 1 + window.offset + up) // s
    taps = -(-window.taps // s)
    first = lowest - (0 if forward else taps - 1)
    return _Phase(window, lowest, last - lowest + 1, taps, first)


Slot = Axis | _Phase
"""A dimension of the plain convolution: an axis of the operator, or the places of a window."""


class _Stages:
    """Builds the stages of one transposed convolution, producers first."""

    def __init__(self, conv: Transposed) -> None:
        self.conv = conv
        self.phases = [_phase(w) for w in conv.windows]
        self.order: list[Slot] = slots_of(conv, self.phases)
        # Outputs come last; if depthwise, residues precede the channels, which are vectorized.
        self.last = len(self.order)
        if not conv.out_channels:
            self.last = 1 + max(self.order.index(phase) for phase in self.phases)

    def result(self) -> ComputeOp:
        """The operator that replaces the transposed convolution."""
        conv = self.conv
        parts = self._parts(fit(conv, [*self.order, *conv.channels]), self._weight())
        axes = tuple(Axis(a.name, a.extent, AxisKind.SPACE) for a in conv.op.axes)
        at = dict(zip(conv.op.axes, axes, strict=True))
        outs = {phase: counted([at[a] for a in phase.window.outs]) for phase in self.phases}
        mixed: Expr = as_expr(0)
        for phase in self._strided():
            mixed = mixed * phase.window.stride + phase.residue(outs[phase])
        for axis in conv.out_channels:
            mixed = mixed * axis.extent + at[axis]
        where = [
            slot.place(outs[slot]) if isinstance(slot, _Phase) else at[slot] for slot in self.order
        ]
        where.insert(self.last, mixed)
        body = parts[tuple(simplify(index) for index in where)]
        return ComputeOp(conv.op.name, conv.op.shape, axes, (), body, conv.op.attrs)

    def _strided(self) -> list[_Phase]:
        return [phase for phase in self.phases if phase.window.stride > 1]

    def _weight(self) -> Tensor:
        """``[taps..., kept..., channels..., residues and outputs]``, zero beyond the last tap."""
        conv = self.conv
        rest, summed = [*groups_of(conv), *conv.channels], [p for p in self.phases if p.taps > 1]
        shape = [*(p.taps for p in summed), *(a.extent for a in rest), self._mixed_extent()]

        def value(*i: Expr) -> Expr:
            taps = dict(zip(summed, i, strict=False))
            residues, outputs = self._taken_apart(i[-1])
            at: dict[Var, Expr] = dict(zip(rest, i[len(summed) : -1], strict=True))
            at |= dict(zip(conv.out_channels, outputs, strict=True))
            indices = [substitute(index, at) for index in conv.weight.indices]
            inside: list[Expr] = []
            for phase in self.phases:
                w, zero = phase.window, as_expr(0)
                tap = phase.tap(taps.get(phase, zero), residues.get(phase, zero))
                indices[w.weight_dim] = tap
                if w.taps % w.stride:
                    inside.append(tap < w.taps)
            return read_where(inside, Load(conv.weight.source, tuple(indices)))

        return stage(conv, "weight", shape, value)

    def _mixed_extent(self) -> int:
        strides = prod(phase.window.stride for phase in self.phases)
        return strides * prod(a.extent for a in self.conv.out_channels)

    def _taken_apart(self, mixed: Expr) -> tuple[dict[_Phase, Expr], list[Expr]]:
        """The residue of each strided window and the output channels encoded in *mixed*."""
        strided, outputs = self._strided(), self.conv.out_channels
        extents = [*(phase.window.stride for phase in strided), *(a.extent for a in outputs)]
        parts: list[Expr] = []
        for extent in reversed(extents):
            parts.insert(0, mixed % extent)
            mixed = mixed // extent
        return dict(zip(strided, parts, strict=False)), parts[len(strided) :]

    def _parts(self, fitted: Tensor, weight: Tensor) -> ComputeOp:
        """The convolution, with places as windows, residues and outputs as output channels."""
        conv = self.conv
        shared = groups_of(conv)
        taps = {
            phase: reduce_axis(phase.taps, name=f"t{k}")
            for k, phase in enumerate(self.phases)
            if phase.taps > 1
        }
        depth = [reduce_axis(a.extent, name=f"c{k}") for k, a in enumerate(conv.channels)]
        extents = [s.places if isinstance(s, _Phase) else s.extent for s in self.order]
        extents.insert(self.last, self._mixed_extent())

        def value(*i: Expr) -> Expr:
            rest = [x for d, x in enumerate(i) if d != self.last]
            at: dict[Slot, Expr] = dict(zip(self.order, rest, strict=True))
            moved = at | {phase: at[phase] + t for phase, t in taps.items()}
            read = fitted[(*(moved[slot] for slot in self.order), *depth)]
            other = weight[(*taps.values(), *(at[a] for a in shared), *depth, i[self.last])]
            return builders.sum(read * other, axis=[*taps.values(), *depth])

        return stage(conv, "parts", extents, value)
