"""Opening how many inner loops run as vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import ForKind
from ansorpy.rules.annotation.extents import column_of, loop_extents, set_column
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.relations import host_iters, is_input, is_tiled
from ansorpy.schedule.decisions import Choices
from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.stage import Iter, Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["AnnotateVectorize"]


@dataclass(frozen=True)
class AnnotateVectorize(AnnotationRule):
    """Open how many of the innermost space loops of each stage become one vector loop.

    A new row may take loops while their product stays within ``max_elements``; of several it
    takes a random number, never all, and of a tiled stage only the innermost.
    Source: TVM's InitVectorization; 16 elements is its default.  ``always_innermost`` takes the
    innermost loop whatever its extent: our generator cuts any extent into the target's vectors.
    """

    max_elements: int = 16
    always_innermost: bool = False

    def declare(self, space: Space, target: Target) -> Space:
        state = space.state
        for stage in state.stages:
            if is_input(state, stage) or stage.inlined:
                continue
            suffix = _vector_suffix(state, stage)
            if suffix:
                first = 1 if self.always_innermost else 0
                counts = Choices(tuple(range(first, len(suffix) + 1)))
                count = counts if len(counts.values) > 1 else first
                state = state.vectorize(stage.name, suffix, count=count)
        return Space(state, space.constraints)

    def sample(
        self, space: Space, table: Table, target: Target, rng: np.random.Generator
    ) -> Table:
        for stage in space.state.stages:
            column = column_of(stage.vectorize.count) if stage.vectorize else None
            if stage.vectorize is not None and column is not None:
                inner = tuple(reversed(stage.vectorize.iters))
                extents = loop_extents(space, table, stage.name, inner)
                fits = (np.cumprod(extents, axis=1) <= self.max_elements).sum(axis=1)
                drawn = 1 + rng.integers(0, np.maximum(fits - 1, 1))
                least = 1 if self.always_innermost else 0
                counts = np.where(fits > 1, drawn, np.maximum(fits, least))
                table = set_column(space, table, column, counts)
        return table


def _vector_suffix(state: State, stage: Stage) -> tuple[Iter, ...]:
    """Innermost space loops, outermost first; one for a tiled stage (TVM's heuristic)."""
    hosts = host_iters(state, stage)
    found: list[Iter] = []
    for it in reversed(stage.iters):
        plain = it.kind is AxisKind.SPACE and it.annotation is ForKind.SERIAL
        if not plain or it.name in hosts or (found and is_tiled(stage)):
            break
        found.append(it)
    return tuple(reversed(found))
