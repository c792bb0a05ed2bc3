"""A runner whose machine is a formula, so that searches are compared without noise or hardware."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ansorpy.cost.analytic.cpu.machine import MachineModel
from ansorpy.cost.analytic.cpu.model import CpuModel
from ansorpy.cost.nest_view import view_nest
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run.interfaces import Observer
from ansorpy.measure.trial_end import TrialEnd
from ansorpy.schedule.state import History, State
from ansorpy.schedule.tables.nest import build_nest

ODD_MACHINE = MachineModel(
    vector_registers=12, l1_bytes=8 * 1024, l2_bandwidth=4.0, l3_bandwidth=3.0, fma_latency=9.0
)
"""Unlike any target: the analytic model of the target is wrong about it."""


_seconds: dict[tuple[Task, ComputeDAG, History], float] = {}


def true_seconds(task: Task, state: State) -> float:
    """Seconds on :data:`ODD_MACHINE`, computed once for each program of the process."""
    key = task, state.definition, state.history
    if key not in _seconds:
        [_seconds[key]] = CpuModel(ODD_MACHINE).seconds(task, view_nest(build_nest(state, {}), 1))
    return float(_seconds[key])


@dataclass
class FormulaRunner:
    """Answers with :func:`true_seconds`, times lognormal noise; ``fails`` plants failures."""

    noise: float = 0.0
    fails: Callable[[State, int], MeasureResult | None] = lambda state, number: None
    seed: int = 0
    batches: list[int] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)

    def measure(
        self,
        task: Task,
        candidates: Sequence[State],
        *,
        incumbent_s: float | None,
        observer: Observer | None = None,
    ) -> list[MeasureResult]:
        self.batches.append(len(candidates))
        results = []
        for state in candidates:
            known = observer.started(state) if observer else None
            result = known or self.answer(task, state)
            if observer and not known:
                observer.ended(TrialEnd(state, result))
            results.append(result)
        return results

    def retime(self, task: Task, candidates: Sequence[State]) -> list[MeasureResult] | None:
        return [MeasureResult(TrialKind.OK, (true_seconds(task, s),)) for s in candidates]

    def built(self, object_digest: str) -> Built | None:
        return None  # there is no code

    def answer(self, task: Task, state: State) -> MeasureResult:
        self.seen.append(str(state.history))
        failed = self.fails(state, len(self.seen))
        time_s = true_seconds(task, state) * float(np.exp(self.noise * self._rng.normal()))
        return failed or MeasureResult(TrialKind.OK, (time_s,))
