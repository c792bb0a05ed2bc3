"""How datasets can be split; the command line offers them, so nothing is loaded here."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Split"]


class Split(StrEnum):
    """What the programs held out have in common; each is harder than the one before it."""

    WITHIN_TASK = "within_task"
    """Random programs of every task: the model has learned from others of the same task."""
    BY_TASK = "by_task"
    """All programs of random definitions, under all conditions."""
    BY_TARGET = "by_target"
    """All programs of one target and number of threads, the one with the fewest programs."""
