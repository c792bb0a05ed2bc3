"""Time limits for running one candidate, used by the worker's client and by a fleet's driver."""

from __future__ import annotations

from ansorpy.ir.task import Task

__all__ = ["STARVED", "run_limit_s"]

STARVED = 10
"""Factor by which a candidate may take longer while others occupy its pinned cores."""

_BYTES_PER_SECOND = 20e6
"""Lowest plausible rate of making inputs, packing constants and comparing outputs, in bytes/s."""
_CALLS_ALLOWED = 200


def run_limit_s(task: Task, run_timeout_s: float, incumbent_s: float | None) -> float:
    """Time limit of one candidate: generous for a possible winner, short for one that hangs."""
    if incumbent_s is None:
        fixed = run_timeout_s
    else:
        fixed = min(run_timeout_s, 1.0 + _CALLS_ALLOWED * incumbent_s)
    return fixed + sum(op.bytes for op in task.dag.ops) / _BYTES_PER_SECOND
