"""Sums shared by the threads of a GPU block: each thread's part, and the combination of parts.

::

    for tx in 0..96  # threadIdx.x
      part[0] = 0.0
      for k in 0..8: part[0] += x[k * 96 + tx]
      other[0] = shuffle(part[0], 16); part[0] += other[0]      # and 8, 4, 2, 1: one sum a warp
      if tx % 32 == 0: warps[0, tx // 32] = part[0]
      barrier(shared)
      if tx == 0
        for w in 0..3: total[0] += warps[0, w]
        sum[i] = total[0]

Threads along x exchange registers in groups; the group size is the greatest power of two, up to a
warp, that divides their number.  Threads along another index are not neighbours in a warp and use
shared memory only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, TypeVar

from ansorpy.errors import ScheduleError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, Load, ReduceKind, Var, as_expr
from ansorpy.ir.fragments import WARP
from ansorpy.ir.loops import (
    BLOCK_THREADS,
    Alloc,
    Barrier,
    Buffer,
    For,
    ForKind,
    If,
    Scope,
    Seq,
    Shuffle,
    Stmt,
    Store,
)
from ansorpy.schedule.lowering.context import Index
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.tables.size import Size, size_gcd

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["ThreadSums", "groups_of", "shared_reduce_loop"]

T = TypeVar("T")
ZERO = as_expr(0)


@dataclass(frozen=True)
class ThreadSums:
    """The sums of one stage in a loop over threads.

    ``part`` holds a thread's own sums, ``[space loops inside the reduction...]``; ``around`` are
    the enclosing thread loops, each iteration of which has its own sums.  Half-width floats are
    summed in single precision, as in other sums.
    """

    stage: str
    part: Buffer
    kind: ReduceKind
    thread: Var
    threads: int
    around: tuple[tuple[Var, int], ...]
    index: ForKind

    @staticmethod
    def of(
        name: str,
        dtype: DType,
        shape: Sequence[int],
        kind: ReduceKind,
        thread: Var,
        threads: int,
        around: Sequence[tuple[Var, int]],
        index: ForKind,
    ) -> ThreadSums:
        """Sums of *dtype* (or wider) for stage *name* in the loop *thread*, bound to *index*."""
        part = Buffer(f"{name}.part", tuple(shape) or (1,), dtype.of_sums, Scope.LOCAL)
        return ThreadSums(name, part, kind, thread, threads, tuple(around), index)

    @property
    def width(self) -> int:
        """Size of the groups that exchange registers: neighbours along x share a warp."""
        return gcd(self.threads, WARP) if self.index is ForKind.THREAD_X else 1

    @property
    def scratch(self) -> Buffer:
        """The sum of each such group, in shared memory."""
        around = tuple(extent for _, extent in self.around)
        shape = self._ordered(around, self.part.shape, self.threads // self.width)
        return Buffer(f"{self.stage}.warps", shape, self.part.dtype, Scope.SHARED)

    def cleared(self, at: Index) -> Stmt:
        """Set the part of element *at* to the identity."""
        identity = as_expr(self.kind.identity(self.part.dtype), self.part.dtype)
        return Store(self.part, at or (ZERO,), identity, None)

    def added(self, at: Index, value: Expr) -> Store:
        """Add *value* to the part of element *at*."""
        return Store(self.part, at or (ZERO,), value.astype(self.part.dtype), self.kind)

    def exchanged(self, at: Index) -> Stmt:
        """Leave the group's sum in each thread's part of element *at*."""
        at = at or (ZERO,)
        other = Buffer(f"{self.part.name}.other", (1,), self.part.dtype, Scope.LOCAL)
        steps: list[Stmt] = []
        distance = self.width // 2
        while distance:
            steps.append(Shuffle(other, (ZERO,), Load(self.part, at), distance))
            steps.append(Store(self.part, at, Load(other, (ZERO,)), self.kind))
            distance //= 2
        return Alloc(other, Seq(tuple(steps))) if steps else Seq(())

    def shared(self, at: Index, scratch: Buffer) -> Stmt:
        """Have the first thread of each group write its sum of element *at* to *scratch*."""
        at = at or (ZERO,)
        group = self.thread // self.width if self.width > 1 else self.thread
        write = Store(scratch, self._place(at, group), Load(self.part, at), None)
        if self.width == 1:
            return write
        return If((self.thread % self.width).equal(0), write, None)

    def total(
        self, at: Index, scratch: Buffer | None, target: tuple[Buffer, Index],
        guarded: Callable[[Stmt], Stmt], fresh: Callable[[str], Var],
    ) -> Stmt:  # fmt: skip
        """Have the first thread store the sum of element *at* in *target*."""
        at = at or (ZERO,)
        buffer, index = target
        steps: list[Stmt] = []
        if scratch is not None:
            group, groups = fresh("group"), self.threads // self.width
            read = Load(scratch, self._place(at, group + 1))
            steps = [
                Store(self.part, at, Load(scratch, self._place(at, ZERO)), None),
                For(group, groups - 1, ForKind.SERIAL, Store(self.part, at, read, self.kind)),
            ]
        store = Store(buffer, index, Load(self.part, at).astype(buffer.dtype), None)
        return If(self.thread.equal(0), guarded(Seq((*steps, store)) if steps else store), None)

    def nest(
        self, parts: Stmt, each: Callable[[Callable[[], Stmt]], Stmt], at: Callable[[], Index],
        total: Callable[[Buffer | None], Stmt],
    ) -> Stmt:  # fmt: skip
        """The loop over the threads: *parts* are summed, then combined and stored by *total*.

        *each* wraps a statement in loops over the elements; *at* is the current element.
        """
        steps = [each(lambda: self.cleared(at())), parts]
        if self.width > 1:
            steps.append(each(lambda: self.exchanged(at())))
        if self.width == self.threads:
            body: Stmt = Seq((*steps, each(lambda: total(None))))
        else:
            scratch, wait = self.scratch, Barrier(Scope.SHARED)
            # The first barrier is for enclosing loops: other threads may still read old contents.
            share = each(lambda: self.shared(at(), scratch))
            body = Seq((*steps, wait, share, wait, each(lambda: total(scratch))))
            body = Alloc(scratch, body)
        return For(self.thread, self.threads, self.index, Alloc(self.part, body))

    def _place(self, at: Index, group: Expr) -> Index:
        """Index of a group's sum of element *at* in the scratch memory."""
        return self._ordered(tuple(var for var, _ in self.around), at, group)

    def _ordered(self, around: tuple[T, ...], element: tuple[T, ...], group: T) -> tuple[T, ...]:
        """Order with groups last; if not along x, enclosing threads are last (adjacent banks)."""
        if self.index is ForKind.THREAD_X:
            return (*around, *element, group)
        return (group, *element, *around)


