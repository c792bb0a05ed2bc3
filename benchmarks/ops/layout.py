"""How a tensor of ours is laid out for a peer: axes permuted, some of them merged."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Layout", "channels_first"]

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Layout:
    """``axes[d]`` are the axes of ours, outer to inner, that make the peer's dimension ``d``.

    >>> groups_first = Layout(((0,), (2, 3), (1,)))
    >>> groups_first.to_peer(np.zeros((1, 7, 4, 8))).shape
    (1, 32, 7)
    """

    axes: tuple[tuple[int, ...], ...]

    def shape(self, ours: tuple[int, ...]) -> tuple[int, ...]:
        """The peer's shape of a tensor that has shape *ours* here; ``()`` is an axis of one."""
        return tuple(prod(ours[axis] for axis in group) for group in self.axes)

    def to_peer(self, array: Array) -> Array:
        """A contiguous array as the peer wants it."""
        shape = self.shape(array.shape)
        return np.ascontiguousarray(array.transpose(self._order)).reshape(shape)

    def from_peer(self, array: Array, ours: tuple[int, ...]) -> Array:
        """The peer's *array* as ours of shape *ours*; the inverse of :meth:`to_peer`."""
        split = array.reshape([ours[axis] for axis in self._order])
        return split.transpose(np.argsort(self._order))

    @property
    def _order(self) -> tuple[int, ...]:
        return tuple(axis for group in self.axes for axis in group)


def channels_first(rank: int) -> Layout:
    """``[n, *space, c]`` as ``[n, c, *space]`` for *rank* axes of space."""
    return Layout(((0,), (rank + 1,), *((axis,) for axis in range(1, rank + 1))))
