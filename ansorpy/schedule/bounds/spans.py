"""Spans: boxes of tensors one dimension at a time, each with its extent and start.

Invariant: a span covers every value of its index while the axes run over their boxes.  If a
function cannot keep this with an affine start, it returns :data:`NOWHERE`, which :func:`hull`
widens to the whole dimension.  Nothing here is clipped to a tensor, and only
:func:`moved_inside` allows for boxes that are moved.  The boxes passed in determine over which
threads a span is the union (:meth:`~ansorpy.schedule.bounds.inference.Bounds.inside`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ansorpy.ir.analysis.affine import index_terms, linear
from ansorpy.ir.analysis.interval import INT64_MAX
from ansorpy.ir.expr import Axis, Binary, BinaryOp, Const, Expr, as_expr
from ansorpy.ir.extents import Extent, Symbolic
from ansorpy.ir.tensor import ComputeOp
from ansorpy.schedule.tables.size import Size, ceil_div, size_gcd, size_max, size_min

__all__ = [
    "NOWHERE", "ZERO", "Origin", "Part", "Span", "clipped", "end_of", "hull", "limits",
    "moved_inside", "start_of", "touched",
]  # fmt: skip


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
    """``extent`` elements of one dimension from ``origin``, which is None if it is not affine.

    In every iteration of the loops outside, the start is ``origin.offset`` plus a multiple of
    ``step`` (0: always the same start).  A *late* span may end beyond the end to which its box is
    moved back; the box then starts earlier.
    """

    origin: Origin | None
    extent: Size
    step: Size = 1
    late: bool = False


def touched(index: Expr, op: ComputeOp, box: Mapping[str, Span]) -> Span:
    """The span of the values that *index* takes while *op*'s axes run over *box*; not clipped."""
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
    parts = list(parts)
    late = any(span.late for span, _ in parts)
    if late and _count_moving(parts) > 1:
        return NOWHERE  # if one box is moved, the sum starts early even inside the tensor
    for span, c in parts:
        if c < 0 or span.origin is None:
            return NOWHERE
        extent = extent + (span.extent - 1) * c
        step = size_gcd(step, span.step * c)
        offset += c * span.origin.offset
        for part, k in span.origin.terms:
            origin[part] = origin.get(part, 0) + c * k
    start = Origin(tuple(sorted((p, k) for p, k in origin.items() if k)), offset)
    return Span(start, extent, step, late)


def _count_moving(parts: Iterable[tuple[Span, int]]) -> int:
    return sum(span.origin is not None and bool(span.origin.terms) for span, _ in parts)


