"""Re-laying constants in the order the tiles read them."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.relations import consumers, is_input, is_tiled
from ansorpy.schedule.space import Space
from ansorpy.schedule.stage import SplitRelation
from ansorpy.target import Target

__all__ = ["PackConstants"]


@dataclass(frozen=True)
class PackConstants(AnnotationRule):
    """Pack every constant that one tiled reduction alone reads; it costs nothing when run.

    Source: TVM's layout rewrite for pre-transformed weights.
    """

    def declare(self, space: Space, target: Target) -> Space:
        state = space.state
        for stage in state.stages:
            readers = consumers(state, stage) if is_input(state, stage) else ()
            if len(readers) != 1 or stage.op not in state.dag.constant_ops:
                continue
            (reader,) = readers
            tiled = any(isinstance(r, SplitRelation) for r in reader.relations)
            direct = stage.op in state.dag.reads(reader.op)
            if direct and tiled and is_tiled(reader) and reader.compute.reduce_axes:
                state = state.pack(reader.name, stage.name)
        return Space(state, space.constraints)
