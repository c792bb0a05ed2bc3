"""Build, prove and check a predicted program in the process that predicted it.

The program is lowered once, and the driver, which may be another process, need not ask for any of
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ansorpy.errors import AnsorpyError
from ansorpy.ir.expr import Binary, BinaryOp, walk
from ansorpy.ir.loops import Program, expressions, walk_stmts
from ansorpy.ir.prove import Proof, Verdict
from ansorpy.ir.task import Task
from ansorpy.measure.build.builder import task_symbol
from ansorpy.measure.build.built import Built
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.measure.proofs.handlers import proof_of
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run.untimed import checked
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import State

__all__ = ["Made", "Making", "finish", "make"]

_QUOTIENTS = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD)


class Making(Enum):
    """What to make of a predicted program."""

    NOTHING = "nothing"
    CODE = "code"
    CHECKED_CODE = "checked_code"


@dataclass(frozen=True)
class Made:
    """What was made of a program.

    Args:
        built: Its code; None if it did not build.
        proof: None if it may take long (:func:`finish` takes that time).
        checked: The result of running it once; None unless it was proved and correct.
    """

    built: Built | None = None
    proof: Proof | None = None
    checked: MeasureResult | None = None


def make(task: Task, state: State, making: Making, seed: int) -> Made:
    """Make what *making* says of *state*, a program of *task*, with random inputs from *seed*.

    It is proved if that is certain to end soon.  isl has no time limit, and takes minutes for some
    differences of sets with quotients (:func:`ansorpy.ir.analysis.isl.decide`): programs that
    compute quotients are left to :func:`finish`, which can be stopped, as are those for many sizes
    to the prover.
    Only a proved program is run here; others are compared with a reference in full, as in searches.
    """
    if making is Making.NOTHING or state.definition.dims:
        return Made()
    try:
        lowered = lower(state)
        built = build_lowered(
            lowered, task.target, task_symbol(task), prefetch=task.reuse_distance_bytes > 0
        )
    except AnsorpyError:
        return Made()  # whoever asks for it again hears why
    programs = [program for program in (lowered.run, lowered.bind) if program is not None]
    if any(map(_has_quotients, programs)):
        return Made(built)
    return _finished(task, state, lowered, built, making, seed)


def finish(task: Task, state: State, built: Built, making: Making, seed: int) -> Made:
    """Prove *state*, whose code is *built*, however long that takes, and check it as *making* says.

    Whoever calls this must be able to stop the process.
    """
    return _finished(task, state, lower(state), built, making, seed)


def _finished(
    task: Task, state: State, lowered: Lowered, built: Built, making: Making, seed: int
) -> Made:
    proof = proof_of(lowered)
    if making is Making.CODE or task.at or proof.verdict is not Verdict.PROVED:
        return Made(built, proof)
    result = checked(task, state, built, seed)
    return Made(built, proof, result if result.kind is TrialKind.CHECKED else None)


def _has_quotients(program: Program) -> bool:
    return any(
        isinstance(part, Binary) and part.op in _QUOTIENTS
        for stmt in walk_stmts(program.body)
        for root in expressions(stmt)
        for part in walk(root)
    )
