"""What a group of features is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ansorpy.cost.view import Floats, LeafView

__all__ = ["FeatureGroup"]


@dataclass(frozen=True)
class FeatureGroup:
    """Named values of one statement, computed for all candidates at once.

    ``compute`` returns for each of ``names`` one array ``[n]``, or the number that all settings
    have.  Values are not negative and stored as ``log2(1 + x)``; those in ``flags`` are 0 or 1,
    and stay so.
    """

    name: str
    meaning: str
    names: tuple[str, ...]
    compute: Callable[[LeafView], Sequence[Floats | float]]
    flags: frozenset[str] = frozenset()
