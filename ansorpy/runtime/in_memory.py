"""Load a plan into this process and pack its constants."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ansorpy.runtime.backends import TimedCalls, TracedCalls, runtime_of
from ansorpy.runtime.constants import growing, make_pool, settled
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.model import Runs

__all__ = ["InMemory", "load_plan"]


@dataclass(frozen=True)
class InMemory:
    """A loaded plan: ``pool`` holds the packed constants.

    ``plan`` refers to them, and keeps an original only where it is smaller, for libraries.
    """

    executable: Runs
    plan: ExecutionPlan
    pool: NDArray[np.uint8]

    def timed(self) -> TimedCalls:
        """Load the same code and constants again, with timestamps after each call."""
        return runtime_of(self.plan.target).timed(_packed(self.plan), self.pool)

    def traced(self) -> TracedCalls:
        """Load the same code and constants again, so that runs record what each thread does.

        Raises:
            UsageError: The code runs on a GPU.
        """
        return runtime_of(self.plan.target).traced(_packed(self.plan), self.pool)


def load_plan(plan: ExecutionPlan, name: str) -> InMemory:
    """Load *plan* and bind its constants.

    Raises:
        MissingDependency: This machine cannot run the plan's target.
    """
    runtime = runtime_of(plan.target)
    if not plan.target.runs_on_host():
        raise runtime.refusal(plan.target, name)
    pool = make_pool(plan, name)
    kept = settled(plan, pool, growing(plan) if runtime.packs_at_init else ())
    return InMemory(runtime.load(_packed(kept), pool, name), kept, pool)


def _packed(plan: ExecutionPlan) -> ExecutionPlan:
    """*plan* without the code that packs its constants."""
    return replace(plan, packs=())
