"""Keep the innermost space tile of a reduction in vector registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.codegen.vectors import lanes_of
from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import ForKind
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.matching.relations import is_input, is_tiled
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.decisions import Decision
from ansorpy.schedule.space import Constraint, Space, Table
from ansorpy.schedule.stage import Iter, SplitRelation, Stage
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.size import Size, above, at_most, ceil_div, product
from ansorpy.target import Target

__all__ = ["RegisterTile"]


@dataclass(frozen=True)
class RegisterTile(AnnotationRule):
    """Unroll the space loops inside all reduce loops; restrict them to tiles that fit in registers.

    The innermost loop is left to AnnotateVectorize and must fill a vector if some divisor does;
    new rows are drawn accordingly.  Tiles that leave fewer than ``spare`` registers for operands
    are rejected.
    Differs: TVM leaves both to LLVM, with unrolling as a random choice.  Our generator promotes
    exactly this tile to registers, so unrolling a tile that fits never hurts; larger tiles spill.
    """

    spare: int = 4

    def declare(self, space: Space, target: Target) -> Space:
        state, constraints = space.state, list(space.constraints)
        for stage in space.state.stages:
            tile = () if is_input(state, stage) or stage.inlined else _inner_tile(state, stage)
            if not tile:
                continue
            for it in tile[:-1]:
                state = state.unroll(stage.name, it)
            constraints.append(self._fits(space.state, stage, tile, target))
            constraints += self._fills(space.state, stage, tile[-1], target)
        return Space(state, tuple(constraints))

    def sample(self, space: Space, table: Table, target: Target, rng: np.random.Generator) -> Table:
        table = table.copy()
        for stage in space.state.stages:
            owner = _owner_of_vector(space.state, stage)
            if owner is not None:
                decision, part = owner
                rows = decision.domain.rows
                full = rows[rows[:, part] >= _least(space.state, stage, decision, part, target)]
                drawn = full[rng.integers(len(full), size=len(table))]
                table[:, space.slices[decision.name]] = drawn
        return table

    def _fits(self, state: State, stage: Stage, tile: Sequence[Iter], target: Target) -> Constraint:
        lanes = lanes_of(state.inlined_dag.ops[stage.name], target)
        most = target.vector_registers - self.spare

        def holds(bounds: Bounds) -> Size:
            extents = bounds.extents(stage.name)
            rows = product(extents[it.name] for it in tile[:-1])
            return at_most(rows * ceil_div(extents[tile[-1].name], lanes), most)

        return Constraint(f"{stage.name}.registers", holds)

    def _fills(
        self, state: State, stage: Stage, innermost: Iter, target: Target
    ) -> list[Constraint]:
        owner = _owner(state, stage, innermost.name)
        if owner is None:
            return []
        decision, part = owner
        column, least = decision.columns[part], _least(state, stage, decision, part, target)

        def holds(bounds: Bounds) -> Size:
            return above(bounds.values[column], least - 1)

        return [Constraint(f"{stage.name}.lanes", holds)]


def _least(state: State, stage: Stage, decision: Decision, part: int, target: Target) -> int:
    """The smallest innermost factor allowed: a vector, or the largest factor if that is smaller."""
    lanes = lanes_of(state.inlined_dag.ops[stage.name], target)
    return min(lanes, int(decision.domain.rows[:, part].max()))


def _inner_tile(state: State, stage: Stage) -> tuple[Iter, ...]:
    """The plain space loops inside the last reduce loop of a tiled reduction."""
    inner = _inside_reduction(state, stage)
    return inner if all(it.annotation is ForKind.SERIAL for it in inner) else ()


def _inside_reduction(state: State, stage: Stage) -> tuple[Iter, ...]:
    reduce = [n for n, it in enumerate(stage.iters) if it.kind is AxisKind.REDUCE]
    if not reduce or not is_tiled(stage):
        return ()
    inner = stage.iters[reduce[-1] + 1 :]
    return () if state.host_iters(stage) & {it.name for it in inner} else inner


def _owner_of_vector(state: State, stage: Stage) -> tuple[Decision, int] | None:
    """The split decision of the vector loop in a declared register tile."""
    inner = () if stage.is_placeholder or stage.inlined else _inside_reduction(state, stage)
    unrolled = [it.annotation is ForKind.UNROLLED for it in inner]
    if not inner or not all(unrolled[:-1]) or unrolled[-1]:
        return None
    return _owner(state, stage, inner[-1].name)


def _owner(state: State, stage: Stage, name: str) -> tuple[Decision, int] | None:
    """The decision whose column is the extent of loop *name*, and the number of that column."""
    for relation in stage.relations:
        if isinstance(relation, SplitRelation) and name in relation.children[1:]:
            factor = relation.factors[relation.children.index(name) - 1]
            for decision in state.decisions:
                if len(factor) == 1 and factor[0] in decision.columns:
                    return decision, decision.columns.index(str(factor[0]))
    return None
