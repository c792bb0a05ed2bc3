"""Compute transposed convolutions by residue of the output, so that no tap is multiplied by 0."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import gcd, prod

from ansorpy.ir import builders
from ansorpy.ir.analysis.flops import flops
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Axis, AxisKind, Expr, Load, Var, as_expr
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.rewrite.simplify import simplify
from ansorpy.ir.tensor import ComputeOp, reduce_axis
from ansorpy.rules.algorithms.base import Algorithm, Definition
from ansorpy.rules.algorithms.fitted import fit, groups_of, read_where, slots_of, stage
from ansorpy.rules.algorithms.transposed import (
    SparseWindow,
    Transposed,
    counted,
    find_transposed,
)
from ansorpy.rules.algorithms.winograd import Winograd
from ansorpy.schedule.lowering.dag_edit import replace_ops
from ansorpy.target import Target

__all__ = ["Residues", "residues"]


@dataclass(frozen=True)
class Residues(Algorithm):
    """Rewrite a transposed convolution as one plain convolution per residue of its outputs.

        for y, k where (y + p - k) % s == 0:     for u, a, t where r(a) + s * t < K:
          out[y] += x[(y + p - k) // s] * w[k]     P[u, a] += x[u + d(a) - t] * w[r(a) + s * t]
                                            -->  for y:
                                                   out[y] = P[y // s, y % s]

    A residue that has fewer taps than others skips the missing ones.  Blocks of the output are
    boxes of ``P``, so a block is assembled from values computed in it.  With zeros for the missing
    taps, this is a plain stride-1 convolution in ``u`` with the residues as groups, from which
    *fast* derives its definitions.

    Source: Dumoulin & Visin, "A guide to convolution arithmetic for deep learning", 2016.
    """

    fast: Winograd = Winograd()

    def rewrite(self, dag: ComputeDAG, target: Target) -> Iterable[Definition]:
        for conv in find_transposed(dag):
            made = residues(dag, conv)
            if not _is_given_so(conv):
                yield made
            plain = residues(dag, conv, as_groups=True)
            least = flops(made.dag) * _part_met(conv)
            for fast in self.fast.rewrite(plain.dag, target):
                if flops(fast.dag) < least:
                    yield Definition(f"{made.name} {fast.name}", fast.dag, fast.error)


def _part_met(conv: Transposed) -> float:
    """The fraction of counted taps that exist; the count includes missing taps of residues."""
    phases = [_Phase(w) for w in conv.windows]
    return prod(p.window.taps / (p.taps * p.window.stride) for p in phases)


def _is_given_so(conv: Transposed) -> bool:
    """Whether the definition has no products with zeros to skip, because all taps read data."""
    products = flops(conv.op)
    return products <= flops(_Stages(conv, as_groups=False).parts()) and not any(
        _Phase(w).is_ragged for w in conv.windows
    )


def residues(dag: ComputeDAG, conv: Transposed, *, as_groups: bool = False) -> Definition:
    """*dag* with *conv* computed residue by residue, then assembled.

    The stages:

        fit:     [kept and places..., channels...], the data, zero where taps reach beyond it
        weight:  [taps..., residues..., kept..., channels..., outputs...], at bind time if constant
        parts:   [kept, places and residues..., outputs...], the convolutions
        the transposed convolution with its own name and axes, which reads ``parts``

    With *as_groups*, a residue has all taps, some with weight 0, and its own data in ``shifted``:
    ``[kept and residues..., places..., channels...]``.
    """
    replaced, _ = replace_ops(dag, {conv.op: _Stages(conv, as_groups=as_groups).result()})
    return Definition("residues", replaced)


class _Phase:
    """The decomposition of a window: ``out = stride * place + residue``.

    Attributes:
        taps: Maximum number of taps of a residue; successive ones differ by ``apart``.
        dilation: Distance between the data elements that these taps read.
        first: Lowest index of the data that is read.
        reach: Number of elements from ``first`` to the last one read.
    """

    def __init__(self, window: SparseWindow) -> None:
        self.window = window
        stride, step = window.stride, window.step
        self.common = gcd(stride, step)
        self.apart = stride // self.common
        self.inverse = pow(step // self.common, -1, self.apart) if self.apart > 1 else 0
        self.dilation = abs(step) // self.common
        self.taps = -(-window.taps // self.apart)
        self.places = -(-window.extent // stride)
        starts = [self._start(a) for a in range(stride)]
        self.first = min(starts)
        span = self.dilation * (self.taps - 1)
        self.reach = max(starts) - self.first + self.places + span

    @property
    def is_ragged(self) -> bool:
        """Whether some residues have fewer taps than others."""
        return self.common > 1 or self.window.taps % self.apart > 0

    def shift(self, residue: Expr) -> Expr:
        """Offset from a place to the element that the first tap reads, relative to ``first``."""
        return self._by_residue(lambda a: self._start(a) - self.first, residue)

    def tap(self, t: Expr, residue: Expr) -> Expr:
        """The index of a residue's *t*-th tap; it may exceed the last tap."""
        forward = t if self.window.step > 0 else (self.taps - 1) - t
        return self._by_residue(self._tap, residue) + forward * self.apart

    def is_met(self, t: Expr, residue: Expr) -> list[Expr]:
        """Conditions under which :meth:`tap` is a tap of this residue."""
        found = [self.tap(t, residue) < self.window.taps] if self.window.taps % self.apart else []
        if self.common > 1:
            found.append(((residue + self.window.offset) % self.common).equal(0))
        return found

    def _tap(self, residue: int) -> int:
        """The lowest tap of a residue."""
        return -((residue + self.window.offset) // self.common) * self.inverse % self.apart

    def _start(self, residue: int) -> int:
        """Index of the data element that place 0 reads with tap number 0."""
        w = self.window
        lowest = (residue + w.offset + w.step * self._tap(residue)) // w.stride
        return lowest - (self.dilation * (self.taps - 1) if w.step < 0 else 0)

    def _by_residue(self, value: Callable[[int], int], residue: Expr) -> Expr:
        """*value* as an expression: linear if possible, else nested selects."""
        values = [value(a) for a in range(self.window.stride)]
        rise = values[1] - values[0] if len(values) > 1 else 0
        if all(v == values[0] + a * rise for a, v in enumerate(values)):
            return simplify(residue * rise + values[0])
        chosen = as_expr(values[-1])
        for a in reversed(range(len(values) - 1)):
            chosen = builders.select(residue.equal(a), values[a], chosen)
        return chosen


Slot = Axis | _Phase
"""A dimension of the data: an axis of the operator, or the places of a window."""


class _Stages:
    """Builds the stages of one transposed convolution, producers first."""

    def __init__(self, conv: Transposed, *, as_groups: bool) -> None:
        self.conv = conv
        self.as_groups = as_groups
        self.phases = [_Phase(w) for w in conv.windows]
        self.strided = [phase for phase in self.phases if phase.window.stride > 1]
        self.order: list[Slot] = slots_of(conv, self.phases)

    def result(self) -> ComputeOp:
        """The operator that replaces the transposed convolution."""
        conv, parts = self.conv, self.parts()
        axes = tuple(Axis(a.name, a.extent, AxisKind.SPACE) for a in conv.op.axes)
        at = dict(zip(conv.op.axes, axes, strict=True))
        where: list[Expr] = []
        for slot in self.order:
            if not isinstance(slot, _Phase):
                where.append(at[slot])
                continue
            out, stride = counted([at[a] for a in slot.window.outs]), slot.window.stride
            where += [out // stride, out % stride] if stride > 1 else [out]
        where += [at[a] for a in conv.out_channels]
        body = parts[tuple(simplify(index) for index in where)]
        return ComputeOp(conv.op.name, conv.op.shape, axes, (), body, conv.op.attrs)

    def parts(self) -> ComputeOp:
        """``[kept, places and residues..., outputs...]``."""
        conv, weight = self.conv, self._weight()
        fitted = self._shifted() if self.as_groups else fit(conv, [*self.order, *conv.channels])
        taps = {p: reduce_axis(p.taps, name=f"t{k}") for k, p in enumerate(self.phases)
                if p.taps > 1}  # fmt: skip
        depth = [reduce_axis(a.extent, name=f"c{k}") for k, a in enumerate(conv.channels)]
        shape: list[int] = []
        for slot in self.order:
            shape += _extents(slot)
        zero = as_expr(0)

        def value(*i: Expr) -> Expr:
            rest = iter(i)
            at: dict[Slot, Expr] = {}
            residue: dict[_Phase, Expr] = {}
            for slot in self.order:
                at[slot] = next(rest)
                if slot in self.strided and isinstance(slot, _Phase):
                    residue[slot] = next(rest)
            moved = dict(at)
            for phase, t in taps.items():
                moved[phase] = at[phase] + (t * phase.dilation if phase.dilation > 1 else t)
            if not self.as_groups:
                for phase, a in residue.items():
                    moved[phase] = simplify(moved[phase] + phase.shift(a))
            data = [*residue.values()] if self.as_groups else []
            data += [moved[slot] for slot in self.order]
            shared = [at[a] for a in groups_of(conv)]
            read = fitted[(*data, *depth)]
            product = read * weight[(*taps.values(), *residue.values(), *shared, *depth, *rest)]
            met = [c for p in self.phases
                   for c in p.is_met(taps.get(p, zero), residue.get(p, zero))]  # fmt: skip
            if met and not self.as_groups:
                product = read_where(met, product)
            summed = [*taps.values(), *depth]
            return builders.sum(product, axis=summed) if summed else product

        return stage(conv, "parts", [*shape, *(a.extent for a in conv.out_channels)], value)

    def _shifted(self) -> ComputeOp:
        """``[residues..., kept and places..., channels...]``: the data that each residue reads."""
        conv, n = self.conv, len(self.strided)
        order: list[Slot] = [*self.order, *conv.channels]
        fitted = fit(conv, order)
        shape = [p.window.stride for p in self.strided]
        shape += [
            s.places + s.dilation * (s.taps - 1) if isinstance(s, _Phase) else s.extent
            for s in order
        ]

        def value(*i: Expr) -> Expr:
            at = dict(zip(order, i[n:], strict=True))
            for phase, a in zip(self.strided, i[:n], strict=True):
                at[phase] = simplify(at[phase] + phase.shift(a))
            return fitted[tuple(at[slot] for slot in order)]

        return stage(conv, "shifted", shape, value)

    def _weight(self) -> ComputeOp:
        """``[taps..., residues..., kept..., channels..., outputs...]``, zero for missing taps."""
        conv = self.conv
        rest = [*groups_of(conv), *conv.channels, *conv.out_channels]
        summed = [p for p in self.phases if p.taps > 1]
        shape = [*(p.taps for p in summed), *(p.window.stride for p in self.strided)]
        zero = as_expr(0)

        def value(*i: Expr) -> Expr:
            found = iter(i)
            taps = {p: next(found) for p in summed}
            residue = {p: next(found) for p in self.strided}
            at: dict[Var, Expr] = dict(zip(rest, found, strict=True))
            indices = [substitute(index, at) for index in conv.weight.indices]
            inside: list[Expr] = []
            for phase in self.phases:
                where = taps.get(phase, zero), residue.get(phase, zero)
                indices[phase.window.weight_dim] = phase.tap(*where)
                inside += phase.is_met(*where)
            return read_where(inside, Load(conv.weight.source, tuple(indices)))

        return stage(conv, "weight", [*shape, *(a.extent for a in rest)], value)


def _extents(slot: Slot) -> list[int]:
    if not isinstance(slot, _Phase):
        return [slot.extent]
    stride = slot.window.stride
    return [slot.places, stride] if stride > 1 else [slot.places]