def _quotient(span: Span, divisor: Expr) -> Span:
    """The span of ``value // divisor`` while the value runs over *span*."""
    if span.origin is None or not isinstance(divisor, Const) or int(divisor.value) < 1:
        return NOWHERE
    c, (terms, offset) = int(divisor.value), (span.origin.terms, span.origin.offset)
    if all(k % c == 0 for _, k in terms):
        start = Origin(tuple((part, k // c) for part, k in terms), offset // c)
        before = c - 1 if span.late else offset % c  # a box that is moved may start anywhere
        return Span(start, (span.extent + before - 1) // c + 1, late=span.late)
    if len(terms) > 1 or offset or terms[0][1] != 1:
        return NOWHERE
    (axis, inner), _ = terms[0]
    start = Origin(((Part(axis, inner * c), 1),), 0)
    # Worst case: a start as far into a group of c as a common divisor of all starts and c allows.
    return Span(start, ceil_div(span.extent + c - size_gcd(span.step, c), c), late=span.late)


def limits(index: Expr, op: ComputeOp, box: Mapping[str, Span]) -> tuple[Size, Size] | None:
    """The least and greatest value of *index* while *op*'s axes run over *box* outside all loops.

    Every axis in an origin is 0 there.  Unlike :func:`touched`, this handles indices that fall as
    an axis rises.  None for an index that depends on data.
    """
    form = linear(index)
    low: Size = form.const
    high: Size = form.const
    for atom, c in form.terms.items():
        ends = _limits_of(atom, op, box)
        if ends is None:
            return None
        least, greatest = ends if c > 0 else ends[::-1]
        low, high = low + least * c, high + greatest * c
    return low, high


def _limits_of(atom: Expr, op: ComputeOp, box: Mapping[str, Span]) -> tuple[Size, Size] | None:
    if isinstance(atom, Axis):
        start = box[atom.name].origin
        return None if start is None else (start.offset, start.offset + box[atom.name].extent - 1)
    if not isinstance(atom, Binary):
        return None
    a, b = limits(atom.a, op, box), limits(atom.b, op, box)
    if a is None or b is None:
        return None
    divisor = int(atom.b.value) if isinstance(atom.b, Const) else 0
    match atom.op:
        case BinaryOp.FLOORDIV if divisor > 0:
            return a[0] // divisor, a[1] // divisor
        case BinaryOp.FLOORMOD if divisor > 0:
            return 0, size_min(size_max(a[1], 0), divisor - 1)
        case BinaryOp.MIN:
            return size_min(a[0], b[0]), size_min(a[1], b[1])
        case BinaryOp.MAX:
            return size_max(a[0], b[0]), size_max(a[1], b[1])
    return None


def end_of(span: Span) -> Extent:
    """The end of a span of known extent; beyond every tensor if its start is unknown."""
    assert isinstance(span.extent, int | Symbolic)
    return INT64_MAX if span.origin is None else span.origin.offset + span.extent


def clipped(extent: Size, end: Size) -> Size:
    """The smaller of both; a box inside a loop has an element, even if an axis may have none."""
    return 1 if isinstance(extent, int) and extent == 1 else size_min(extent, end)


def moved_inside(span: Span, late: bool) -> Span:
    """*span* widened to cover its box both where it is needed and where it is moved to.

    A box that starts before 0 is moved to 0: the span gets longer by that much.  With *late*, the
    box may end beyond its tensor and be moved back: the span is marked as late.
    """
    before = 0 if span.origin is None else max(0, -span.origin.offset)
    return (
        replace(span, extent=span.extent + before, late=late)
        if before or late != span.late
        else span
    )


def hull(spans: Sequence[Span], lags: Sequence[Extent]) -> Span | None:
    """The smallest span that covers *spans*, also where their readers' boxes are moved.

    The reader of a span ends some elements (the entry in *lags*) before the last reader of the
    tensor, so its box may be moved back when the box of this tensor is not moved yet.  The hull is
    longer by as much; it is not clipped.  None if a start is unknown or two starts differ by more
    than a constant.
    """
    origins = [span.origin for span in spans]
    known = [o for o in origins if o is not None]
    if len(known) < len(spans) or len({o.terms for o in known}) != 1:
        return None
    low = min(o.offset for o in known)
    shifts = [o.offset - low + lag for o, lag in zip(known, lags, strict=True)]
    reach: Size = 0
    for span, shift in zip(spans, shifts, strict=True):
        reach = size_max(reach, span.extent + shift)
    late = len(set(shifts)) > 1 or any(span.late for span in spans)
    return Span(Origin(known[0].terms, low), reach, late=late)


def start_of(span: Span, values: Mapping[str, Expr]) -> Expr:
    """The start of *span*, given the *values* of the axes in its origin; not moved."""
    if span.origin is None:
        return as_expr(0)
    start: Expr = as_expr(span.origin.offset)
    for (axis, divisor), coefficient in span.origin.terms:
        start = start + _quotient_of(values[axis], divisor) * coefficient
    return start


def _quotient_of(value: Expr, divisor: int) -> Expr:
    """``value // divisor``; *value* itself for a divisor of 1."""
    return value if divisor == 1 else value // as_expr(divisor)
