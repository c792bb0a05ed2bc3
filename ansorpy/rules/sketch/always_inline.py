"""The rule that substitutes simple stages into their readers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.ir.analysis.access import reads
from ansorpy.ir.expr import Axis, Const, Function, Load, walk
from ansorpy.ir.loops import Scope
from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.matching.branches import formulas
from ansorpy.rules.matching.relations import (
    consumers,
    has_reduce_iters,
    is_input,
    is_operand_copy,
    is_tiled,
    widens,
)
from ansorpy.rules.matching.rowwise import is_costly_broadcast, is_evaluated_once
from ansorpy.rules.predicates import (
    is_repeated_in_tiles,
    is_strictly_inlineable,
    reads_in_order,
)
from ansorpy.rules.sketch.add_operand_copy import moving_dimensions
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["AlwaysInline", "inline_verdict"]


@dataclass(frozen=True)
class AlwaysInline(SketchRule):
    """Inline a stage that costs nothing to recompute.

    With ``strict`` off, as on GPUs, any stage without a reduction is inlined.

    Paper: OSDI'20 §4.1, Table 1 rule 2.  ``expensive``: TVM's list of calls not worth repeating.
    Differs: with ``evaluated_once``, a branch or an expensive call is inlined too if that repeats
    nothing (a sigmoid after a convolution).  A square root or quotient per channel is computed
    once, not at every element that uses it, and so is arithmetic on inputs that a product's tiles
    re-read; elements of narrow types are converted where they are read once.  A copy of whole rows
    of an input is inlined if the product's vector loop does not run along it: the product only
    broadcasts its elements.  A stage that loads more than ``most_loads`` elements for each of its
    own (a Winograd transform) is not inlined into a copy that fills shared tiles: each block that
    reads an element would recompute it.  A transform is not inlined into another either if that
    would then select among more than ``most_formulas`` formulas; a convolution over three axes has
    216.
    """

    expensive: frozenset[Function] = frozenset({Function.EXP})
    strict: bool = True
    evaluated_once: bool = False
    most_loads: int | None = None
    most_formulas: int | None = None

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        stage = state.stage(stage_id)
        if self.evaluated_once and _is_broadcast_copy(state, stage):
            return Verdict.apply_and_skip_rest("it copies rows whose elements a product broadcasts")
        if self.evaluated_once and widens(state, stage) and is_evaluated_once(state, stage):
            return Verdict.apply_and_skip_rest("it converts elements that take less memory")
        if self.evaluated_once and is_repeated_in_tiles(state, stage):
            return Verdict.skip("a product would repeat its arithmetic at every read")
        plain = not is_input(state, stage) and not has_reduce_iters(stage)
        plain = plain and reads_in_order(stage)
        if self.evaluated_once and plain and is_evaluated_once(state, stage):
            return Verdict.apply_and_skip_rest("its only reader uses each element once")
        if self.evaluated_once and plain and is_costly_broadcast(state, stage):
            return Verdict.skip("it is costly, and many elements read it")
        if self.most_loads is not None and _fills_tiles(state, stage, self.most_loads):
            return Verdict.skip("each block that reads an element would recompute it")
        if self.most_formulas is not None and _formulas_with(state, stage) > self.most_formulas:
            return Verdict.skip("its reader would select among too many formulas")
        return inline_verdict(state, stage_id, self.expensive if self.strict else None)

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        yield state.compute_inline(stage_id), stage_id - 1


def inline_verdict(
    state: State, stage_id: int, expensive: frozenset[Function] | None = None
) -> Verdict:
    """Whether the stage would be inlined, and why.

    With *expensive*, only a strictly inlineable stage is inlined, and these calls are not repeated.
    """
    stage = state.stage(stage_id)
    if is_input(state, stage):
        return Verdict.skip("an input: there is nothing to inline")
    if state.current_dag.is_output(stage.op):
        return Verdict.skip("an output must be stored")
    if has_reduce_iters(stage):
        return Verdict.skip("a reduction would be repeated at every read")
    if expensive is None:
        return Verdict.apply_and_skip_rest("no reduction: recomputing beats a trip to memory")
    if is_strictly_inlineable(state, stage, expensive):
        return Verdict.apply_and_skip_rest("strictly inlineable: reads in order, cheap, no branch")
    return Verdict.skip("a branch, an expensive call, or reads out of axis order")


def _fills_tiles(state: State, stage: Stage, most_loads: int) -> bool:
    """Whether shared tiles copy *stage* and its body has more than *most_loads* loads."""
    if is_input(state, stage) or has_reduce_iters(stage):
        return False
    loads = sum(isinstance(e, Load) for e in walk(stage.compute.body))
    return loads > most_loads and any(
        reader.scope is Scope.SHARED for reader in consumers(state, stage)
    )


def _formulas_with(state: State, stage: Stage) -> int:
    """Number of formulas among which a reader selects once *stage* is inlined; 1 for no select."""
    if is_input(state, stage) or stage.compute.reduce_axes:
        return 1
    own = formulas(stage.compute)
    ops = state.inlined_dag.ops
    readers = [formulas(ops[reader.name]) for reader in consumers(state, stage)]
    return own * max(readers, default=1) if own > 1 else 1


def _is_broadcast_copy(state: State, stage: Stage) -> bool:
    """Whether *stage* copies whole rows of an input that one tiled reduction reads as scalars."""
    readers = consumers(state, stage)
    if is_input(state, stage) or not is_operand_copy(stage) or len(readers) != 1:
        return False
    (reader,) = readers
    is_tiled_sum = is_tiled(reader) and bool(reader.compute.reduce_axes)
    if not is_tiled_sum or state.current_dag.is_output(stage.op):
        return False
    found = reads(state.inlined_dag.ops[reader.name], stage.op)
    return _keeps_rows(stage) and all(moving_dimensions(reader, a) == () for a in found)


def _keeps_rows(stage: Stage) -> bool:
    """Whether each index of the input is one axis or a constant, and the last is the last axis.

    A single element is not a row.
    """
    body = stage.compute.body
    assert isinstance(body, Load)
    used = [index for index in body.indices if not isinstance(index, Const)]
    plain = all(isinstance(index, Axis) for index in used) and len(used) == len(set(used))
    return plain and bool(used) and body.indices[-1] is stage.compute.axes[-1]
