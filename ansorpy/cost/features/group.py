"""The definition of a feature group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ansorpy.arrays import Floats
from ansorpy.cost.nest_view import LeafView

__all__ = ["FeatureGroup"]


@dataclass(frozen=True)
class FeatureGroup:
    """Named values of one statement, computed for all settings at once.

    ``compute`` returns one array ``[n]`` for each of ``names``, or a number if it is equal for all
    settings.  Values are not negative and are stored as ``log2(1 + x)``, which leaves 0 and 1 as
    they are.
    """

    name: str
    meaning: str
    names: tuple[str, ...]
    compute: Callable[[LeafView], Sequence[Floats | float]]
