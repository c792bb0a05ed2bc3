"""Check a proved program in this process, without a reference and without timing it.

Instead of all outputs of a reference, which would have to be built first, the interpreter checks
sampled points.  The program runs on guarded buffers, as those of a search do, but a crash ends this
process: whoever calls this has a proof that the program accesses memory as it should.
"""

from __future__ import annotations

import math

from ansorpy.errors import AnsorpyError
from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.check.compare import extra_error
from ansorpy.measure.devices import devices_of
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run.handlers import RunSession
from ansorpy.measure.workers.messages import OpenRequest
from ansorpy.schedule.state import State

__all__ = ["checked", "points_of"]

_MOST_POINTS = 4096
_LEAST_POINTS = 128
_TERMS = 1 << 20
"""Terms of sums that the interpreter computes for one output: about 10 ms."""


def checked(task: Task, state: State, built: Built, seed: int) -> MeasureResult:
    """The result of running *built*, the code of *state*, once: CHECKED if it is correct."""
    session = RunSession(lambda *_: devices_of(task.target).open_task(task, seed))
    options = OpenRequest(
        seed=seed,
        threads=task.threads,
        reuse_distance_bytes=task.reuse_distance_bytes,
        check_points=points_of(task),
    )
    try:
        session.begin(task.dag, options)
        found = session.check_alone(built, extra_error(task.dag, state.definition))
    except AnsorpyError as error:
        return MeasureResult(TrialKind.RUN_ERROR, reason=str(error))
    kind = TrialKind.CHECKED if found.ok else TrialKind.WRONG_RESULT
    return MeasureResult(
        kind, reason=found.reason, max_error=found.error, object_digest=built.digest,
        build_s=built.build_s,
    )  # fmt: skip


def points_of(task: Task) -> int:
    """How many points of each output of *task* to check: fewer of long sums."""
    terms = sum(math.prod(axis.extent for axis in op.reduce_axes) for op in task.dag.computes)
    return min(_MOST_POINTS, max(_LEAST_POINTS, _TERMS // max(1, terms)))
