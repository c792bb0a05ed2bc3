"""Task schedulers, one file each; a new one is one line in the table."""

from __future__ import annotations

from ansorpy.registry import Registry
from ansorpy.tasks.scheduler import TaskScheduler

__all__ = ["SCHEDULERS"]

SCHEDULERS: Registry[TaskScheduler] = Registry(
    "task scheduler",
    {
        "gradient": "ansorpy.tasks.schedulers.gradient:Gradient",
        "round_robin": "ansorpy.tasks.schedulers.round_robin:RoundRobin",
        "dynatune": "ansorpy.tasks.schedulers.dynatune:DynaTune",
        "family": "ansorpy.tasks.schedulers.family:Family",
        "harl": "ansorpy.tasks.schedulers.harl:Harl",
    },
    TaskScheduler,
)
