"""Bound inference: how far every loop runs, and which box of a tensor a loop level needs.

All extents are :class:`~ansorpy.schedule.size.Size`, so one pass serves a program or a whole
population.  Where a box starts is structural: an affine form of the axes of the stage whose
loop it is needed in, or of quotients of them by numbers (``h // 4``: the tile a pixel is in).
What is not such a form with non-negative coefficients counts as the whole dimension.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

from ansorpy.errors import ScheduleError
from ansorpy.ir.affine import index_terms, linear
from ansorpy.ir.expr import Axis, Binary, BinaryOp, Const, Expr
from ansorpy.ir.tensor import ComputeOp
from ansorpy.schedule.decisions import Product
from ansorpy.schedule.inlining import Effective, effective
from ansorpy.schedule.size import (
    Size,
    ceil_div,
    product,
    size_gcd,
    size_max,
    size_min,
    split_extents,
)
from ansorpy.schedule.stage import FuseRelation, SplitRelation, Stage

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["Bounds", "Origin", "Part", "Span"]


class Part(NamedTuple):
    """``axis // divisor``."""

    axis: str
    divisor: int = 1


@dataclass(frozen=True)
class Origin:
    """``sum(coefficient * part) + offset`` over axes of the stage that owns the loop."""

    terms: tuple[tuple[Part, int], ...]
    offset: int


ZERO = Origin((), 0)


@dataclass(frozen=True)
class Span:
    """``extent`` elements of one dimension from ``origin``; None where its start is not affine.

    However the loops outside run, ``origin`` is ``origin.offset`` plus a multiple of ``step``
    (0: always the same start).
    """

    origin: Origin | None
    extent: Size
    step: Size = 1


