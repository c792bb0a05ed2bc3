"""Input values for timing and checking: standard normal, the same in every process.

Zeros and constants hide wrong indexing and flatter timings (denormals and early-outs).  Integer
tensors that index another tensor stay within it.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Load, walk
from ansorpy.ir.tensor import PlaceholderOp

__all__ = ["input_array", "input_ranges"]

_BLOCK = (1 << 20) + 7
"""Values drawn before they repeat, rotated: larger tensors would take seconds to draw."""


def input_ranges(dag: ComputeDAG) -> dict[str, tuple[int, int]]:
    """``low <= value < high`` of each integer placeholder, by name.

    A placeholder whose elements are read inside other tensors' indices gets the smallest of those
    dimensions' extents; the others small numbers, so that sums of products stay exact.
    """
    ranges = {
        op.name: (0, 2) if op.dtype is DType.BOOL else ((-8, 8) if op.dtype.is_signed else (0, 16))
        for op in dag.args
        if not op.dtype.is_float
    }
    indexed: dict[str, int] = {}
    for op in dag.computes:
        for load in (e for e in walk(op.body) if isinstance(e, Load)):
            for extent, index in zip(load.source.shape, load.indices, strict=True):
                for name in _indirect(index):
                    indexed[name] = min(extent, indexed.get(name, extent))
    return ranges | {name: (0, extent) for name, extent in indexed.items()}


def _indirect(index: object) -> list[str]:
    """Integer placeholders whose elements *index* is made of."""
    return [
        e.source.name
        for e in walk(index)  # type: ignore[arg-type]
        if isinstance(e, Load) and isinstance(e.source, PlaceholderOp) and not e.dtype.is_float
    ]


def input_array(
    op: PlaceholderOp, seed: int, bounds: tuple[int, int] | None = None
) -> npt.NDArray[np.generic]:
    """Values of *op*: standard normal for floats, uniform in *bounds* for integers and bools.

    The same *seed* and name give the same values in every process.
    """
    rng = np.random.default_rng([seed, zlib.crc32(op.name.encode())])
    count = min(op.size, _BLOCK)
    if bounds is None:
        block = rng.standard_normal(count, dtype=np.float32).astype(op.dtype.numpy)
    else:
        block = rng.integers(bounds[0], bounds[1], count).astype(op.dtype.numpy)
    return _tiled(block, op.size).reshape(op.shape)


def _tiled(block: npt.NDArray[np.generic], size: int) -> npt.NDArray[np.generic]:
    """*block* repeated to *size* elements, rotated a little further each time."""
    if len(block) >= size:
        return block
    out = np.empty(size, block.dtype)
    for number, start in enumerate(range(0, size, len(block))):
        piece = out[start : start + len(block)]
        piece[:] = np.roll(block, 7919 * number)[: len(piece)]
    return out
