"""Build workers that put a program with a fault in the place of a correct one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.measure.result import MeasureResult
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from benchmarks.cuda.smoke.machine import Fault, SmokeGpu, blocked

__all__ = ["PlantingBuilder", "planted_state"]

_THREADS = 96
"""Threads of a block of the program that is replaced."""


@dataclass(frozen=True)
class PlantingBuilder:
    """Builds in this process; one program (:func:`planted_state`) has *fault* instead."""

    gpu: SmokeGpu
    fault: Fault

    def build(self, task: Task, states: Sequence[State]) -> list[Built | MeasureResult]:
        return [self._built(task, state) for state in states]

    def _built(self, task: Task, state: State) -> Built:
        if task.target.backend != self.gpu.target.backend:
            return build_lowered(lower(state), task.target, "reference")
        is_planted = state.stage("C").iters[-1].extent == _THREADS
        return self.gpu.planted(self.fault) if is_planted else self.gpu.build(state)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def planted_state() -> State:
    """The program whose code has the fault."""
    return blocked(_THREADS)