class Bounds:
    """Extents and boxes of one state under *values* (column name -> Size).

    Raises:
        ScheduleError: A stage is computed inside a loop that one of its readers is outside of.
    """

    def __init__(self, state: State, values: Mapping[str, Size]):
        self.state = state
        self.values = values
        self.definition: Effective = effective(state)
        self._extents: dict[str, dict[str, Size]] = {}
        self._regions: dict[tuple[str, str, int], tuple[Span, ...]] = {}

    def number(self, factors: Product) -> Size:
        """The value of a product of numbers and columns."""
        return product(self.values[f] if isinstance(f, str) else f for f in factors)

    def op(self, name: str) -> ComputeOp:
        return self.definition.ops[name]

    # Loops

    def roots(self, name: str) -> dict[str, Size]:
        """Extent of each axis of a stage: whole, or the box its attach level needs."""
        stage = self.state.stage(name)
        op = stage.compute
        extents: dict[str, Size] = {a.name: a.extent for a in (*op.axes, *op.reduce_axes)}
        if stage.attach is not None:
            level = self.state.stage(stage.attach.stage).index(stage.attach.iter)
            region = self.region(name, stage.attach.stage, level)
            extents.update((a.name, s.extent) for a, s in zip(op.axes, region, strict=True))
        return extents

    def extents(self, name: str) -> dict[str, Size]:
        """Extent of every axis and loop of a stage, by name."""
        if name not in self._extents:
            stage, extents = self.state.stage(name), self.roots(name)
            for relation in stage.relations:
                if isinstance(relation, SplitRelation):
                    factors = [self.number(p) for p in relation.factors]
                    parts = split_extents(extents[relation.parent], factors)
                    extents.update(zip(relation.children, parts, strict=True))
                else:
                    extents[relation.child] = product(extents[p] for p in relation.parents)
            self._extents[name] = extents
        return self._extents[name]

    def inside(self, name: str, level: int) -> dict[str, Span]:
        """Box of each axis that the loops below number *level* of the stage run over."""
        stage, extents = self.state.stage(name), self.extents(name)
        spans: dict[str, Size] = {
            it.name: 1 if n <= level else extents[it.name] for n, it in enumerate(stage.iters)
        }
        fixed = {it.name for it in stage.iters[: level + 1]}
        whole: set[str] = set()
        for relation in reversed(stage.relations):
            if isinstance(relation, SplitRelation):
                spans[relation.parent] = self._joined(relation, spans, extents)
                _mark(fixed, whole, relation.parent, relation.children)
            else:
                self._unfused(stage, relation, spans, extents, fixed, whole)
        op, steps = stage.compute, self._steps(name, level)
        return {
            a.name: Span(
                None if a.name in whole else Origin(((Part(a.name), 1),), 0),
                spans[a.name],
                1 if stage.attach is not None else steps[a.name],
            )
            for a in (*op.axes, *op.reduce_axes)
        }

    def _steps(self, name: str, level: int) -> dict[str, Size]:
        """What divides the start of every axis's box, however the loops to *level* run."""
        stage, extents = self.state.stage(name), self.extents(name)
        steps: dict[str, Size] = {it.name: int(n <= level) for n, it in enumerate(stage.iters)}
        for relation in reversed(stage.relations):
            if isinstance(relation, FuseRelation):
                steps.update((p, size_min(steps[relation.child], 1)) for p in relation.parents)
                continue
            step, stride = cast(Size, 0), cast(Size, 1)
            pairs = zip(
                reversed(relation.children), (*reversed(relation.factors), (1,)), strict=True
            )
            for child, factor in pairs:
                step = size_gcd(step, steps[child] * stride)
                stride = stride * self.number(factor)
            if relation.shift:
                step = size_gcd(step, size_min(step, 1) * extents[relation.parent])
            steps[relation.parent] = step
        return steps

    def _joined(
        self, relation: SplitRelation, spans: Mapping[str, Size], extents: Mapping[str, Size]
    ) -> Size:
        stride: Size = 1
        reach: Size = 1
        pairs = zip(reversed(relation.children), (*reversed(relation.factors), (1,)), strict=True)
        for child, factor in pairs:
            reach = reach + (spans[child] - 1) * stride
            stride = stride * self.number(factor)
        return size_min(reach, extents[relation.parent])

    def _unfused(
        self,
        stage: Stage,
        relation: FuseRelation,
        spans: dict[str, Size],
        extents: Mapping[str, Size],
        fixed: set[str],
        whole: set[str],
    ) -> None:
        """Boxes of fused loops: exact when all of the fused loop is outside or inside the level."""
        child = relation.child
        for parent in relation.parents:
            if child in fixed:
                spans[parent] = 1
                fixed.add(parent)
            else:
                spans[parent] = extents[parent]
                if child in whole or child not in _untouched(stage, relation, fixed):
                    whole.add(parent)

    # Boxes

    def within(self, name: str, owner: str, level: int) -> bool:
        """True when *name* runs inside loop number *level* of *owner* (or is *owner*)."""
        if name == owner:
            return True
        attach = self.state.stage(name).attach
        if attach is None:
            return False
        if attach.stage == owner:
            return self.state.stage(owner).index(attach.iter) >= level
        return self.within(attach.stage, owner, level)

    def box(self, name: str, owner: str, level: int) -> dict[str, Span]:
        """Box of each axis of *name* per iteration of *owner*'s loops down to *level*."""
        if name == owner:
            return self.inside(name, level)
        op = self.op(name)
        spans = dict(zip((a.name for a in op.axes), self.region(name, owner, level), strict=True))
        return spans | {a.name: Span(ZERO, a.extent, 0) for a in op.reduce_axes}

    def region(self, name: str, owner: str, level: int) -> tuple[Span, ...]:
        """The box of tensor *name* that one iteration of *owner*'s loops down to *level* reads."""
        key = (name, owner, level)
        if key not in self._regions:
            self._regions[key] = tuple(self._region(name, owner, level))
        return self._regions[key]

    def _region(self, name: str, owner: str, level: int) -> Iterable[Span]:
        shape = self.state.stage(name).op.shape
        found: list[list[Span]] = [[] for _ in shape]
        for reader in self.definition.readers.get(name, ()):
            self._require_within(reader, name, owner, level)
            op, box = self.op(reader), self.box(reader, owner, level)
            for indices in self.definition.index_tuples(reader, name):
                for spans, index in zip(found, indices, strict=True):
                    spans.append(touched(index, op, box))
        for extent, spans in zip(shape, found, strict=True):
            yield hull(spans, extent)

    def _require_within(self, reader: str, name: str, owner: str, level: int) -> None:
        if not self.within(reader, owner, level):
            raise ScheduleError(
                f'"{name}" is computed inside a loop of "{owner}", '
                f'but "{reader}", which reads it, is not',
                stage=name, program=self.state.text(),
                hint=f'compute "{name}" at a loop around all of its readers, or at the root',
            )  # fmt: skip