def groups_of(threads: Size, index: ForKind) -> Size:
    """The number of groups of *threads* along *index* that exchange registers among themselves."""
    return threads // size_gcd(threads, WARP) if index is ForKind.THREAD_X else threads


def shared_reduce_loop(
    state: State,
    stage: Stage,
    kinds: Mapping[str, ForKind],
    around: Mapping[Var, tuple[ForKind, int]],
) -> str | None:
    """The reduce loop of *stage* whose iterations are threads of a block; None without one.

    *kinds* has the kinds of its loops; *around* are the enclosing thread loops.

    Raises:
        ScheduleError: There are several such loops, or the threads are in use already.
    """
    found = [it.name for it in stage.reduce_iters if kinds[it.name] in BLOCK_THREADS]
    if not found:
        return None
    taken = [kinds[it.name] for it in stage.iters if it.name != found[0]]
    taken += [ForKind.VTHREAD, *(kind for kind, _ in around.values())]
    if kinds[found[0]] in taken or BLOCK_THREADS.intersection(kinds[name] for name in found[1:]):
        raise ScheduleError(
            "threads share a sum along one index, to which no other loop of the stage or around it "
            "may be bound",
            stage=stage.name, program=state.text(stage.name, set(found)),
            hint="compute it outside the loops that are bound to this index",
        )  # fmt: skip
    return found[0]
