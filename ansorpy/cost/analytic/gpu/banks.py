"""Bank conflicts: the cycles that shared memory needs to serve a warp, per candidate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Floats

__all__ = ["BANK_BYTES", "bank_cycles"]

BANK_BYTES = 128
"""Bytes that all banks deliver per cycle: 32 banks of 4 bytes."""


def bank_cycles(
    extents: Sequence[Floats], strides: Sequence[Floats], width: Floats, warp: int
) -> Floats:
    """Cycles to deliver *width* contiguous bytes to each lane of the first warp.

    Lanes with the same address share one access; different addresses in one bank are serialised.

    Args:
        extents: Iterations of the loops that make up the thread index, innermost first.
        strides: Bytes by which one iteration of each loop moves the address.
        width: Bytes per lane: 1 to 16, a power of two.
    """
    rows = len(width)
    lane = np.broadcast_to(np.arange(warp, dtype=np.int64), (rows, warp))
    address = np.zeros((rows, warp), dtype=np.int64)
    threads = np.ones(rows)
    for extent, stride in zip(extents, strides, strict=True):
        size = np.maximum(extent, 1).astype(np.int64)[:, None]
        address += lane % size * stride.astype(np.int64)[:, None]
        lane = lane // size
        threads = threads * extent
    each = np.maximum(width, 4).astype(np.int64)[:, None]
    # Lanes beyond the last thread are taken to read the same address as the first thread.
    active = np.arange(warp) < threads[:, None]
    word = np.where(active, address, address[:, :1]) // each
    return _most_of_one(word, BANK_BYTES // each)


def _most_of_one(word: npt.NDArray[np.int64], groups: npt.NDArray[np.int64]) -> Floats:
    """The largest number of distinct words in one group of banks, for each row."""
    rows, lanes = word.shape
    ordered = np.sort(word, axis=1)
    first = np.ones_like(ordered, dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    group = ordered % groups + np.arange(rows)[:, None] * lanes
    counts = np.bincount(group[first], minlength=rows * lanes).reshape(rows, lanes)
    most: Floats = counts.max(axis=1).astype(np.float64)
    return most
