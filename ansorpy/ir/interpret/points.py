"""Evaluation of single elements of a definition, computing only their dependences."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from operator import is_

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Array, Ints, Masks
from ansorpy.errors import UsageError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Reduce, Var
from ansorpy.ir.interpret.contraction import contract_at
from ansorpy.ir.interpret.dag import (
    CHUNK,
    Arrays,
    TensorReader,
    checked_inputs,
    of_routine,
    reduced,
)
from ansorpy.ir.interpret.evaluate import Frame, Mask
from ansorpy.ir.interpret.numerics import Value
from ansorpy.ir.loops import Buffer
from ansorpy.ir.sizes import fixed, fixed_all
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["evaluate_points"]


def evaluate_points(
    dag: ComputeDAG,
    inputs: Arrays,
    op: Tensor,
    points: npt.ArrayLike,
    *,
    wide: bool = True,
) -> Array:
    """The elements of *op* at *points*, an (n, ndim) array of indices: floats as float64.

    If *wide*, floats are computed in float64; otherwise each is rounded to its declared type.

    **Cost:** each needed element of *op* and of the tensors it depends on is computed once.

    Raises:
        UsageError: An input or a point has the wrong shape or type, or *op* is not part of *dag*.
    """
    at = np.asarray(points, dtype=np.int64)
    if at.ndim != 2 or at.shape[1] != op.ndim:
        raise UsageError(f'points of "{op.name}" need shape (n, {op.ndim}), got {at.shape}')
    if op not in dag.ops:
        raise UsageError(f'"{op.name}" is not part of the definition')
    reader = _PointReader(dict(checked_inputs(dag, inputs, wide=wide)), wide)
    flat = reader.position(op, tuple(at.T), None)
    with np.errstate(all="ignore"):
        found = reader.elements(op, np.broadcast_to(flat, len(at)), None)
    return np.asarray(found, np.float64 if op.dtype.is_float else op.dtype.numpy)


def _where(at: Ints, mask: Masks) -> Ints:
    """The positions where *mask* holds; the two arrays are broadcast together."""
    shape = np.broadcast_shapes(at.shape, mask.shape)
    found: Ints = np.broadcast_to(at, shape)[np.broadcast_to(mask, shape)]
    return found


@dataclass
class _Points(Frame):
    """Elements of a tensor of *shape*: their indices, and the same as *flat* positions."""

    shape: tuple[int, ...] = ()
    indices: tuple[Ints, ...] = ()
    flat: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def are_at(self, source: Tensor, indices: tuple[Value, ...]) -> bool:
        """Whether *indices* of *source* are those of these elements."""
        same = len(indices) == len(self.indices) and all(map(is_, indices, self.indices))
        return same and fixed_all(source.shape) == self.shape


class _PointReader(TensorReader):
    """Computes elements of an operator when they are first read."""

    def __init__(self, values: dict[Tensor, Array], wide: bool):
        super().__init__(values, wide=wide)
        self._known: dict[Tensor, Masks] = {}
        self._values = values

    def load(
        self, source: Tensor | Buffer, indices: tuple[Value, ...], frame: Frame, mask: Mask
    ) -> Value:
        assert isinstance(source, Tensor) and isinstance(frame, _Points)
        if frame.are_at(source, indices):
            return self.elements(source, frame.flat, mask)
        return super().load(source, indices, frame, mask)

    def elements(self, source: Tensor, at: Value, mask: Mask) -> Value:
        if isinstance(source, ComputeOp):
            self._compute(source, np.asarray(at), mask)
        found = super().elements(source, at, mask)
        return np.asarray(found, np.float64)[()] if self.wide and source.dtype.is_float else found

    def _compute(self, op: ComputeOp, at: Ints, mask: Mask) -> None:
        if op.routine is not None:
            if op not in self._values:
                self._values[op] = of_routine(op, self._values)
            return
        if op not in self._known:
            is_wide = self.wide and op.dtype.is_float
            kind = np.dtype(np.float64) if is_wide else op.dtype.numpy
            self._known[op] = np.zeros(fixed(op.size), dtype=np.bool_)
            self._values[op] = np.zeros(fixed_all(op.shape), dtype=kind)
        known = self._known[op]
        needed = np.zeros(fixed(op.size), dtype=np.bool_)
        needed[at if mask is None else _where(at, mask)] = True
        needed &= ~known
        if not needed.any():
            return
        known |= needed
        todo = np.flatnonzero(needed)
        step = max(1, CHUNK // max(1, math.prod(fixed(a.extent) for a in op.reduce_axes)))
        for start in range(0, len(todo), step):
            some = todo[start : start + step]
            self._values[op].reshape(-1)[some] = self._bodies(op, some)

    def _bodies(self, op: ComputeOp, flat: Ints) -> Array:
        indices = np.unravel_index(flat, fixed_all(op.shape)) if op.shape else ()
        if self.wide:
            fast = contract_at(op, indices, lambda t, at: np.asarray(self.elements(t, at, None)))
            if fast is not None:
                return fast
        env: dict[Var, Value] = {}
        ones = [1] * len(op.reduce_axes)
        indices = tuple(index.reshape(-1, *ones) for index in indices)
        env.update(zip(op.axes, indices, strict=True))
        for d, axis in enumerate(op.reduce_axes):
            env[axis] = np.arange(fixed(axis.extent)).reshape(1, *ones[:d], -1, *ones[d + 1 :])
        points = _Points(env, {}, fixed_all(op.shape), indices, flat.reshape(-1, *ones))
        grid = [len(flat), *(fixed(axis.extent) for axis in op.reduce_axes)]
        if isinstance(op.body, Reduce):
            value = partial(self.value, op.body.source, points)
            return reduced(op.body, value, grid, 1, wide=self.wide)
        return np.broadcast_to(self.value(op.body, points), grid)
