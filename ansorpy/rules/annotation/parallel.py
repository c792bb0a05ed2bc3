"""Open the number of outer loops that run in parallel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import ForKind
from ansorpy.rules.annotation.extents import column_of, loop_extents, set_column
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.matching.relations import is_input
from ansorpy.rules.predicates import JOBS_PER_CORE
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.stage import Iter, Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["AnnotateParallel", "parallel_prefix"]


@dataclass(frozen=True)
class AnnotateParallel(AnnotationRule):
    """Open one decision per root stage: how many leading space loops run as one parallel loop.

    A new row takes the fewest loops with ``jobs_per_core`` iterations per core, or all.  On one
    core nothing is opened.  With ``allow_serial``, a count of 0 is possible for stages too small to
    parallelize, and a fraction ``serial_share`` of the new rows have it.  With ``keep_innermost``,
    the innermost loop is never taken, so that it can be vectorized.
    Source: TVM's InitParallel, whose default is 16 jobs per core.
    """

    jobs_per_core: int = JOBS_PER_CORE
    allow_serial: bool = False
    serial_share: float = 0.1
    keep_innermost: bool = False

    def declare(self, space: Space, target: Target) -> Space:
        state = space.state
        if target.cores <= 1:
            return space
        for stage in state.stages:
            if not (is_input(state, stage) or stage.inlined or stage.attach):
                state = self._mark(state, stage.name, 0)
        return Space(state, space.constraints)

    def _mark(self, state: State, name: str, start: int) -> State:
        stage = state.stage(name)
        prefix, host = parallel_prefix(state, stage, start)
        if host is not None and all(it.extent == 1 for it in prefix):
            for member in state.attached(stage):
                if member.attach is not None and member.attach.iter == host.name:
                    state = self._mark(state, member.name, 0)
            return self._mark(state, name, stage.index(host.name) + 1)
        if self.keep_innermost and prefix and prefix[-1] == stage.iters[-1]:
            prefix = prefix[:-1]
        if not prefix:
            return state
        first = 0 if self.allow_serial else 1
        counts = OneOf(tuple(range(first, len(prefix) + 1)))
        return state.parallel(name, prefix, count=counts if len(counts.values) > 1 else 1)

    def sample(self, space: Space, table: Table, target: Target, rng: np.random.Generator) -> Table:
        enough = self.jobs_per_core * target.cores
        for stage in space.state.stages:
            column = column_of(stage.parallel.count) if stage.parallel else None
            if stage.parallel is not None and column is not None:
                extents = loop_extents(space, table, stage.name, stage.parallel.iters)
                short = np.cumprod(extents, axis=1) <= enough
                counts = np.minimum(short.sum(axis=1) + 1, extents.shape[1])
                if self.allow_serial:
                    counts = np.where(rng.random(len(table)) < self.serial_share, 0, counts)
                table = set_column(space, table, column, counts)
        return table


def parallel_prefix(
    state: State, stage: Stage, start: int = 0
) -> tuple[tuple[Iter, ...], Iter | None]:
    """Leading space loops that may be fused, and the last of them if it hosts attached stages."""
    hosts = state.host_iters(stage)
    prefix: list[Iter] = []
    for it in stage.iters[start:]:
        if it.kind is not AxisKind.SPACE or it.annotation is not ForKind.SERIAL:
            break
        prefix.append(it)
        if it.name in hosts:
            return tuple(prefix), it
    return tuple(prefix), None
