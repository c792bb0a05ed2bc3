"""Loop nests as arrays with one row per candidate, computed once for all cost models.

Index conventions: a leaf has ``L`` loops, outermost first.  *Depth* ``d`` means "inside the first
``d`` loops", so depth 0 is the whole statement and depth ``L`` one evaluation of its body.  Arrays
are float64 with one number per setting of the leaf
(:class:`~ansorpy.schedule.tables.nest.Settings`); :meth:`LeafView.spread` expands that to one per
candidate.

Nothing is computed that follows from the structure: ``LeafView.real`` omits loops that never have a
second iteration, an access lists only loops that may move it, and depths between which nothing
changes share one array.  There is no array over all loops: computing with single columns, which
stay in the cache, takes a fifth of the time.

Everything is elementwise over candidates and accumulated in a fixed order, so row ``r`` of a
population is bit-identical to the same computation on row ``r`` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from math import prod
from typing import TypeAlias

import numpy as np

from ansorpy.arrays import Floats, Masks
from ansorpy.cost.access import AccessView, Number, Walk, is_number, number_of
from ansorpy.cost.counts import OpCounts, count_choices, count_ops
from ansorpy.ir.expr import AxisKind
from ansorpy.schedule.tables.nest import Leaf, LeafAccess, Nest, Settings
from ansorpy.schedule.tables.size import Size, as_array

__all__ = [
    "AccessView", "BufferView", "LeafView", "Number", "Touches", "view_nest",
]  # fmt: skip


@dataclass(frozen=True)
class BufferView:
    """All accesses of one statement to one buffer."""

    name: str
    elem_bytes: int
    is_constant: bool
    is_output: bool
    alloc_depth: int
    elems: Number
    """Elements of the whole buffer."""
    accesses: tuple[AccessView, ...]
    is_read: bool
    is_written: bool
    team: int = 0
    """Number of lanes that hold the buffer together in registers; 0 if it is in memory."""

    @cached_property
    def moves(self) -> Mapping[int, Masks]:
        """For each loop, by number: where the loop is real and some access depends on it."""
        moved: dict[int, Masks] = {}
        for access in self.accesses:
            for loop, mask in access.moves.items():
                known = moved.get(loop, mask)
                moved[loop] = known if known is mask else known | mask
        return moved

    @cached_property
    def region(self) -> Sequence[Floats]:
        """Elements touched at each depth: those of all accesses, in a box without their offsets."""
        return _together(self.accesses)

    @cached_property
    def run(self) -> Sequence[Floats]:
        """Longest contiguous run of elements touched at each depth."""
        return _largest([a.run for a in self.accesses])

    @cached_property
    def touched(self) -> Sequence[Floats]:
        """Bytes touched at each depth; depths that share a region share an array."""
        known: dict[int, Floats] = {}
        for region in self.region:
            if id(region) not in known:
                known[id(region)] = region * float(self.elem_bytes)
        return [known[id(region)] for region in self.region]


@dataclass
class Touches:
    """Data that one loop touches, accumulated over the statements so far in program order."""

    total_bytes: Floats
    single_bytes: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    smallest: dict[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True)
class LeafView:
    """One statement as arrays."""

    leaf: Leaf
    rows: int
    """Number of settings: the length of the arrays."""
    ops: OpCounts
    body_ops: OpCounts
    choice_ops: OpCounts
    """Those of ``body_ops`` that are of conditions which load nothing."""
    extent: Sequence[Floats]
    real: dict[int, Masks]
    """By loop number, outermost first, for loops that may have several iterations: where they do.
    """
    parallel: Mapping[int, Masks]
    """By loop number, outermost first, for loops that may be parallel: where they are, and real."""
    vector: Mapping[int, Masks]
    unroll: Mapping[int, Masks]
    max_unroll: Floats
    changes_guard: Mapping[int, Masks]
    """Where a real loop affects the condition that guards the sum."""
    changes_choice: Mapping[int, Masks]
    """Where a real loop affects a condition of ``choice_ops``."""
    inner_prod: Sequence[Floats]
    """Evaluations inside each depth; depth 0 is the whole statement."""
    outer_prod: Sequence[Floats]
    """How often each depth is entered."""
    buffers: tuple[BufferView, ...]
    touched: Mapping[int, Floats]
    """Bytes of all buffers' boxes at the depth of each loop in ``real`` and at the innermost depth.
    """
    touches: Mapping[int, Touches]
    """Data touched by each loop in ``real``."""

    def is_reduce(self, loop: int) -> bool:
        """True for a reduction loop."""
        return self.leaf.loops[loop].kind is AxisKind.REDUCE

    @property
    def evaluations(self) -> Floats:
        """Total evaluations of the body."""
        return self.inner_prod[0]

    @property
    def depth(self) -> int:
        """Number of loops around the statement."""
        return len(self.leaf.loops)

    @property
    def written(self) -> BufferView:
        """The buffer the statement writes."""
        return next(b for b in self.buffers if b.is_written)

    def spread(self, values: Floats) -> Floats:
        """Expand values per setting to values per candidate."""
        return values if self.leaf.settings is None else values[self.leaf.settings.of]


Seen: TypeAlias = dict[tuple[str, str], tuple[Touches, Settings | None]]


def view_nest(nest: Nest, rows: int) -> list[LeafView]:
    """The statements of *nest*, in program order, as arrays; *rows* is the number of candidates."""
    seen: Seen = {}
    return [_view_leaf(leaf, rows, seen) for leaf in nest.leaves]


def _view_leaf(leaf: Leaf, candidates: int, seen: Seen) -> LeafView:
    rows = candidates if leaf.settings is None else len(leaf.settings.first)
    ones = np.ones(rows)
    extent = [
        ones if is_number(loop.extent, 1) else _column(loop.extent, rows) for loop in leaf.loops
    ]
    real = {n: extent[n] > 1 for n, loop in enumerate(leaf.loops) if not is_number(loop.extent, 1)}
    buffers = _buffers(leaf, {n: extent[n] - 1 for n in real}, real, rows)
    factors = [extent[n] if n in real else None for n in range(len(extent))]
    touched = {n: _total([b.touched[n] for b in buffers]) for n in {*real, len(extent) - 1}}
    outside = _loops_outside_sum(leaf)
    touches = {n: _touch(seen, n, leaf, buffers, touched[n], outside) for n in real}
    return LeafView(
        leaf=leaf,
        rows=rows,
        ops=count_ops(leaf.body),
        body_ops=count_ops(leaf.body, indices=False),
        choice_ops=count_choices(leaf.body),
        extent=extent,
        real=real,
        parallel=_flags([loop.parallel for loop in leaf.loops], real),
        vector=_flags([loop.vector for loop in leaf.loops], real),
        unroll=_flags([loop.unroll for loop in leaf.loops], real),
        max_unroll=_column(leaf.max_unroll, rows),
        changes_guard=_flags(leaf.changes_guard, real),
        changes_choice=_flags(leaf.changes_choice, real),
        inner_prod=_products(factors[::-1], rows)[::-1],
        outer_prod=_products(factors, rows),
        buffers=buffers,
        touched=touched,
        touches=touches,
    )


def _column(size: Size, rows: int) -> Floats:
    number = number_of(size)
    return np.full(rows, number) if isinstance(number, float) else number


def _flags(sizes: Sequence[Size], real: Mapping[int, Masks]) -> dict[int, Masks]:
    """Where loops are both marked and real; a constant mark applies wherever the loop is real."""
    marked: dict[int, Masks] = {}
    for n, size in enumerate(sizes):
        if n in real and not is_number(size, 0):
            everywhere = isinstance(size, int)
            marked[n] = real[n] if everywhere else real[n] & (as_array(size, 0) != 0)
    return marked


def _products(factors: Sequence[Floats | None], rows: int) -> list[Floats]:
    """Products of the first 0, 1, 2, ... *factors*; None stands for 1."""
    found = [np.ones(rows)]
    for factor in factors:
        found.append(found[-1] if factor is None else found[-1] * factor)
    return found


def _largest(parts: Sequence[Sequence[Floats]]) -> Sequence[Floats]:
    """The maximum of *parts* at each depth; depths that share their arrays share the result."""
    if len(parts) == 1:
        return parts[0]
    known: dict[tuple[int, ...], Floats] = {}
    found: list[Floats] = []
    for at in zip(*parts, strict=True):
        key = tuple(map(id, at))
        if key not in known:
            known[key] = np.maximum.reduce(at)
        found.append(known[key])
    return found


def _together(accesses: Sequence[AccessView]) -> Sequence[Floats]:
    """Elements that *accesses* touch at each depth; shared as by :func:`_largest`."""
    if len(accesses) == accesses[0].times == 1:
        return accesses[0].region
    known: dict[tuple[int, ...], Floats] = {}
    found: list[Floats] = []
    for depth, regions in enumerate(zip(*(a.region for a in accesses), strict=True)):
        key = tuple(map(id, regions))
        if key not in known:
            extents = zip(*(a.boxes[depth] for a in accesses), strict=True)
            box = prod(reduce(np.maximum, sizes) for sizes in extents)
            each = (a.times * region for a, region in zip(accesses, regions, strict=True))
            known[key] = np.minimum(sum(each), box)
        found.append(known[key])
    return found


def _buffers(
    leaf: Leaf, steps: Mapping[int, Floats], real: Mapping[int, Masks], rows: int
) -> tuple[BufferView, ...]:
    """One entry per buffer, reads in order of appearance; a reduction also reads its output."""
    grouped: dict[str, dict[tuple[int, bool], list[LeafAccess]]] = {}
    for access, is_write in (*((a, False) for a in leaf.accesses), (leaf.write, True)):
        alike = grouped.setdefault(access.buffer, {})
        alike.setdefault((id(access), is_write), []).append(access)
    is_reduction = bool(leaf.op.reduce_axes)
    views = []
    for name, alike in grouped.items():
        first = next(iter(alike.values()))[0]
        elems: Number = 1.0
        for size in first.shape:
            elems = elems * number_of(size)
        views.append(
            BufferView(
                name=name,
                elem_bytes=first.elem_bytes,
                is_constant=first.is_constant,
                is_output=first.is_output,
                alloc_depth=first.alloc_depth,
                elems=elems,
                accesses=tuple(
                    Walk(same[0], steps, real, rows).view(len(leaf.loops), len(same), is_write)
                    for (_, is_write), same in alike.items()
                ),
                is_read=is_reduction or any(not is_write for _, is_write in alike),
                is_written=any(is_write for _, is_write in alike),
                team=first.team,
            )
        )
    return tuple(views)


def _total(columns: Sequence[Floats]) -> Floats:
    """The sum of *columns*, which hold integers, so the order does not matter."""
    total = columns[0]
    for column in columns[1:]:
        total = total + column
    return total


def _touch(
    seen: Seen, depth: int, leaf: Leaf, buffers: Sequence[BufferView], touched: Floats, outside: int
) -> Touches:
    """Add this statement's accesses to the data touched by its loop *depth*; return the sums.

    The first *outside* loops hold the accumulator's initialisation, a separate statement, too.
    """
    loop = leaf.loops[depth]
    key = (loop.stage, loop.name)
    before = _settled(*seen[key], leaf.settings) if key in seen else None
    total = touched if before is None else before.total_bytes + touched
    single = 0.0 if before is None else before.single_bytes
    counts = {} if before is None else dict(before.counts)
    smallest = {} if before is None else dict(before.smallest)
    for buffer in buffers:
        times = 1
        if buffer.is_written and depth < outside:
            times, total = 2, total + buffer.touched[depth]
        single += times * buffer.elem_bytes
        counts[buffer.name] = counts.get(buffer.name, 0) + times
        known, size = smallest.get(buffer.name), buffer.region[depth]
        smallest[buffer.name] = size if known is None else np.minimum(known, size)
    touches = Touches(total, single, counts, smallest)
    seen[key] = touches, leaf.settings
    return touches


def _settled(touches: Touches, of: Settings | None, wanted: Settings | None) -> Touches:
    """Expand *touches* from the settings *of* to the finer settings *wanted*."""
    if of is wanted:
        return touches
    candidates = slice(None) if wanted is None else wanted.first
    rows = candidates if of is None else of.of[candidates]
    smallest = {name: least[rows] for name, least in touches.smallest.items()}
    return Touches(touches.total_bytes[rows], touches.single_bytes, touches.counts, smallest)


def _loops_outside_sum(leaf: Leaf) -> int:
    """Number of loops outside the first one over a reduce axis; 0 if there is none."""
    kinds = [loop.kind for loop in leaf.loops]
    return kinds.index(AxisKind.REDUCE) if AxisKind.REDUCE in kinds else 0
