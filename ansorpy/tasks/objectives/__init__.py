"""Objectives of a tuning run, one file each; a new one is one line in the table."""

from __future__ import annotations

from ansorpy.registry import Registry
from ansorpy.tasks.objective import Objective

__all__ = ["OBJECTIVES"]

OBJECTIVES: Registry[Objective] = Registry(
    "objective",
    {
        "weighted_sum": "ansorpy.tasks.objectives.weighted_sum:WeightedSum",
        "latency_bounds": "ansorpy.tasks.objectives.latency_bounds:LatencyBounds",
        "geomean": "ansorpy.tasks.objectives.geomean:GeometricMean",
        "early_stop": "ansorpy.tasks.objectives.early_stop:EarlyStop",
    },
    Objective,
)
