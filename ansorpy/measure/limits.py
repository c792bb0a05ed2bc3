"""How long running one candidate may take, for who runs it and for who waits for the answer."""

from __future__ import annotations

from ansorpy.ir.task import Task

__all__ = ["STARVED", "run_limit_s"]

STARVED = 10
"""How much longer a candidate may take while others hold the cores it is pinned to."""

_BYTES_PER_SECOND = 20e6
"""Slowest credible rate of making inputs, packing constants and comparing outputs."""
_CALLS_ALLOWED = 200


def run_limit_s(task: Task, run_timeout_s: float, incumbent_s: float | None) -> float:
    """Seconds for one candidate: generous for what may win, short for what hangs."""
    if incumbent_s is None:
        fixed = run_timeout_s
    else:
        fixed = min(run_timeout_s, 1.0 + _CALLS_ALLOWED * incumbent_s)
    return fixed + sum(op.bytes for op in task.dag.ops) / _BYTES_PER_SECOND
