"""The numbers of a nest as arrays: a row a candidate, computed once and shared by all models.

Index conventions: a leaf has ``L`` loops, outermost first.  *Depth* ``d`` means "inside the first
``d`` loops", so depth 0 is the whole statement and depth ``L`` one evaluation of its body.  All
arrays are float64 and end in the axis of candidates.  Loops of extent 1 are kept and masked:
``real[l]`` tells where loop ``l`` exists.

Everything is elementwise along candidates and accumulated in a fixed order, so row ``r`` of a
population equals the same computation on row ``r`` alone, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ansorpy.cost.counts import OpCounts, count_ops
from ansorpy.ir.expr import AxisKind
from ansorpy.schedule.nest import Leaf, LeafAccess, Loop, Nest
from ansorpy.schedule.size import Size, as_array

__all__ = ["AccessView", "BufferView", "Floats", "LeafView", "Masks", "Touches", "view_nest"]

Floats = npt.NDArray[np.float64]
Masks = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class AccessView:
    """One access: where it moves along each loop, and the box it touches at each depth."""

    moves: Masks
    """``[L, n]``: the loop is real and some index depends on it."""
    stride: Floats
    """``[L, n]``: elements between two iterations, in the innermost dimension the loop moves."""
    flat: Floats
    """``[L, n]``: elements between two iterations in memory, all dimensions together."""
    box: Floats
    """``[D, L + 1, n]``: extent of the touched box in each dimension."""
    region: Floats
    """``[L + 1, n]``: elements of the touched box."""
    run: Floats
    """``[L + 1, n]``: contiguous elements the box is made of."""
    is_write: bool


@dataclass(frozen=True)
class BufferView:
    """All accesses of one statement to one buffer."""

    name: str
    elem_bytes: int
    is_constant: bool
    is_output: bool
    alloc_depth: int
    shape: Floats
    accesses: tuple[AccessView, ...]
    is_read: bool
    is_written: bool

    @cached_property
    def moves(self) -> Masks:
        """``[L, n]``: some access depends on the loop, and the loop is real."""
        moved: Masks = np.logical_or.reduce([a.moves for a in self.accesses])
        return moved

    @cached_property
    def region(self) -> Floats:
        """Elements touched at each depth: the largest access (accesses of one op overlap)."""
        largest: Floats = np.maximum.reduce([a.region for a in self.accesses])
        return largest

    @cached_property
    def run(self) -> Floats:
        """Contiguous elements touched at each depth."""
        longest: Floats = np.maximum.reduce([a.run for a in self.accesses])
        return longest

    @cached_property
    def elems(self) -> Floats:
        """Elements of the whole buffer."""
        return _product(self.shape)


@dataclass
class Touches:
    """What one loop touches, over the statements seen so far in program order."""

    total_bytes: Floats
    single_bytes: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    smallest: dict[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True)
class LeafView:
    """One statement as arrays."""

    leaf: Leaf
    ops: OpCounts
    body_ops: OpCounts
    extent: Floats
    real: Masks
    reduce: tuple[bool, ...]
    parallel: Masks
    vector: Masks
    unroll: Masks
    max_unroll: Floats
    asks: Masks
    """``[L, n]``: the loop is real and moves the condition without which the sum gets nothing."""
    inner_prod: Floats
    """``[L + 1, n]``: evaluations inside depth ``d``; depth 0 is the whole statement."""
    outer_prod: Floats
    """``[L + 1, n]``: times the body at depth ``d`` is entered."""
    buffers: tuple[BufferView, ...]
    touches: tuple[Touches, ...]

    @property
    def rows(self) -> int:
        """Candidates."""
        return int(self.max_unroll.shape[0])

    @property
    def evaluations(self) -> Floats:
        """How often the body is evaluated in all."""
        every: Floats = self.inner_prod[0]
        return every

    @property
    def depth(self) -> int:
        """Loops around the statement."""
        return len(self.leaf.loops)

    @property
    def written(self) -> BufferView:
        """The buffer the statement writes."""
        return next(b for b in self.buffers if b.is_written)


def view_nest(nest: Nest, rows: int) -> list[LeafView]:
    """The statements of *nest*, in program order, as arrays of *rows* candidates."""
    loops: dict[tuple[str, str], Touches] = {}
    return [_view_leaf(leaf, rows, loops) for leaf in nest.leaves]


def _view_leaf(leaf: Leaf, rows: int, seen: dict[tuple[str, str], Touches]) -> LeafView:
    extent = _stack([loop.extent for loop in leaf.loops], rows)
    real = extent > 1
    buffers = _buffers(leaf, extent, real, rows)
    touches = tuple(_touch(seen, loop, d, leaf, buffers, rows) for d, loop in enumerate(leaf.loops))
    ones = np.ones((1, rows))
    return LeafView(
        leaf=leaf,
        ops=count_ops(leaf.body),
        body_ops=count_ops(leaf.body, indices=False),
        extent=extent,
        real=real,
        reduce=tuple(loop.kind is AxisKind.REDUCE for loop in leaf.loops),
        parallel=_flags([loop.parallel for loop in leaf.loops], rows) & real,
        vector=_flags([loop.vector for loop in leaf.loops], rows) & real,
        unroll=_flags([loop.unroll for loop in leaf.loops], rows) & real,
        max_unroll=as_array(leaf.max_unroll, rows).astype(np.float64),
        asks=_flags(leaf.asks or (0,) * len(leaf.loops), rows) & real,
        inner_prod=np.concatenate([np.cumprod(extent[::-1], axis=0)[::-1], ones]),
        outer_prod=np.concatenate([ones, np.cumprod(extent, axis=0)]),
        buffers=buffers,
        touches=touches,
    )


def _stack(sizes: Sequence[Size], rows: int) -> Floats:
    if not sizes:
        return np.ones((0, rows))
    return np.stack([as_array(size, rows) for size in sizes]).astype(np.float64)


def _flags(sizes: Sequence[Size], rows: int) -> Masks:
    marked: Masks = _stack(sizes, rows) != 0
    return marked


def _product(factors: Floats) -> Floats:
    """Product over the first axis in index order (``np.prod`` may reorder it)."""
    total = np.ones(factors.shape[1:])
    for factor in factors:
        total = total * factor
    return total


def _buffers(leaf: Leaf, extent: Floats, real: Masks, rows: int) -> tuple[BufferView, ...]:
    """One entry a buffer, reads in order of appearance; a reduction also reads what it writes."""
    grouped: dict[str, list[tuple[LeafAccess, bool]]] = {}
    for access in leaf.accesses:
        grouped.setdefault(access.buffer, []).append((access, False))
    grouped.setdefault(leaf.write.buffer, []).append((leaf.write, True))
    is_reduction = bool(leaf.op.reduce_axes)
    views = []
    for name, accesses in grouped.items():
        first = accesses[0][0]
        written = any(is_write for _, is_write in accesses)
        views.append(
            BufferView(
                name=name,
                elem_bytes=first.elem_bytes,
                is_constant=first.is_constant,
                is_output=first.is_output,
                alloc_depth=first.alloc_depth,
                shape=_stack(first.shape, rows),
                accesses=tuple(_view_access(a, w, extent, real, rows) for a, w in accesses),
                is_read=is_reduction or not all(is_write for _, is_write in accesses),
                is_written=written,
            )
        )
    return tuple(views)


def _view_access(
    access: LeafAccess, is_write: bool, extent: Floats, real: Masks, rows: int
) -> AccessView:
    shape = _stack(access.shape, rows)
    dims, depth = shape.shape[0], extent.shape[0]
    coef = _coefficients(access, depth, rows)
    trailing = np.ones((dims + 1, rows))
    for d in reversed(range(dims)):
        trailing[d] = trailing[d + 1] * shape[d]
    stride = np.zeros((depth, rows))
    flat = np.zeros((depth, rows))
    for d in range(dims):  # the innermost dimension that moves wins
        stride = np.where(coef[d] > 0, coef[d] * trailing[d + 1], stride)
        jump = coef[d] * trailing[d + 1]
        flat = flat + (jump if access.exact[d] else np.inf)
    box = _box(coef, extent, shape)
    return AccessView(
        moves=(stride > 0) & real,
        stride=np.where(real, stride, 0.0),
        flat=np.where(real, flat, 0.0),
        box=box,
        region=_product(box) if dims else np.ones((depth + 1, rows)),
        run=_run(box, shape),
        is_write=is_write,
    )


def _coefficients(access: LeafAccess, depth: int, rows: int) -> Floats:
    """``[D, L, n]``: absolute coefficients; an index that is not affine moves with every loop."""
    dims = [
        _stack(row, rows) if exact else np.ones((depth, rows))
        for row, exact in zip(access.coefs, access.exact, strict=True)
    ]
    return np.abs(np.stack(dims)) if dims else np.zeros((0, depth, rows))


def _box(coef: Floats, extent: Floats, shape: Floats) -> Floats:
    """Extent touched at each depth: ``min(shape, 1 + sum |coef| * (extent - 1))``."""
    span = coef * (extent - 1)
    reach = np.cumsum(span[:, ::-1], axis=1)[:, ::-1]
    inside = np.concatenate([reach, np.zeros_like(shape)[:, None]], axis=1)
    box: Floats = np.minimum(shape[:, None], 1 + inside)
    return box


def _run(box: Floats, shape: Floats) -> Floats:
    """Contiguous elements in a box: trailing dimensions up to the first that is cut."""
    run = np.ones(box.shape[1:])
    whole = np.ones(box.shape[1:], dtype=bool)
    for d in reversed(range(box.shape[0])):
        run = np.where(whole, run * box[d], run)
        whole = whole & (box[d] >= shape[d])
    return run


def _touch(
    seen: dict[tuple[str, str], Touches],
    loop: Loop,
    depth: int,
    leaf: Leaf,
    buffers: Sequence[BufferView],
    rows: int,
) -> Touches:
    """Add this statement's accesses to what *loop* touches; return the sums as they are now."""
    key = (loop.stage, loop.name)
    before = seen.get(key, Touches(np.zeros(rows)))
    total, single = before.total_bytes, before.single_bytes
    counts, smallest = dict(before.counts), dict(before.smallest)
    for buffer in buffers:
        size = buffer.region[depth]
        times = 2 if buffer.is_written and _holds_init(leaf, depth) else 1
        total = total + times * size * buffer.elem_bytes
        single = single + times * buffer.elem_bytes
        counts[buffer.name] = counts.get(buffer.name, 0) + times
        smallest[buffer.name] = np.minimum(smallest.get(buffer.name, size), size)
    seen[key] = Touches(total, single, counts, smallest)
    return seen[key]


def _holds_init(leaf: Leaf, depth: int) -> bool:
    """True when the accumulator's initialisation, a statement of its own, is inside this loop."""
    kinds = [loop.kind for loop in leaf.loops]
    return AxisKind.REDUCE in kinds and depth < kinds.index(AxisKind.REDUCE)
