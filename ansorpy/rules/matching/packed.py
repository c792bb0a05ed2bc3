"""Recognise stages that keep results of several stages side by side, and who combines them."""

from __future__ import annotations

from ansorpy.ir.analysis.access import accesses
from ansorpy.ir.expr import Compare, CompareOp, Select
from ansorpy.ir.tensor import ComputeOp
from ansorpy.rules.matching.rowwise import streams, with_cheap_inlined
from ansorpy.schedule.state import State

__all__ = ["has_columns_of_its_own", "packed_parts", "with_cheap_joiners_inlined"]


def packed_parts(state: State) -> str | None:
    """The stage through which alone all earlier stages lead to the output; None if there is none.

    It has the results of several stages side by side along its last axis, for parts of a reduction
    that the stages after it complete.
    """
    dag = state.current_dag
    found = [op for op in dag.computes if has_columns_of_its_own(op) and not dag.is_output(op)]
    if len(found) != 1 or len(dag.outputs) != 1:
        return None
    (parts,) = found
    before = {*dag.leading_to(parts)} - {parts}
    after = [op for op in dag.computes if op not in before and op is not parts]
    if any(op in before for reader in after for op in dag.reads(reader)):
        return None
    streaming = all(streams(state, state.stage(op.name)) for op in after)
    return parts.name if streaming and dag.outputs[0] in after else None


def has_columns_of_its_own(op: ComputeOp) -> bool:
    """Whether the place along the last axis decides which of several stages *op* reads."""
    if not op.axes or op.reduce_axes or not isinstance(op.body, Select):
        return False
    cond = op.body.cond
    bounded = isinstance(cond, Compare) and cond.op is CompareOp.LT and cond.a is op.axes[-1]
    return bounded and len({access.tensor for access in accesses(op)}) > 1


def with_cheap_joiners_inlined(state: State, parts: str) -> tuple[State, list[str]]:
    """*state* with cheap stages after *parts* inlined, and the others but the last, last first."""
    dag = state.current_dag
    (last,) = dag.outputs
    before = dag.leading_to(state.stage(parts).op)
    return with_cheap_inlined(state, state.stage(last.name), before)
