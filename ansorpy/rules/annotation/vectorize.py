"""Open the number of inner loops that become vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.arrays import Ints
from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import ForKind
from ansorpy.rules.annotation.extents import column_of, loop_extents, set_column
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.matching.relations import is_input, is_tiled
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.space import Constraint, Space, Table
from ansorpy.schedule.stage import Iter, Stage
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.size import Size, as_array, at_most
from ansorpy.target import Target

__all__ = ["AnnotateVectorize"]


@dataclass(frozen=True)
class AnnotateVectorize(AnnotationRule):
    """Open the number of innermost space loops of each stage that become one vector loop.

    In a new row, loops qualify while their product is at most ``max_elements``; of several loops, a
    random number is taken, never all.  In a tiled stage only the innermost loop qualifies.
    Source: TVM's InitVectorization, whose default is 16 elements.  ``always_innermost`` takes the
    innermost loop whatever its extent: our generator splits any extent into the target's vectors.
    """

    max_elements: int = 16
    always_innermost: bool = False

    def declare(self, space: Space, target: Target) -> Space:
        state, constraints = space.state, list(space.constraints)
        for stage in space.state.stages:
            if is_input(state, stage) or stage.inlined:
                continue
            suffix = _vector_suffix(state, stage)
            if suffix:
                first = 1 if self.always_innermost else 0
                counts = OneOf(tuple(range(first, len(suffix) + 1)))
                count = counts if len(counts.values) > 1 else first
                state = state.vectorize(stage.name, suffix, count=count)
                constraints += _apart(state.stage(stage.name))
        return Space(state, tuple(constraints))

    def sample(self, space: Space, table: Table, target: Target, rng: np.random.Generator) -> Table:
        for stage in space.state.stages:
            column = column_of(stage.vectorize.count) if stage.vectorize else None
            if stage.vectorize is not None and column is not None:
                inner = tuple(reversed(stage.vectorize.iters))
                extents = loop_extents(space, table, stage.name, inner)
                fits = (np.cumprod(extents, axis=1) <= self.max_elements).sum(axis=1)
                fits = np.minimum(fits, len(stage.iters) - _parallel_loops(space, table, stage))
                drawn = 1 + rng.integers(0, np.maximum(fits - 1, 1))
                least = 1 if self.always_innermost else 0
                counts = np.where(fits > 1, drawn, np.maximum(fits, least))
                table = set_column(space, table, column, counts)
        return table


def _parallel_loops(space: Space, table: Table, stage: Stage) -> Ints:
    """The number of leading parallel loops of the stage, in each row."""
    count = (0,) if stage.parallel is None else stage.parallel.count
    [size] = space.compute(("parallel", stage.name), lambda bounds: [bounds.number(count)], table)
    return as_array(size, len(table))


def _apart(stage: Stage) -> list[Constraint]:
    """The constraint that no loop is both parallel and a vector; empty if that cannot happen."""
    parallel, vector = stage.parallel, stage.vectorize
    if parallel is None or vector is None or not set(parallel.iters) & set(vector.iters):
        return []
    counts, loops = (parallel.count, vector.count), len(stage.iters)

    def holds(bounds: Bounds) -> Size:
        marked = [bounds.number(count) for count in counts]
        return at_most(marked[0] + marked[1], loops)

    return [Constraint(f"{stage.name}.parallel_or_vector", holds)]


def _vector_suffix(state: State, stage: Stage) -> tuple[Iter, ...]:
    """The innermost space loops, outermost first; at most one for a tiled stage (TVM)."""
    hosts = state.host_iters(stage)
    found: list[Iter] = []
    for it in reversed(stage.iters):
        plain = it.kind is AxisKind.SPACE and it.annotation is ForKind.SERIAL
        if not plain or it.name in hosts or (found and is_tiled(stage)):
            break
        found.append(it)
    return tuple(reversed(found))
