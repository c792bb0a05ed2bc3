"""Transposed convolutions without multiplications by the zeros between the elements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from ansorpy.ir import builders
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Axis, AxisKind, Expr, as_expr
from ansorpy.ir.rewrite import substitute
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis
from ansorpy.rules.algorithms.base import Algorithm, Definition
from ansorpy.rules.algorithms.transposed import SparseWindow, Transposed, axes_of, find_transposed
from ansorpy.schedule.dagedit import replace_ops
from ansorpy.target import Target

__all__ = ["Subpixel", "subpixel"]


@dataclass(frozen=True)
class Subpixel(Algorithm):
    """A transposed convolution as a plain one that gives all pixels between two of the data.

        for y, k where (y + p - k) % s == 0:      for u, r, t:
          out[y] += x[(y + p - k) // s] * w[k]      P[u, r] += x[u - t] * w[r + s * t]
                                             -->  for y:
                                                    out[y] = P[(y + p) // s, (y + p) % s]

    The residues ``r`` are output channels of that convolution, so no tap meets a zero and every
    rule and algorithm for convolutions of stride 1 applies to it (Winograd's too).

    Source: Shi et al., "Is the deconvolution layer the same as a convolutional layer?", 2016.
    """

    def rewrite(self, dag: ComputeDAG, target: Target) -> Iterable[Definition]:
        for conv in find_transposed(dag):
            yield subpixel(dag, conv)


def subpixel(dag: ComputeDAG, conv: Transposed) -> Definition:
    """*dag* with *conv* computed as a plain convolution, then put in place.

    The stages:

        fit:     [kept and places..., channels...], the data with zeros where taps reach beyond
        weight:  [taps..., kept..., channels..., residues and outputs], at bind time when constant
        parts:   the convolution
        the transposed convolution's own name and axes, read from ``parts``
    """
    replaced, _ = replace_ops(dag, {conv.op: _Stages(conv).result()})
    return Definition("subpixel", replaced)


@dataclass(frozen=True, eq=False)
class _Phase:
    """How a window is taken apart: ``out = stride * place + residue`` up to the offset.

    Args:
        first: Lowest place; *places* of them are computed.
        taps: Taps of one residue.
        start: Index of the data that place 0 meets with its first tap.
    """

    window: SparseWindow
    first: int
    places: int
    taps: int
    start: int

    def place(self, y: Expr) -> Expr:
        """Which place an output belongs to, from 0."""
        return (
            self._shifted(y) if self.window.stride == 1 else self._shifted(y) // self.window.stride
        )

    def residue(self, y: Expr) -> Expr:
        """Which residue an output is; its taps are those of this remainder."""
        w = self.window
        if w.direction < 0:
            return self._shifted(y) % w.stride
        return (w.stride - 1) - self._shifted(y) % w.stride

    def _shifted(self, y: Expr) -> Expr:
        """``y + offset`` counted from the first place, rounded up for taps that go forward."""
        w = self.window
        shift = w.offset - w.stride * self.first + (w.stride - 1) * (w.direction > 0)
        return y + shift if shift else y

    def tap(self, t: Expr, residue: Expr) -> Expr:
        """The tap that the *t*-th of a residue is; beyond the last one at times."""
        w = self.window
        at = t if w.direction > 0 else (self.taps - 1) - t
        return at if w.stride == 1 else at * w.stride + residue


def _phase(window: SparseWindow) -> _Phase:
    s, forward = window.stride, window.direction > 0
    up = s - 1 if forward else 0
    first = (window.offset + up) // s
    last = (window.out.extent - 1 + window.offset + up) // s
    taps = -(-window.tap.extent // s)
    return _Phase(window, first, last - first + 1, taps, first - (0 if forward else taps - 1))


class _Stages:
    """Builds the stages of one transposed convolution, producers first."""

    def __init__(self, conv: Transposed) -> None:
        self.conv = conv
        self.phases = {w.out: _phase(w) for w in conv.windows}
        by_dim: dict[int, Axis] = {w.dim: w.out for w in conv.windows} | dict(conv.data_axes)
        self.order = [by_dim[d] for d in range(conv.data.ndim) if by_dim[d] not in conv.channels]
        self.strides = [w.stride for w in conv.windows if w.stride > 1]
        self.outputs = prod(a.extent for a in conv.out_channels)
        self.last = len(self.order)
        if not conv.out_channels:
            self.last = 1 + max(self.order.index(w.out) for w in conv.windows)

    def result(self) -> ComputeOp:
        """The operator that takes the transposed convolution's place."""
        conv, parts = self.conv, self._parts(self._fitted(), self._weight())
        axes = tuple(Axis(a.name, a.extent, AxisKind.SPACE) for a in conv.op.axes)
        at = dict(zip(conv.op.axes, axes, strict=True))
        mixed: Expr = as_expr(0)
        for window in conv.windows:
            if window.stride > 1:
                mixed = mixed * window.stride + self.phases[window.out].residue(at[window.out])
        for axis in conv.out_channels:
            mixed = mixed * axis.extent + at[axis]
        where = [self.phases[a].place(at[a]) if a in self.phases else at[a] for a in self.order]
        where.insert(self.last, mixed)
        return ComputeOp(conv.op.name, conv.op.shape, axes, (), parts[tuple(where)], conv.op.attrs)

    def _name(self, part: str) -> str:
        return f"{self.conv.op.name}.{part}"

    def _fitted(self) -> Tensor:
        """The data as far as taps reach, channels last."""
        conv, phases = self.conv, self.phases
        order = [*self.order, *conv.channels]
        dims = {axis: dim for dim, axis in conv.data_axes} | {w.out: w.dim for w in conv.windows}
        shape = [phases[a].places + phases[a].taps - 1 if a in phases else a.extent for a in order]
        starts = [phases[a].start if a in phases else 0 for a in order]
        sizes = [conv.data.shape[dims[a]] for a in order]
        if shape == sizes and not any(starts) and [dims[a] for a in order] == sorted(dims.values()):
            return conv.data

        def value(*i: Expr) -> Expr:
            at = [x + start if start else x for x, start in zip(i, starts, strict=True)]
            indices = dict(zip((dims[a] for a in order), at, strict=True))
            read = conv.data[tuple(indices[d] for d in range(conv.data.ndim))]
            inside = [x >= 0 for x, start in zip(at, starts, strict=True) if start < 0]
            inside += [
                x < size
                for x, start, length, size in zip(at, starts, shape, sizes, strict=True)
                if start + length > size
            ]
            return builders.select(builders.all_of(*inside), read, 0.0) if inside else read

        return compute(shape, value, name=self._name("fit"), names=_names("i", len(shape)))

    def _weight(self) -> Tensor:
        """``[taps..., kept..., channels..., residues and outputs]``, zero beyond the last tap."""
        conv, phases = self.conv, [self.phases[w.out] for w in self.conv.windows]
        rest, summed = [*self._shared(), *conv.channels], [p for p in phases if p.taps > 1]
        shape = [*(p.taps for p in summed), *(a.extent for a in rest), self._mixed_extent()]

        def value(*i: Expr) -> Expr:
            taps = dict(zip(summed, i, strict=False))
            residues, outputs = self._taken_apart(i[-1])
            at: dict[Axis, Expr] = dict(zip(rest, i[len(summed) : -1], strict=True))
            at |= dict(zip(conv.out_channels, outputs, strict=True))
            inside: list[Expr] = []
            for phase in phases:
                w, t = phase.window, taps.get(phase, as_expr(0))
                at[w.tap] = phase.tap(t, residues.get(w.out, as_expr(0)))
                if w.tap.extent % w.stride:
                    inside.append(at[w.tap] < w.tap.extent)
            read = substitute(conv.weight, {**at})
            return builders.select(builders.all_of(*inside), read, 0.0) if inside else read

        return compute(shape, value, name=self._name("weight"), names=_names("i", len(shape)))

    def _shared(self) -> list[Axis]:
        """Kept axes that the weight has too: groups."""
        read = {e for index in self.conv.weight.indices for e in axes_of(index)}
        return [a for a in self.conv.kept if a in read]

    def _mixed_extent(self) -> int:
        return prod(self.strides) * self.outputs

    def _taken_apart(self, mixed: Expr) -> tuple[dict[Axis, Expr], list[Expr]]:
        """The residue of each strided window, and the output channels, that *mixed* stands for."""
        parts: list[Expr] = []
        extents = [*self.strides, *(a.extent for a in self.conv.out_channels)]
        for extent in reversed(extents):
            parts.append(mixed % extent if len(parts) + 1 < len(extents) else mixed)
            mixed = mixed // extent
        parts.reverse()
        strided = [w.out for w in self.conv.windows if w.stride > 1]
        residues = dict(zip(strided, parts[: len(strided)], strict=True))
        return residues, parts[len(strided) :]

    def _parts(self, fitted: Tensor, weight: Tensor) -> ComputeOp:
        """The convolution: places as windows, residues and outputs as its output channels."""
        conv, shared = self.conv, self._shared()
        taps = {
            w.out: reduce_axis(self.phases[w.out].taps, name=f"t{k}")
            for k, w in enumerate(conv.windows)
            if self.phases[w.out].taps > 1
        }
        depth = [reduce_axis(a.extent, name=f"c{k}") for k, a in enumerate(conv.channels)]
        extents = [self.phases[a].places if a in self.phases else a.extent for a in self.order]
        extents.insert(self.last, self._mixed_extent())

        def value(*i: Expr) -> Expr:
            rest = [x for d, x in enumerate(i) if d != self.last]
            at = dict(zip(self.order, rest, strict=True))
            moved = at | {a: at[a] + t for a, t in taps.items()}
            read = fitted[(*(moved[a] for a in self.order), *depth)]
            other = weight[(*taps.values(), *(at[a] for a in shared), *depth, i[self.last])]
            return builders.sum(read * other, axis=[*taps.values(), *depth])

        return compute(extents, value, name=self._name("parts"), names=_names("i", len(extents)))


def _names(letter: str, count: int) -> Sequence[str]:
    return [f"{letter}{k}" for k in range(count)]
