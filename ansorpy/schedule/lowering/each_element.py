"""Statements for each element of a stage's box: cleared sums, rescaled sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from ansorpy.errors import ScheduleError
from ansorpy.ir import builders
from ansorpy.ir.expr import AxisKind, Expr, Load, Reduce, Var, as_expr
from ansorpy.ir.loops import WARP_LANES, Seq, Stmt, Store
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.schedule.lowering.context import Index
from ansorpy.schedule.lowering.gpu.lane_loops import LaneLoops
from ansorpy.schedule.lowering.stage_indices import StageIndices

__all__ = ["EachElement"]


class EachElement(StageIndices, ABC):
    """The loops of one stage over the elements that it computes in an iteration."""

    @abstractmethod
    def _loop(self, level: int, body: Callable[[], Stmt]) -> Stmt:
        """Loop number *level* around *body*."""

    def _initial(self, level: int) -> list[Stmt]:
        """Set this stage's box inside loop *level* to the reduction's identity."""
        body = self.op.body
        if not isinstance(body, Reduce):
            return []
        value = as_expr(body.kind.identity(self.buffer.dtype), self.buffer.dtype)

        def cleared() -> Stmt:
            return self._guarded(Store(self.buffer, self._write_index(), value, None))

        return [self._each_own(level, cleared)]

    def _rescaling(self, level: int, stmt: Stmt) -> Stmt:
        """*stmt* after this sum has been made relative to the present maximum."""
        how = self.stage.rescaled
        if how is None:
            return stmt
        top, before = self.outer.buffers[how.top], self.outer.buffers[f"{how.top}.before"]

        def scaled() -> Stmt:
            values = self._axis_values()
            mapping: dict[Var, Expr] = {a: values[a.name] for a in self.op.axes}
            now = Load(
                self.state.stage(how.top).op, tuple(substitute(i, mapping) for i in how.indices)
            )
            after = self.outer.load(self.name, now)
            assert isinstance(after, Load) and after.source is top
            factor = _growth(Load(before, after.indices), after, how.scale)
            at = self._write_index()
            return self._guarded(Store(self.buffer, at, Load(self.buffer, at) * factor, None))

        return Seq((self._each_own(level, scaled), stmt))

    def _each(self, level: int, body: Callable[[], Stmt], until: int | None = None) -> Stmt:
        """*body* for each element of this stage's box inside loop *level*.

        With *until*, the loops from that number inward are left out.
        """
        saved = dict(self.leaves)
        self.leaves.update(
            {it.name: as_expr(0) for it in self.stage.iters[level:] if it.kind is AxisKind.REDUCE}
        )

        def nest(remaining: list[int]) -> Stmt:
            return self._loop(remaining[0], lambda: nest(remaining[1:])) if remaining else body()

        stmt = nest([n for n in self._space_from(level) if until is None or n < until])
        self.leaves = saved
        return stmt

    def _each_own(self, level: int, body: Callable[[], Stmt]) -> Stmt:
        """As :meth:`_each`; if an instruction computes fragments, by the lanes that hold them."""
        by_lanes = any(it.annotation in WARP_LANES for it in self.stage.iters)
        if self.stage.fragment is None or (self.stage.tensorized is None and by_lanes):
            return self._each(level, body)
        first = self._instruction_level()
        inner = [self.stage.iters[n].name for n in self._space_from(first)]
        shares = [digits for digits in self.stage.fragment if digits]
        own = LaneLoops.of(dict(zip(inner, shares, strict=True)), self.outer.fresh)

        def mine() -> Stmt:
            self.leaves.update(own.values)
            return body()

        return own.around(self._each(level, mine, until=first))

    def _element(self, level: int) -> Index:
        """Values of the space loops from *level* inward."""
        return tuple(self.leaves[self.stage.iters[n].name] for n in self._space_from(level))

    def _space_from(self, level: int) -> list[int]:
        iters = self.stage.iters
        return [n for n in range(level, len(iters)) if iters[n].kind is not AxisKind.REDUCE]

    def _instruction_level(self) -> int:
        """Number of the outermost loop that the instruction replaces."""
        if self.stage.tensorized is None:
            raise ScheduleError(
                "only an instruction can sum values in a warp's registers",
                stage=self.name, program=self.state.text(self.name),
                hint="tensorize the innermost loops",
            )  # fmt: skip
        return self.stage.index(self.stage.tensorized[0])


def _growth(before: Expr, after: Expr, scale: float) -> Expr:
    """What to multiply a sum of exponentials by when their maximum grows from *before* to *after*.

    Scores that are all ``-inf`` so far have no finite maximum; their sums are 0.
    """
    lowest = -before.dtype.normal[1]
    grown = builders.maximum(before, lowest) - builders.maximum(after, lowest)
    return builders.exp(grown if scale == 1.0 else grown * scale)
