"""Ranges of integer inputs: indices stay in bounds, and narrow types reach their extreme values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansorpy.errors import UsageError
from ansorpy.ir.analysis.interval import Bounder, Interval
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Binary, BinaryOp, Call, Expr, Load, Select, children, walk
from ansorpy.ir.functions import Function
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor

__all__ = ["input_ranges"]

_SMALL = {True: (-8, 7), False: (0, 15)}
_STEPS = 5
"""Ranges tried for 8-bit types: all values, then halves of them down to the small ones."""
_GROWING = (Function.EXP,)


def input_ranges(dag: ComputeDAG) -> dict[str, tuple[int, int]]:
    """``low <= value < high`` of each integer placeholder, by name.

    A placeholder from which indices into other tensors are computed gets values for which all these
    indices are in bounds.  Other 8-bit placeholders get every value of their type if none of their
    sums can overflow, and otherwise fewer; the rest get small numbers, so that sums of products
    stay exact.

    Raises:
        UsageError: No such values are found for an index.
    """
    small = {
        op: (0, 1) if op.dtype is DType.BOOL else _SMALL[op.dtype.is_signed]
        for op in dag.args
        if not op.dtype.is_float
    }
    found = _index_ranges(dag, small)
    found = _widest(dag, small | found, set(small) - set(found))
    return {op.name: (low, high + 1) for op, (low, high) in found.items()}


def _bounder(drawn: Mapping[PlaceholderOp, Interval]) -> Bounder:
    """Bounder of integer expressions that read tensors, given the ranges of the placeholders."""

    def loaded(load: Load) -> Interval:
        if isinstance(load.source, PlaceholderOp):
            return drawn[load.source]
        assert isinstance(load.source, ComputeOp)
        return values.bounds(load.source.body)

    values = Bounder({}, loaded)
    return values


def _within(inner: Interval, outer: Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


# Indices


@dataclass(frozen=True)
class _Index:
    """A data-dependent index into ``tensor``, which must lie in ``0 .. extent - 1``."""

    tensor: str
    expr: Expr
    extent: int
    guarded: bool
    data: tuple[PlaceholderOp, ...]

    def holds(self, drawn: Mapping[PlaceholderOp, Interval]) -> bool:
        """Whether the index is in bounds for all values in the ranges *drawn*."""
        values = _bounder(drawn)
        return _within(values.bounds(self.expr), (0, self.extent - 1)) and not values.overflows


def _index_ranges(
    dag: ComputeDAG, small: Mapping[PlaceholderOp, Interval]
) -> dict[PlaceholderOp, Interval]:
    """The ranges of the placeholders from which indices are computed."""
    indices = [index for op in dag.computes for index in _indices(op.body, guarded=False)]
    must = [index for index in indices if not index.guarded]
    found = _solved(indices, small)
    if found is None:  # A guard may keep an index in bounds.
        found = _solved(must, small)
    if found is None:
        names = sorted({op.name for index in must for op in index.data})
        tensors = sorted({index.tensor for index in must})
        raise UsageError(
            f"no values of {', '.join(names)} are known to keep every index into "
            f"{', '.join(tensors)} in bounds, so there are no inputs to measure with",
            hint="clip the index: min(max(index, 0), extent - 1)",
        )
    for index in indices:
        for op in index.data:
            found.setdefault(op, (0, min(index.extent - 1, op.dtype.limits[1])))
    return found


def _indices(e: Expr, *, guarded: bool) -> Iterator[_Index]:
    """The indices in *e* that depend on integer inputs."""
    seen: set[tuple[Expr, bool]] = set()
    stack = [(e, guarded)]
    while stack:
        at, inside = stack.pop()
        if (at, inside) in seen:
            continue
        seen.add((at, inside))
        if isinstance(at, Load):
            for extent, index in zip(at.source.shape, at.indices, strict=True):
                if data := _data(index):
                    yield _Index(at.source.name, index, extent, inside, data)
        if isinstance(at, Select):
            stack += [(at.cond, inside), (at.then, True), (at.other, True)]
        else:
            stack += [(child, inside) for child in children(at)]


def _data(e: Expr) -> tuple[PlaceholderOp, ...]:
    """The integer placeholders whose values reach *e*, through integer computations."""
    found: dict[PlaceholderOp, None] = {}
    todo, seen = [e], set[Tensor]()
    while todo:
        for at in walk(todo.pop()):
            if not isinstance(at, Load) or at.dtype.is_float:
                continue
            source = at.source
            if isinstance(source, PlaceholderOp):
                found[source] = None
            elif isinstance(source, ComputeOp) and source not in seen:
                seen.add(source)
                todo.append(source.body)
    return tuple(found)


def _solved(
    indices: list[_Index], small: Mapping[PlaceholderOp, Interval]
) -> dict[PlaceholderOp, Interval] | None:
    """The widest ranges for which all *indices* are in bounds; None if no value satisfies them."""
    data = list(dict.fromkeys(op for index in indices for op in index.data))
    drawn = dict(small) | {op: (0, 0) for op in data}
    for _ in range(len(data) + 1):
        for index in indices:
            for op in index.data:
                _repair(index, op, drawn)
    if not all(index.holds(drawn) for index in indices):
        return None
    for group in (data, *([op] for op in data)):  # First together, so that all are widened.
        for side in (1, 0):
            _spread(indices, group, side, drawn)
    return {op: drawn[op] for op in data}


def _repair(index: _Index, op: PlaceholderOp, drawn: dict[PlaceholderOp, Interval]) -> None:
    """Move the single value of *op* so that *index* holds, as if the index were linear in it."""
    low, high = _bounder(drawn).bounds(index.expr)
    here = drawn[op][0]
    slope = _bounder(drawn | {op: (here + 1, here + 1)}).bounds(index.expr)[0] - low
    excess = min(low, 0) + max(high - index.extent + 1, 0)
    if slope and excess:
        sign = 1 if -excess * slope > 0 else -1
        value = here + sign * -(-abs(excess) // abs(slope))
        if _within((value, value), op.dtype.limits):
            drawn[op] = (value, value)


def _spread(
    indices: list[_Index],
    group: list[PlaceholderOp],
    side: int,
    drawn: dict[PlaceholderOp, Interval],
) -> None:
    """Move one end of the ranges of *group* outward while all indices hold."""

    def moved(by: int) -> dict[PlaceholderOp, Interval]:
        ends = {op: (drawn[op][0], drawn[op][1] + by) for op in group}
        return ends if side else {op: (drawn[op][0] - by, drawn[op][1]) for op in group}

    def holds(by: int) -> bool:
        ends = moved(by)
        return all(_within(ends[op], op.dtype.limits) for op in group) and all(
            index.holds(drawn | ends) for index in indices
        )

    good, bad = 0, (1 << 31) + 1
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    drawn |= moved(good)


# Sums


def _widest(
    dag: ComputeDAG, drawn: dict[PlaceholderOp, Interval], free: set[PlaceholderOp]
) -> dict[PlaceholderOp, Interval]:
    """Widen the ranges of 8-bit placeholders in *free* while every integer result stays exact."""
    narrow = [op for op in free if op.dtype.bits == 8 and op.dtype is not DType.BOOL]
    if not narrow or _may_leave_floats(dag):
        return drawn
    for step in range(_STEPS):
        wide = {op: _scaled(op.dtype, step) for op in narrow}
        values = _bounder(drawn | wide)
        for op in dag.computes:
            if not op.dtype.is_float:
                values.bounds(op.body)
        if not values.overflows:
            return drawn | wide
    return drawn


def _scaled(dtype: DType, step: int) -> Interval:
    low, high = dtype.limits
    return -(-low >> step), (high + 1 >> step) - 1


def _may_leave_floats(dag: ComputeDAG) -> bool:
    """Whether large values may become infinite: in float16, exponentials and powers."""
    parts = [e for op in dag.computes for e in walk(op.body)]
    return any(op.dtype is DType.FLOAT16 for op in dag.computes) or any(
        (isinstance(e, Call) and e.fn in _GROWING)
        or (isinstance(e, Binary) and e.op is BinaryOp.POW)
        for e in parts
    )
