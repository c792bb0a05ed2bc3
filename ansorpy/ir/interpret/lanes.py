"""Threads and loop iterations that run in lockstep, each at one position of every array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ansorpy.arrays import Array, Masks
from ansorpy.ir.expr import Load, Var, walk
from ansorpy.ir.interpret.numerics import Value
from ansorpy.ir.loops import (
    BLOCK_INDICES,
    THREAD_INDICES,
    Buffer,
    For,
    ForKind,
    Stmt,
    Store,
    walk_stmts,
)
from ansorpy.ir.sizes import fixed

__all__ = ["Lanes", "Launch"]


@dataclass(frozen=True)
class Launch:
    """Extents of the block and thread indices of one kernel launch (1 if unused)."""

    extents: Mapping[ForKind, int]

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return self._product(BLOCK_INDICES)

    @property
    def threads(self) -> int:
        """Threads of one block."""
        return self._product(THREAD_INDICES)

    def teams(self, size: int) -> int:
        """Number of teams of *size* threads, such as warps, in a block; the last may be partial."""
        return -(-self.threads // size)

    def stride(self, kind: ForKind) -> int:
        """The increase of the thread number when the index *kind* increases by one."""
        if kind in THREAD_INDICES:
            return self._product(THREAD_INDICES[: THREAD_INDICES.index(kind)])
        return self.threads * self._product(BLOCK_INDICES[: BLOCK_INDICES.index(kind)])

    def _product(self, kinds: tuple[ForKind, ...]) -> int:
        return prod(self.extents.get(kind, 1) for kind in kinds)


@dataclass(frozen=True)
class Lanes:
    """Executions in lockstep; a value is one number for all lanes, or an array of ``count``.

    ``env`` holds loop variables, hardware indices (by their ForKind) and the first element of
    each buffer instance.  ``thread`` numbers the hardware threads of the launch, or the
    iterations of the parallel loops.
    """

    env: dict[Var | Buffer | ForKind, Value]
    count: int
    thread: Value
    launch: Launch | None

    @staticmethod
    def single() -> Lanes:
        """One lane outside all loops."""
        return Lanes({}, 1, 0, None)

    @property
    def block(self) -> Value:
        """Number of each lane's block; all lanes of a parallel loop are in one block."""
        return 0 if self.launch is None else self.thread // self.launch.threads

    def in_team(self, size: int) -> Value:
        """Number of each lane's thread in its team of *size*."""
        return self.thread if self.launch is None else self.thread % self.launch.threads % size

    def team(self, size: int) -> Value:
        """Number within the launch of each lane's team of *size*."""
        assert self.launch is not None
        inside = self.thread % self.launch.threads
        return self.block * self.launch.teams(size) + inside // size

    def bind(self, name: Var | Buffer | ForKind, value: Value) -> Lanes:
        """The same lanes with one more name bound."""
        return replace(self, env={**self.env, name: value})

    def expand(self, name: Var, extent: int) -> Lanes:
        """Replace each lane by *extent* lanes in which *name* runs from 0."""
        env = {key: _repeat(v, extent) for key, v in self.env.items()}
        env[name] = np.tile(np.arange(extent), self.count)
        return replace(
            self, env=env, count=self.count * extent, thread=_repeat(self.thread, extent)
        )

    def nested(self, nest: Stmt) -> tuple[Store, Lanes]:
        """The store in a nest of loops, and a lane for each iteration, binding what it names."""
        *loops, store = walk_stmts(nest)
        assert isinstance(store, Store)
        read = [e for root in (*store.indices, store.value) for e in walk(root)]
        named = {e.source if isinstance(e, Load) else e for e in read} | {store.buffer}
        lanes = replace(self, env={name: v for name, v in self.env.items() if name in named})
        for loop in loops:
            assert isinstance(loop, For)
            lanes = lanes.expand(loop.var, fixed(loop.extent))
        return store, lanes

    def select(self, chosen: Masks) -> Lanes:
        """Only the lanes where *chosen* holds."""
        env = {key: v if np.ndim(v) == 0 else v[chosen] for key, v in self.env.items()}
        thread = self.thread if np.ndim(self.thread) == 0 else self.thread[chosen]
        return replace(self, env=env, count=int(chosen.sum()), thread=thread)

    def spread(self, value: Value) -> Array:
        """*value* as an array of ``count``."""
        return np.broadcast_to(value, (self.count,))


def _repeat(value: Value, times: int) -> Value:
    return value if np.ndim(value) == 0 else np.repeat(value, times)
