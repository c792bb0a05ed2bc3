"""Build and prove a predicted program in the process that predicted it.

The program is lowered once for both, and the driver, which may be another process, need not ask for
either.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.errors import AnsorpyError
from ansorpy.ir.expr import Binary, BinaryOp, walk
from ansorpy.ir.loops import Program, expressions, walk_stmts
from ansorpy.ir.prove import Proof
from ansorpy.ir.task import Task
from ansorpy.measure.build.builder import task_symbol
from ansorpy.measure.build.built import Built
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.measure.proofs.handlers import proof_of
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State

__all__ = ["Made", "make"]

_QUOTIENTS = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD)


@dataclass(frozen=True)
class Made:
    """Code of a program, None if it did not build; and its proof, None if that may take long."""

    built: Built | None = None
    proof: Proof | None = None


def make(task: Task, state: State) -> Made:
    """Build *state*, a program of *task*, and prove it if that is certain to end soon.

    isl has no time limit, and takes minutes for some differences of sets with quotients
    (:func:`ansorpy.ir.analysis.isl.decide`): programs that compute quotients are left to the
    prover, which can be stopped, as are those for many sizes.
    """
    if state.definition.dims:
        return Made()
    try:
        lowered = lower(state)
        built = build_lowered(
            lowered, task.target, task_symbol(task), prefetch=task.reuse_distance_bytes > 0
        )
    except AnsorpyError:
        return Made()  # whoever asks for it again hears why
    programs = [program for program in (lowered.run, lowered.bind) if program is not None]
    return Made(built, None if any(map(_has_quotients, programs)) else proof_of(lowered))


def _has_quotients(program: Program) -> bool:
    return any(
        isinstance(part, Binary) and part.op in _QUOTIENTS
        for stmt in walk_stmts(program.body)
        for root in expressions(stmt)
        for part in walk(root)
    )
