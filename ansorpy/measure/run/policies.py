"""Measuring policies by name, which determine how long candidates are timed.

A policy is sent to the timing process as the numbers of a
:class:`~ansorpy.measure.run.timing.TimingPolicy`, so a custom one is that class with other numbers.
"""

from __future__ import annotations

from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.registry import Registry

__all__ = ["POLICIES", "fixed", "variance_adaptive"]

POLICIES: Registry[TimingPolicy] = Registry(
    "measuring policy",
    {
        "fixed": "ansorpy.measure.run.policies:fixed",
        "variance_adaptive": "ansorpy.measure.run.policies:variance_adaptive",
    },
    TimingPolicy,
)


def fixed() -> TimingPolicy:
    """Time every candidate for the same time: at least 18 ms and three samples."""
    return TimingPolicy()


def variance_adaptive() -> TimingPolicy:
    """Time until the mean is known to half a percent, at most 60 ms; time losers only roughly."""
    return TimingPolicy(spread=0.005, min_samples=5, total_s=0.06, max_samples=120)
