"""The box that one access of a statement touches at each loop depth, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from operator import is_not
from typing import TypeAlias

import numpy as np

from ansorpy.arrays import Floats, Masks
from ansorpy.schedule.tables.nest import LeafAccess
from ansorpy.schedule.tables.size import Column, Size, as_array

__all__ = ["AccessView", "Number", "Walk", "is_number", "number_of"]

Number: TypeAlias = Floats | float
"""A column, or a single number if all its rows are equal."""


@dataclass(frozen=True)
class AccessView:
    """Accesses with the same index pattern: how loops move them, and the box at each depth.

    The keys of the mappings are the numbers of the loops that may move the access.
    """

    times: int
    """Number of these accesses."""
    moves: Mapping[int, Masks]
    """True where the loop is real and some index depends on it; this is the loop's own mask object
    if every iteration moves the access."""
    stride: Mapping[int, Floats]
    """Elements between two iterations, counted in the innermost dimension the loop moves."""
    flat: Mapping[int, Floats]
    """Elements between two iterations in memory, over all dimensions."""
    region: Sequence[Floats]
    """Elements of the touched box at each depth, at most; rows that a stride steps over are not
    touched."""
    run: Sequence[Floats]
    """Length of the contiguous runs of the box at each depth, in elements."""
    boxes: Sequence[tuple[Number, ...]]
    """Extent of the box in each dimension, at each depth."""
    touched: Sequence[tuple[Number, ...]]
    """Indices in each dimension of the box that are touched, at most; the extent itself, as the
    same object, where the stride steps over none."""
    pitches: tuple[Number, ...]
    """Elements between neighbours in each dimension."""
    is_write: bool


class Walk:
    """Computes the box of one access from the innermost loop outwards; *steps* are extents - 1."""

    def __init__(
        self,
        access: LeafAccess,
        steps: Mapping[int, Floats],
        real: Mapping[int, Masks],
        rows: int,
    ):
        self.access, self.steps, self.real, self.rows = access, steps, real, rows
        self.is_exact = all(access.exact)
        self.shape = [number_of(size) for size in access.shape]
        self.dense: list[Number] = [1.0]
        for size in reversed(self.shape[1:]):
            self.dense.insert(0, self.dense[0] * size)
        apart = access.strides
        self.stride: list[Number] = self.dense if apart is None else list(map(float, apart))
        if len(self.shape) > 1 and not is_number(access.pad, 0):
            self.stride = self._padded(number_of(access.pad))
        self.reach: list[Number] = [1.0] * len(self.shape)
        # The indices that loops reach in each dimension, at most, since several may reach the same:
        # the object of *reach* where no stride steps over any.
        self.most: list[Number] = list(self.reach)
        self.box: list[Number] = [
            min(size, 1.0) if isinstance(size, float) else np.minimum(size, 1.0)
            for size in self.shape
        ]
        self.touched = list(self.box)
        # For each number of trailing dimensions: the run of their box, and where it covers them.
        self.runs: list[tuple[Number, Masks | bool]] = [(1.0, True)]

    def view(self, depth: int, times: int, is_write: bool) -> AccessView:
        """The view of *times* equal accesses inside *depth* loops."""
        moves: dict[int, Masks] = {}
        stride: dict[int, Floats] = {}
        flat: dict[int, Floats] = {}
        region = [self._region()] * (depth + 1)
        run = [self._run(len(self.box) - 1)] * (depth + 1)
        boxes = [tuple(self.box)] * (depth + 1)
        touched = [tuple(self.touched)] * (depth + 1)
        for loop in reversed(range(depth)):
            region[loop], run[loop] = region[loop + 1], run[loop + 1]
            boxes[loop], touched[loop] = boxes[loop + 1], touched[loop + 1]
            if loop not in self.real or not self.access.moving[loop]:
                continue
            coefs = self._coefficients(loop)
            stride[loop], flat[loop] = self._strides(loop, coefs)
            always = any(_is_positive(coef) for coef in coefs.values())
            moves[loop] = self.real[loop] if always else stride[loop] > 0
            for d, coef in coefs.items():
                self._widen(d, loop, coef)
            region[loop], run[loop] = self._region(), self._run(max(coefs))
            boxes[loop], touched[loop] = tuple(self.box), tuple(self.touched)
            if any(map(is_not, boxes[loop], touched[loop])):  # the box's runs may be shorter
                run[loop] = np.maximum(run[loop], run[loop + 1])
        pitches = tuple(self.stride[: len(self.shape)])
        return AccessView(
            times, moves, stride, flat, region, run, boxes, touched, pitches, is_write
        )

    def _widen(self, d: int, loop: int, coef: Number) -> None:
        """Add the steps of *loop*, *coef* indices each, to what is reached in dimension *d*."""
        steps, reach = self.steps[loop], self.reach[d]
        self.reach[d] = wider = reach + _times(steps, coef)
        self.box[d] = self.touched[d] = box = np.minimum(self.shape[d], wider)
        if d == len(self.box) - 1:
            return  # within a row, the lines that a stride steps over are touched anyway
        if self.most[d] is reach and _always(coef <= reach):
            self.most[d] = wider
            return
        moved = steps if _is_positive(coef) else steps * (coef > 0)
        self.most[d] = most = np.minimum(wider, self.most[d] * (moved + 1))
        if not _always(most >= box):
            self.touched[d] = np.minimum(box, most)

    def _padded(self, pad: Number) -> list[Number]:
        """Strides with *pad* elements after each row."""
        found: list[Number] = [1.0, self.shape[-1] + pad]
        for size in reversed(self.shape[1:-1]):
            found.append(found[-1] * size)
        return found[::-1]

    def _coefficients(self, loop: int) -> dict[int, Number]:
        """Absolute coefficients by dimension, omitting those that are 0 in every row.

        A non-affine index moves with every loop.
        """
        access = self.access
        found: dict[int, Number] = {}
        for d in access.moving[loop]:
            number = number_of(access.coefs[d][loop]) if access.exact[d] else 1.0
            found[d] = abs(number) if isinstance(number, float) else np.abs(number)
        return found

    def _strides(self, loop: int, coefs: Mapping[int, Number]) -> tuple[Floats, Floats]:
        real = self.real[loop]
        jumps = {d: _times(coef, self.stride[d]) for d, coef in coefs.items()}
        stride: Number = 0.0
        for d, jump in jumps.items():  # the innermost dimension that moves wins
            stride = jump if len(jumps) == 1 else np.where(coefs[d] > 0, jump, stride)
        moved = np.where(real, stride, 0.0)
        if len(jumps) == 1 and self.is_exact:
            return moved, moved
        flat: Number = sum(jumps.values()) if self.is_exact else np.inf
        return moved, np.where(real, flat, 0.0)

    def _region(self) -> Floats:
        """Touched elements; a product of integers, so the order of factors does not matter."""
        fixed = prod((size for size in self.touched if isinstance(size, float)), start=1.0)
        total: Number = fixed
        for size in self.touched:
            if not isinstance(size, float):
                total = size if isinstance(total, float) and total == 1 else total * size
        return _as_column(total, self.rows)

    def _run(self, changed: int) -> Floats:
        """Length of the contiguous runs of the box.

        A run spans the trailing dimensions up to the first one that the box does not cover or whose
        rows are not adjacent in memory or are stepped over.

        No dimension after *changed* may have changed since the last call.
        """
        del self.runs[len(self.box) - changed :]
        run, whole = self.runs[-1]
        for d in reversed(range(len(self.box) + 1 - len(self.runs))):
            if whole is False:
                break
            box, size = self.box[d], self.shape[d]
            whole = self._without_gaps(d, whole)
            if whole is not False and not (isinstance(size, float) and size == 1):
                if not (isinstance(box, float) and box == 1):
                    longer = _times(box, run)
                    run = longer if whole is True else np.where(whole, longer, run)
                covered = box >= size
                if isinstance(covered, bool):  # the same in every row
                    whole = whole if covered else False
                else:
                    whole = covered if whole is True else whole & covered
            self.runs.append((run, whole))
        return _as_column(run, self.rows)

    def _without_gaps(self, d: int, whole: Masks | bool) -> Masks | bool:
        """Where *whole* and the touched rows of dimension *d* are neighbours in memory."""
        given = self.access.strides is not None and self.shape[d] != 1
        if given and self.stride[d] != self.dense[d]:
            return False
        if self.touched[d] is self.box[d]:
            return whole
        near = self.touched[d] >= self.box[d]
        return whole & near if isinstance(near, np.ndarray) else bool(near) and whole


def _times(column: Number, number: Number) -> Number:
    """The product; *column* itself if *number* is 1 in every row."""
    return column if isinstance(number, float) and number == 1 else column * number


def _is_positive(number: Number) -> bool:
    """True when *number* is positive in every row."""
    return number > 0 if isinstance(number, float) else bool((number > 0).all())


def _always(true: Masks | bool) -> bool:
    """True when *true* is so in every row."""
    return bool(true.all()) if isinstance(true, np.ndarray) else bool(true)


def is_number(size: Size, number: int) -> bool:
    """True for a size that equals *number* regardless of decisions."""
    return isinstance(size, int) and size == number


def _as_column(number: Number, rows: int) -> Floats:
    column: Floats = np.asarray(number, dtype=np.float64)
    return column if column.ndim else np.full(rows, column)


def number_of(size: Size) -> Number:
    """*size* as a floating-point column, or as a number if it is constant."""
    if isinstance(size, Column):
        return size.floats
    return float(size) if isinstance(size, int) else as_array(size, 0).astype(np.float64)
