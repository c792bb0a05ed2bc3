"""Evaluation of a whole compute DAG with numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Array
from ansorpy.errors import UsageError
from ansorpy.ir.dag import ComputeDAG, loads_of
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Axis, Reduce, Var
from ansorpy.ir.interpret.contraction import contract
from ansorpy.ir.interpret.evaluate import Evaluator, Frame, Mask, flat_index
from ansorpy.ir.interpret.numerics import COMBINE, Value
from ansorpy.ir.loops import Buffer
from ansorpy.ir.sizes import fixed, fixed_all, refuse_dims
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor

__all__ = ["Arrays", "TensorReader", "checked_inputs", "of_routine", "reduced", "run_dag"]

Arrays: TypeAlias = (
    Mapping[PlaceholderOp, npt.ArrayLike]
    | Mapping[str, npt.ArrayLike]
    | Mapping[PlaceholderOp | str, npt.ArrayLike]
)
"""Arrays by placeholder or by its name."""

# Points evaluated at a time: limits memory, but large enough to make numpy's overhead small.
CHUNK = 1 << 21


def run_dag(dag: ComputeDAG, inputs: Arrays, dtype: DType | None = None) -> list[Array]:
    """The outputs of *dag* for *inputs*, which are given by placeholder or name.

    With ``dtype=DType.FLOAT64`` all floating-point values are computed in float64.

    Raises:
        UsageError: An input is missing, its shape or type differs from the declared one, or the
            definition has dimensions.

    >>> from ansorpy.ir.tensor import compute, placeholder
    >>> x = placeholder((3,), name="x")
    >>> y = compute((3,), lambda i: x[i] * 2.0, name="y")
    >>> run_dag(ComputeDAG([y]), {x: np.arange(3, dtype=np.float32)})[0].tolist()
    [0.0, 2.0, 4.0]
    """
    if dtype not in (None, DType.FLOAT64):
        raise UsageError(f"run_dag computes in the declared types or in float64, not {dtype}")
    refuse_dims(dag.dims)
    wide = dtype is DType.FLOAT64
    values = checked_inputs(dag, inputs, wide=wide)
    if wide:
        values = {op: a.astype(np.float64) if op.dtype.is_float else a for op, a in values.items()}
    reader = TensorReader(values, wide=wide)
    for op in dag.computes:
        with np.errstate(all="ignore"):
            values[op] = _run_op(op, reader)
    return [values[op] for op in dag.outputs]


def checked_inputs(
    dag: ComputeDAG, inputs: Mapping[Any, npt.ArrayLike], *, wide: bool
) -> dict[Tensor, Array]:
    """The array of each placeholder that *dag* reads; if *wide*, floats may already be float64.

    Raises:
        UsageError: An input is missing, or its shape or type differs from the declared one.
    """
    found: dict[Tensor, Array] = {}
    for op in dag.args:
        given = inputs.get(op, inputs.get(op.name))
        if given is None:
            raise UsageError(f'there is no array for input "{op.name}"')
        array = np.asarray(given)
        if array.shape != op.shape:
            raise UsageError(f'input "{op.name}" has shape {op.shape}, got {array.shape}')
        if array.dtype != op.dtype.numpy and not (wide and array.dtype == np.float64):
            raise UsageError(f'input "{op.name}" is {op.dtype.value}, got {array.dtype}')
        found[op] = array
    return found


class TensorReader(Evaluator):
    """Reads elements of tensors from *values*.

    Raises:
        UsageError: A definition reads outside the bounds of a tensor.
    """

    def __init__(self, values: Mapping[Tensor, Array], *, wide: bool):
        super().__init__(wide=wide)
        self.values = values

    def load(
        self, source: Tensor | Buffer, indices: tuple[Value, ...], frame: Frame, mask: Mask
    ) -> Value:
        assert isinstance(source, Tensor)
        return self.elements(source, self.position(source, indices, mask), mask)

    def elements(self, source: Tensor, at: Value, mask: Mask) -> Value:
        """The elements of *source* at flat positions *at*; anything where *mask* is False."""
        held = self.values[source].reshape(-1)
        return held[at] if len(held) else np.zeros(np.shape(at), held.dtype)

    @staticmethod
    def position(source: Tensor, indices: tuple[Value, ...], mask: Mask) -> Value:
        """Row-major position; any valid position where *mask* is False."""

        def refused(where: str) -> UsageError:
            return UsageError(
                f'"{source.name}" is read {where}',
                hint="guard the read with ap.select(condition, value, other)",
            )

        return flat_index(source.shape, indices, mask, refused)


def reduced(
    body: Reduce, value: Callable[[], Value], grid: Sequence[int], space: int, wide: bool
) -> Array:
    """*value* broadcast to *grid* and reduced over all dimensions from number *space* on.

    Over no points it is the identity, and nothing is evaluated.
    """
    kind = np.dtype(np.float64) if wide and body.dtype.is_float else body.dtype.numpy
    if not math.prod(grid[space:]):
        return np.full(grid[:space], body.kind.identity(body.dtype), dtype=kind)
    full = np.broadcast_to(np.asarray(value(), dtype=kind), tuple(grid))
    over = tuple(range(space, len(grid)))
    return np.asarray(COMBINE[body.kind].reduce(full, axis=over, dtype=kind))


def of_routine(op: ComputeOp, values: Mapping[Tensor, Array]) -> Array:
    """What the routine of *op* computes from *values*."""
    assert op.routine is not None
    inputs = [values[tensor] for tensor in loads_of(op)]
    return op.routine.evaluate(inputs, fixed_all(op.shape))


def _run_op(op: ComputeOp, reader: TensorReader) -> Array:
    if op.routine is not None:
        return of_routine(op, reader.values)
    fast = contract(op, reader.values) if op.size else None
    if fast is not None:
        return fast
    kind = np.dtype(np.float64) if reader.wide and op.dtype.is_float else op.dtype.numpy
    shape = fixed_all(op.shape)
    axes = (*op.axes, *op.reduce_axes)
    inner = math.prod(fixed(axis.extent) for axis in op.reduce_axes)
    result = np.empty(shape, dtype=kind)
    for box in _boxes(shape, inner):
        ranges = [*box, *((0, fixed(a.extent)) for a in op.reduce_axes)]
        result[tuple(slice(*r) for r in box)] = _run_box(op, reader, axes, ranges)
    return result


def _run_box(
    op: ComputeOp, reader: TensorReader, axes: Sequence[Axis], ranges: Sequence[tuple[int, int]]
) -> Array:
    env: dict[Var, Value] = {}
    for d, (axis, (start, stop)) in enumerate(zip(axes, ranges, strict=True)):
        shape = [1] * len(axes)
        shape[d] = stop - start
        env[axis] = np.arange(start, stop).reshape(shape)
    grid = [stop - start for start, stop in ranges]
    if isinstance(body := op.body, Reduce):
        value = partial(reader.value, body.source, Frame(env))
        return reduced(body, value, grid, len(op.axes), reader.wide)
    return np.broadcast_to(reader.value(body, Frame(env)), grid)


def _boxes(extents: Sequence[int], inner: int) -> Iterator[list[tuple[int, int]]]:
    """Boxes that cover the space; a box has at most about CHUNK points, *inner* per element."""
    if not extents:
        yield []
        return
    row = math.prod(extents[1:]) * inner
    step = max(1, CHUNK // max(1, row))
    for start in range(0, extents[0], step):
        stop = min(start + step, extents[0])
        if row <= CHUNK:
            yield [(start, stop), *((0, e) for e in extents[1:])]
        else:
            for rest in _boxes(extents[1:], inner):
                yield [(start, stop), *rest]
