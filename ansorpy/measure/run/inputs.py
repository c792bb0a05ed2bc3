"""Input values for timing and checking: standard normal, the same in every process.

Zeros and constants would hide wrong indexing and distort timings (denormals, early exits).
:mod:`ansorpy.measure.run.ranges` chooses the ranges of integers, :mod:`ansorpy.measure.run.signs`
which floats are positive.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np

from ansorpy.arrays import Array
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.tensor import PlaceholderOp
from ansorpy.measure.run.ranges import input_ranges
from ansorpy.measure.run.signs import positive_inputs

__all__ = ["drawn_inputs", "input_array"]

_BLOCK = 131_101
"""Number of values drawn, a prime; larger tensors repeat them, rotated: drawing takes longer."""


def drawn_inputs(dag: ComputeDAG, seed: int) -> Iterator[tuple[PlaceholderOp, Array]]:
    """Each placeholder of *dag* with its values, one after another.

    Raises:
        UsageError: As :func:`~ansorpy.measure.run.ranges.input_ranges`.
    """
    ranges, positive = input_ranges(dag), positive_inputs(dag)
    for op in dag.args:
        values = input_array(op, seed, ranges.get(op.name))
        yield op, np.abs(values) if op.name in positive else values


def input_array(op: PlaceholderOp, seed: int, bounds: tuple[int, int] | None = None) -> Array:
    """Values of *op*: standard normal for floats, uniform in *bounds* for integers and booleans.

    The same *seed* and name give the same values in every process.
    """
    rng = np.random.default_rng([seed, zlib.crc32(op.name.encode())])
    count = min(op.size, _BLOCK)
    if bounds is None:
        block = rng.standard_normal(count, dtype=np.float32).astype(op.dtype.numpy)
    else:
        block = rng.integers(bounds[0], bounds[1], count).astype(op.dtype.numpy)
    return _tiled(block, op.size).reshape(op.shape)


def _tiled(block: Array, size: int) -> Array:
    """Repeat *block* to *size* elements, rotating each repetition further."""
    if len(block) >= size:
        return block
    out = np.empty(size, block.dtype)
    for number, start in enumerate(range(0, size, len(block))):
        piece = out[start : start + len(block)]
        piece[:] = np.roll(block, 7919 * number)[: len(piece)]
    return out
