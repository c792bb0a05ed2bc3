"""Sums of a stage that are kept apart until they are complete: in lanes, in threads, in float32."""

from __future__ import annotations

from abc import abstractmethod

from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.expr import Reduce, Var
from ansorpy.ir.extents import most
from ansorpy.ir.loops import Alloc, Buffer, ForKind, Seq, Stmt
from ansorpy.schedule.bounds.axes import axis_exprs
from ansorpy.schedule.lowering.context import Index
from ansorpy.schedule.lowering.each_element import EachElement
from ansorpy.schedule.lowering.float32_sums import Float32Sums, adds_halves
from ansorpy.schedule.lowering.gpu.asynchronous import grouped
from ansorpy.schedule.lowering.gpu.thread_sums import ThreadSums
from ansorpy.schedule.lowering.lane_sums import LaneSums

__all__ = ["PartialSums"]


class PartialSums(EachElement):
    """The loops of a reduction with a buffer for its sums, and what completes them."""

    sums: LaneSums | ThreadSums | Float32Sums | None = None
    sum_level: int | None = None
    """Number of the loop before which the sums are cleared; None without reduce loops."""

    @abstractmethod
    def _inside(self, level: int) -> Stmt:
        """The body of loop *level*."""

    @abstractmethod
    def _start_tiles(self, name: str, var: Var) -> None:
        """Queue bindings of tile starts for the ragged splits whose tile number is loop *name*."""

    def _in_lanes(self, level: int) -> Stmt:
        """The loops from *level* inward with a partial sum per lane, then their tree."""
        body, fresh = self.op.body, self.outer.fresh
        assert isinstance(body, Reduce) and self.stage.lanes is not None
        names = [it.name for it in self.stage.iters]
        inner = [self._number(names[n]) for n in self._space_from(level)]
        shape = (*inner, self._number(self.stage.lanes))
        shared = ForKind.PARALLEL in [self.kinds[name] for name in names[level:]]
        sums = LaneSums.of(self.name, body.dtype, shape, body.kind, shared=shared)

        def combined() -> Stmt:
            return sums.combined(self._element(level), self.buffer, self._write_index(), fresh)

        before = self._each(level, lambda: sums.cleared(self._element(level), fresh))
        self.sums = sums
        made = self._loop(level, lambda: self._inside(level))
        self.sums = None
        after = self._each(level, lambda: self._guarded(combined()))
        return Alloc(sums.buffer, Seq((before, made, after)))

    def _needs_float32(self, level: int) -> bool:
        """Whether the loops from *level* inward add 16-bit floats in a buffer of that type.

        Threads inside have no common buffer for sums, and lanes around the reduction no memory of
        their own: those become registers later, which are float32.
        """
        if self.buffer.dtype is self.op.dtype.of_sums or not adds_halves(self.state, self.stage):
            return False
        names = [it.name for it in self.stage.iters]
        around = any(self.kinds[name] is ForKind.VECTORIZED for name in names[:level])
        return not around and not any(self.kinds[name].is_bound for name in names[level:])

    def _in_float32(self, level: int) -> Stmt:
        """The loops from *level* inward with sums in float32, which are then rounded."""
        body = self.op.body
        assert isinstance(body, Reduce)
        names = [it.name for it in self.stage.iters]
        shape = tuple(most(self.extents[names[n]]) for n in self._space_from(level))
        shared = ForKind.PARALLEL in [self.kinds[name] for name in names[level:]]
        sums = Float32Sums.of(self.name, body.dtype, shape, body.kind, shared=shared)

        def rounded() -> Stmt:
            store = sums.rounded(self._element(level), self.buffer, self._write_index())
            return self._guarded(store)

        def cleared() -> Stmt:
            return self._guarded(sums.cleared(self._element(level)))

        before = self._each(level, cleared)
        self.sums = sums
        made = grouped(self._loop(level, lambda: self._inside(level)), 0)
        self.sums = None
        return Alloc(sums.buffer, Seq((before, made, self._each(level, rounded))))

    def _sum_index(self) -> Index:
        """Index of the current partial sum; the lane, if there are lanes, comes last."""
        assert self.sum_level is not None
        at = self._element(self.sum_level)
        if self.stage.lanes is None:
            return at
        made = axis_exprs(self.stage, self.leaves, self.extents, self.starts)
        return (*at, linear(made[self.stage.lanes]).to_expr())

    def _across_threads(self, level: int, across: str) -> Stmt:
        """The loops from *level* inward with a partial sum per thread, then their combination."""
        body, fresh = self.op.body, self.outer.fresh
        assert isinstance(body, Reduce)
        kind, var, threads = self.kinds[across], fresh(across), self._number(across)
        inner = [self._number(self.stage.iters[n].name) for n in self._space_from(level)]
        around = [(other, n) for other, (_, n) in self.outer.threads_around().items()]
        sums = ThreadSums.of(self.name, body.dtype, inner, body.kind, var, threads, around, kind)

        def at() -> Index:
            return self._element(level)

        def total(scratch: Buffer | None) -> Stmt:
            place = (self.buffer, self._write_index())
            return sums.total(at(), scratch, place, self._guarded, fresh)

        with self.outer.loop((self.name, across), var, threads, kind):
            self.leaves[across] = var
            self._start_tiles(across, var)
            self.sums = sums
            parts = self._loop(level, lambda: self._inside(level))
            self.sums = None
            return sums.nest(parts, lambda made: self._each(level, made), at, total)
