"""Layout of our tensors for a peer, with axes permuted and some of them merged."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from ansorpy.arrays import Array

__all__ = ["Layout", "channels_first"]


@dataclass(frozen=True)
class Layout:
    """A peer's layout; ``axes[d]`` are our axes, outer to inner, that form its dimension ``d``.

    >>> groups_first = Layout(((0,), (2, 3), (1,)))
    >>> groups_first.to_peer(np.zeros((1, 7, 4, 8))).shape
    (1, 32, 7)
    """

    axes: tuple[tuple[int, ...], ...]

    def shape(self, ours: tuple[int, ...]) -> tuple[int, ...]:
        """The peer's shape of our tensor of shape *ours*; ``()`` makes an axis of extent 1."""
        return tuple(prod(ours[axis] for axis in group) for group in self.axes)

    def to_peer(self, array: Array) -> Array:
        """Convert to a contiguous array in the peer's layout."""
        shape = self.shape(array.shape)
        return np.ascontiguousarray(array.transpose(self._order)).reshape(shape)

    def from_peer(self, array: Array, ours: tuple[int, ...]) -> Array:
        """Convert the peer's *array* to our shape *ours*; the inverse of :meth:`to_peer`."""
        split = array.reshape([ours[axis] for axis in self._order])
        return split.transpose(np.argsort(self._order))

    @property
    def _order(self) -> tuple[int, ...]:
        return tuple(axis for group in self.axes for axis in group)


def channels_first(rank: int) -> Layout:
    """``[n, *space, c]`` as ``[n, c, *space]`` with *rank* spatial axes."""
    return Layout(((0,), (rank + 1,), *((axis,) for axis in range(1, rank + 1))))
