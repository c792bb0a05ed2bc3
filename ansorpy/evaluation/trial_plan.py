"""Table of the trials that a run plans to make."""

from __future__ import annotations

from ansorpy.evaluation.tables import Table
from ansorpy.tasks.trial_plan import TrialPlan

__all__ = ["plan_table"]


def plan_table(plan: TrialPlan) -> Table:
    """One row per task in plan order.

    ``least us`` is the task's roofline, ``alike`` its class, ``best us`` the best time of earlier
    runs, and ``before`` the number of their trials.
    """
    heading = (
        "#", "task", "calls", "alike", "GFLOP", "least us", "best us", "share", "before", "trials",
    )  # fmt: skip
    rows = tuple(
        (
            str(number), p.task.name, f"{p.weight:g}", str(p.alike), f"{p.task.flops * 1e-9:.3f}",
            f"{p.least_s * 1e6:.1f}",
            "" if p.before.best_s is None else f"{p.before.best_s * 1e6:.1f}",
            f"{p.share:.0%}", str(p.before.trials), f"~{p.trials}",
        )
        for number, p in enumerate(plan.tasks)
    )  # fmt: skip
    calls = sum(p.weight for p in plan.tasks)
    title = f"plan: about {plan.trials} trials in {plan.seconds:.0f} s"
    before = sum(p.before.trials for p in plan.tasks)
    last = ("", "all", f"{calls:g}", "", "", "", "", "", str(before), f"~{plan.trials}")
    return Table(title, heading, (*rows, last), numeric=frozenset(heading) - {"task"})
