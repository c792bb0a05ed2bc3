"""Prove that accesses stay inside their buffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ansorpy.ir.analysis.interval import Bounder
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Call, Compare, CompareOp, Expr, Function, Var, as_expr
from ansorpy.ir.extents import Extent, least, most
from ansorpy.ir.prove.findings import Claim, Finding
from ansorpy.ir.prove.relations import Points, example
from ansorpy.ir.prove.sites import Access, Site

if TYPE_CHECKING:
    import islpy as isl

__all__ = ["Bounds"]


class Bounds:
    """Decides for each access whether its indices are inside the buffer's shape."""

    def __init__(self) -> None:
        self._bounders: dict[Site, Bounder] = {}
        self._points: dict[Site, Points] = {}

    def check(self, site: Site, access: Access) -> Finding:
        """Try intervals and single conditions first; isl decides the other cases."""
        bounder = self._bounder(site, access)
        for d, extent in enumerate(access.buffer.shape):
            index = access.indices[d]
            low, high = bounder.extents(index)
            is_low = least(low) < 0 and not _implied(index, site, access, bounder)
            room = as_expr(extent - 1) - index
            if is_low or (most(high - extent) >= 0 and not _implied(room, site, access, bounder)):
                problem = _dimension(self._at(site, access), site, access, d)
                if problem is not None:
                    return problem
        return Finding.proved(Claim.BOUNDS)

    def _bounder(self, site: Site, access: Access) -> Bounder:
        if access.extents:
            return _bounder(site, {**site.extents, **access.extents})
        if site not in self._bounders:
            self._bounders[site] = _bounder(site, site.extents)
        return self._bounders[site]

    def _at(self, site: Site, access: Access) -> Points:
        """The executions of *access*; shared by all accesses of a site without own loops."""
        if access.extents:
            return Points(site, access, (*access.indices, *site.conditions, *access.conditions))
        if site not in self._points:
            plain = [a for a in site.accesses if not a.extents]
            roots = [e for a in plain for e in (*a.indices, *a.conditions)]
            self._points[site] = Points(site, None, (*roots, *site.conditions))
        return self._points[site]


def _bounder(site: Site, extents: Mapping[Var, Extent]) -> Bounder:
    ranges: dict[Var, tuple[Extent, Extent]] = {v: (0, n - 1) for v, n in extents.items()}
    for var, value in site.values.items():
        if value.dtype is DType.INT64:
            ranges[var] = Bounder(ranges).extents(value)
    return Bounder(ranges)


def _implied(e: Expr, site: Site, access: Access, bounder: Bounder) -> bool:
    """True if a single condition implies that *e* is not negative."""
    for condition in (*site.conditions, *access.conditions):
        known = _not_negative(condition)
        if known is not None and least(bounder.extents(e - known)[0]) >= 0:
            return True
    return False


def _not_negative(condition: Expr) -> Expr | None:
    """An index expression that is at least 0 if *condition* holds; None if there is none."""
    match condition:
        case Compare(op, a, b) if a.dtype is DType.INT64 and op in _DIFFERENCES:
            sign, offset = _DIFFERENCES[op]
            return (a - b if sign > 0 else b - a) - offset
        case Call(Function.NOT, (Compare(op, a, b),)):
            return _not_negative(Compare(op.negation, a, b))
    return None


_DIFFERENCES = {
    CompareOp.GE: (1, 0), CompareOp.GT: (1, 1), CompareOp.LE: (-1, 0), CompareOp.LT: (-1, 1),
}  # fmt: skip


def _dimension(points: Points, site: Site, access: Access, d: int) -> Finding | None:
    """The problem with the index in dimension *d*; None if isl proves that it is in bounds.

    The proof is tried first with the conditions that may matter, then with all conditions.
    """
    index, conditions = access.indices[d], (*site.conditions, *access.conditions)
    for given in (_connected(site, index, conditions), conditions):
        held, outside = points.where(given), _outside(points, index, access.buffer.shape[d])
        if outside is None:
            return Finding.by_data(
                Claim.BOUNDS, f'an index of {access.buffer.name} depends on data, in "{site.line}"'
            )
        wrong = held.may & outside
        if wrong.is_empty():
            return None
    message = _message(site, access, d, points, wrong)
    return Finding.fails(Claim.BOUNDS, message, certain=held.exact)


def _outside(points: Points, index: Expr, extent: Extent) -> isl.Set | None:
    """The points where *index* is not in ``[0, extent)``; None if it depends on data."""
    if not points.is_affine(index):
        return None
    return points.where((index < 0,)).may | points.where((index >= as_expr(extent),)).may


def _connected(site: Site, index: Expr, conditions: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The *conditions* on variables of *index*, or on variables connected to them."""
    used = set(site.free(index))
    left, near = list(conditions), list[Expr]()
    while found := [c for c in left if not used.isdisjoint(site.free(c))]:
        near += found
        used.update(*(site.free(c) for c in found))
        left = [c for c in left if c not in found]
    return tuple(c for c in conditions if c in near)


def _message(site: Site, access: Access, d: int, points: Points, wrong: isl.Set) -> str:
    """A message that names the access and a point at which it is out of bounds."""
    at = example(wrong)
    index, verb = points.value(access.indices[d], at), "written" if access.is_write else "read"
    return (
        f"{access.buffer.name} is {verb} out of bounds: at index {index} of dimension {d}, which "
        f'has {access.buffer.shape[d]} elements, in "{site.line}"{points.text(at)}'
    )
