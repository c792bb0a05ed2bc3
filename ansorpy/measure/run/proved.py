"""Measure proved programs in this process, without a reference.

A program that is proved to access memory as it should cannot harm the process that runs it, so it
needs no worker; and instead of all outputs of a reference, which would have to be built first,
the interpreter checks it, at sampled points.  Searches, whose candidates are not proved, use
:class:`~ansorpy.measure.run.runner.LocalRunner`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ansorpy.ir.task import Task
from ansorpy.ir.tensor import ComputeOp
from ansorpy.measure.build.built import Built
from ansorpy.measure.check.compare import extra_error
from ansorpy.measure.devices import devices_of
from ansorpy.measure.result import MeasureResult
from ansorpy.measure.run.client import measured_result
from ansorpy.measure.run.handlers import RunSession
from ansorpy.measure.run.interfaces import Observer
from ansorpy.measure.run.observing import observed
from ansorpy.measure.run.runner import LocalRunner
from ansorpy.measure.workers.locks import lock_cores
from ansorpy.measure.workers.messages import MeasureRequest, OpenRequest
from ansorpy.profiler import Activity, profiled
from ansorpy.schedule.state import State

__all__ = ["ProvedRunner", "points_of"]

_TERMS = 1 << 20
"""Terms of sums that the interpreter computes for one output: about 10 ms."""
_LEAST_POINTS = 128
_TOTAL_S = 0.006
"""Seconds of samples: a third of what a search takes, which compares programs that are alike."""


@dataclass(frozen=True)
class ProvedRunner:
    """A :class:`~ansorpy.measure.run.interfaces.Runner` of proved programs for this machine's CPU.

    Args:
        local: Builds the programs; its options hold.
    """

    local: LocalRunner

    def measure(
        self,
        task: Task,
        candidates: Sequence[State],
        *,
        incumbent_s: float | None,
        observer: Observer | None = None,
    ) -> list[MeasureResult]:
        """Build, check and time *candidates*, all of which are proved."""

        def one(state: State, built: Built) -> MeasureResult:
            return self._one(task, state, built, incumbent_s)

        return list(observed(candidates, self.local.build(task, candidates), observer, one))

    def _one(
        self, task: Task, state: State, built: Built, incumbent_s: float | None
    ) -> MeasureResult:  # fmt: skip
        given = self.local.options
        options = OpenRequest(
            seed=given.seed,
            threads=task.threads,
            reuse_distance_bytes=task.reuse_distance_bytes,
            check_points=points_of(task, given.check_points),
        )
        request = MeasureRequest(
            built={},
            stated_error=extra_error(task.dag, state.definition),
            incumbent_s=incumbent_s,
            policy=replace(given.policy, total_s=min(_TOTAL_S, given.policy.total_s)),
        )
        cores = self.local.cores(task.threads)
        with lock_cores(cores, given.lock_folder), profiled(Activity.RUN):
            session = RunSession(lambda *_: devices_of(task.target).open_task(task, given.seed))
            session.begin(task.dag, options)
            answer = session.measure_alone(built, request)
        result, _ = measured_result(answer)
        return replace(result, build_s=built.build_s, object_digest=built.digest)


def points_of(task: Task, most: int) -> int:
    """How many points of each output of *task* to check: *most*, or fewer of long sums."""
    terms = sum(
        math.prod(axis.extent for axis in op.reduce_axes)
        for op in task.dag.ops
        if isinstance(op, ComputeOp)
    )
    return min(most, max(_LEAST_POINTS, _TERMS // max(1, terms)))
