"""Lowering of a resolved state to two loop programs: one per call, one at bind time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansorpy.config import VERIFY
from ansorpy.errors import ScheduleError
from ansorpy.ir.loops import Alloc, Buffer, Param, Program, Role, Scope, Seq, Stmt
from ansorpy.ir.routines.base import Routine
from ansorpy.ir.tensor import PlaceholderOp, Tensor
from ansorpy.ir.verify import verify
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.lowering.gpu.program import is_launched, launched, without_vthreads
from ansorpy.schedule.lowering.packing import Packing, pack_stmt
from ansorpy.schedule.lowering.stage_nest import StageLowering

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["Lowered", "lower"]


@dataclass(frozen=True)
class Lowered:
    """The loop programs of a state; ``run`` takes inputs, constants and outputs, in this order.

    Its constants are unchanged placeholders, or outputs of ``bind`` with the same name.
    ``bind`` takes the constant placeholders that it reads and computes everything that depends only
    on them.
    """

    run: Program
    bind: Program | None


def lower(state: State, name: str = "kernel") -> Lowered:
    """The loop programs of *state*, every decision of which must be bound.

    Raises:
        ScheduleError: A decision is open, or the schedule is not legal.
    """
    if state.is_open:
        raise ScheduleError(
            f"decisions are still open: {', '.join(d.name for d in state.decisions)}",
            program=state.text(), hint="resolve them with a row of the space, or pass numbers",
        )  # fmt: skip
    routine = state.definition.routine
    lowered = (
        _Lowering(state).programs(name) if routine is None else _of_routine(state, routine, name)
    )
    if VERIFY.get():
        for program in (lowered.run, lowered.bind):
            if program is not None:
                verify(program)
    return lowered


def _of_routine(state: State, routine: Routine, name: str) -> Lowered:
    """The program of a definition that *routine* computes, which no step can change."""
    dag = state.definition
    if state.history:
        raise ScheduleError(
            f"{routine.name} is an algorithm: its loops are not scheduled",
            step=state.history[0].call(), hint="leave out all steps",
        )  # fmt: skip
    roles = {op: Role.CONSTANT if op.constant else Role.INPUT for op in dag.args}
    buffers = {
        op: Buffer(op.name, op.shape, op.dtype, Scope.GLOBAL, dag.strides.get(op.name))
        for op in (*dag.args, *dag.outputs)
    }
    (output,) = dag.outputs
    body = routine.body([buffers[op] for op in dag.reads(output)], buffers[output])
    inputs = sorted(dag.args, key=lambda op: op.constant)
    params = [
        *(Param(buffers[op], roles[op]) for op in inputs),
        Param(buffers[output], Role.OUTPUT),
    ]
    return Lowered(Program(name, tuple(params), body), None)


class _Lowering:
    """Buffers of one state, and the statements of its root stages."""

    def __init__(self, state: State):
        self.state = state
        self.bounds = Bounds(state, {})
        for name in self.bounds.inlined_dag.ops:  # raises if a compute location is not legal
            self.bounds.extents(name)
        self.bound = state.constant_stages
        self.stages = StageLowering(self.bounds)
        for op in state.current_dag.ops:
            stage = state.stage(op.name)
            if stage.inlined or stage.attach is not None:
                continue
            is_global = (
                stage.is_placeholder or state.current_dag.is_output(op) or op.name in self.bound
            )
            scope = Scope.GLOBAL if is_global else Scope.WORKSPACE
            apart = state.current_dag.strides.get(op.name)
            self.stages.buffers[op.name] = Buffer(op.name, op.shape, op.dtype, scope, apart)

    def programs(self, name: str) -> Lowered:
        run = self._statements(constant=False)
        packings = tuple(self.stages.packings.values())
        read = self._constants_read(packings)
        params = [
            *(
                Param(self._buffer(op), Role.INPUT)
                for op in self.state.current_dag.args
                if not op.constant
            ),
            *(Param(buffer, Role.CONSTANT) for buffer in read),
            *(Param(self._buffer(op), Role.OUTPUT) for op in self.state.current_dag.outputs),
        ]
        return Lowered(
            Program(name, tuple(params), run), self._bind_program(f"{name}_bind", packings, read)
        )

    def _buffer(self, op: Tensor) -> Buffer:
        return self.stages.buffers[op.name]

    def _constants_read(self, packings: Iterable[Packing]) -> list[Buffer]:
        """The constant buffers the run program reads, in definition order, packed ones last."""
        direct = []
        reads = self.bounds.inlined_dag.reads
        packed = {(p.stage, p.tensor) for p in packings}
        for op in self.state.current_dag.ops:
            readers = [
                name
                for name, tensors in reads.items()
                if name not in self.bound
                and any(r.tensor.name == op.name for r in tensors)
                and (name, op.name) not in packed
            ]
            if op.name in self.bound and readers:
                direct.append(self._buffer(op))
        return [*direct, *(p.buffer for p in packings)]

    def _statements(self, *, constant: bool) -> Stmt:
        """The root stages in order; each intermediate is allocated around itself and the rest."""
        roots = [
            s
            for s in self.state.stages
            if not (s.is_placeholder or s.inlined or s.attach)
            and (s.name in self.bound) is constant
        ]
        stmt: Stmt | None = None
        done: list[tuple[Buffer, Stmt]] = [
            (self._buffer(stage.op), self.stages.statement(stage.name)) for stage in roots
        ]
        if any(is_launched(made) for _, made in done):
            done = [(buffer, without_vthreads(launched(made))) for buffer, made in done]
        for buffer, made in reversed(done):
            stmt = made if stmt is None else Seq((made, stmt))
            if buffer.scope is Scope.WORKSPACE:
                stmt = Alloc(buffer, stmt)
        return stmt if stmt is not None else Seq(())

    def _bind_program(
        self, name: str, packings: tuple[Packing, ...], read: list[Buffer]
    ) -> Program | None:
        made = self._statements(constant=True)
        given = {op.name for op in self.state.current_dag.args if op.constant}
        outputs = [buffer for buffer in read if buffer.name not in given]
        if not outputs:
            return None
        body = Seq((made, *(pack_stmt(p) for p in packings)))
        used = self._bind_inputs(packings)
        kept = {buffer.name for buffer in outputs}
        internal = [
            self._buffer(stage.op)
            for stage in self.state.stages
            if stage.name in self.bound and not stage.is_placeholder
            and not stage.inlined and stage.attach is None and stage.name not in kept
        ]  # fmt: skip
        params = [
            *(Param(self._buffer(op), Role.INPUT) for op in used),
            *(Param(buffer, Role.OUTPUT) for buffer in (*outputs, *internal)),
        ]
        return Program(name, tuple(params), body)

    def _bind_inputs(self, packings: tuple[Packing, ...]) -> list[PlaceholderOp]:
        wanted = {p.tensor for p in packings}
        for name, reads in self.bounds.inlined_dag.reads.items():
            if name in self.bound:
                wanted |= {read.tensor.name for read in reads}
        return [op for op in self.state.current_dag.args if op.constant and op.name in wanted]