def _untouched(stage: Stage, relation: FuseRelation, fixed: set[str]) -> set[str]:
    """The fused loop itself when none of its descendants is fixed outside the level."""
    names = {relation.child}
    for r in stage.relations:
        if isinstance(r, SplitRelation) and r.parent in names:
            names.update(r.children)
    return set() if names & fixed else {relation.child}


def touched(index: Expr, op: ComputeOp, box: Mapping[str, Span]) -> Span:
    """The span of values *index* takes while *op*'s axes run over *box*."""
    terms = index_terms(index, (*op.axes, *op.reduce_axes))
    if terms is not None:
        coefficients, offset = terms
        return _sum([(box[axis.name], c) for axis, c in coefficients.items()], offset)
    form = linear(index)
    parts: list[tuple[Span, int]] = []
    for atom, c in form.terms.items():
        if isinstance(atom, Axis):
            parts.append((box[atom.name], c))
        elif isinstance(atom, Binary) and atom.op is BinaryOp.FLOORDIV:
            parts.append((_quotient(touched(atom.a, op, box), atom.b), c))
        else:
            return NOWHERE
    return _sum(parts, form.const)


NOWHERE = Span(None, 0)


def _sum(parts: Iterable[tuple[Span, int]], offset: int) -> Span:
    """The span of ``sum(coefficient * value) + offset`` while each value runs over its span."""
    extent: Size = 1
    step: Size = 0
    origin: dict[Part, int] = {}
    for span, c in parts:
        if c < 0 or span.origin is None:
            return NOWHERE
        extent = extent + (span.extent - 1) * c
        step = size_gcd(step, span.step * c)
        offset += c * span.origin.offset
        for part, k in span.origin.terms:
            origin[part] = origin.get(part, 0) + c * k
    return Span(Origin(tuple(sorted((p, k) for p, k in origin.items() if k)), offset), extent, step)


def _quotient(span: Span, divisor: Expr) -> Span:
    """The span of ``value // divisor`` while the value runs over *span*."""
    if span.origin is None or not isinstance(divisor, Const) or int(divisor.value) < 1:
        return NOWHERE
    c, (terms, offset) = int(divisor.value), (span.origin.terms, span.origin.offset)
    if all(k % c == 0 for _, k in terms):
        start = Origin(tuple((part, k // c) for part, k in terms), offset // c)
        return Span(start, (span.extent + offset % c - 1) // c + 1)
    if len(terms) > 1 or offset or terms[0][1] != 1:
        return NOWHERE
    (axis, inner), _ = terms[0]
    start = Origin(((Part(axis, inner * c), 1),), 0)
    # The worst start there is: as far into a group of c as what divides all starts allows.
    return Span(start, ceil_div(span.extent + c - size_gcd(span.step, c), c))


def hull(spans: list[Span], extent: int) -> Span:
    """The smallest span that covers *spans* of a dimension of *extent* elements."""
    origins = [span.origin for span in spans]
    known = [o for o in origins if o is not None]
    if len(known) < len(spans) or len({o.terms for o in known}) != 1:
        return Span(ZERO, extent, 0)
    low = min(o.offset for o in known)
    reach: Size = 0
    for span, origin in zip(spans, known, strict=True):
        reach = size_max(reach, span.extent + (origin.offset - low))
    return Span(Origin(known[0].terms, low), size_min(reach, extent))


def _mark(fixed: set[str], whole: set[str], parent: str, children: tuple[str, ...]) -> None:
    """A split loop is fixed when all its parts are, and of unknown start when one part is."""
    if all(child in fixed for child in children):
        fixed.add(parent)
    if any(child in whole for child in children):
        whole.add(parent)
