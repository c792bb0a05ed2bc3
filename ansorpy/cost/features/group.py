"""What a group of features is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ansorpy.cost.view import Floats, LeafView

__all__ = ["FeatureGroup"]


@dataclass(frozen=True)
class FeatureGroup:
    """Named values of one statement, computed for all candidates at once.

    ``compute`` returns one array ``[n]`` for each of ``names``.  Values are stored as
    ``sign(x) * log2(1 + |x|)``, except those in ``flags``, which are stored as they are.
    """

    name: str
    meaning: str
    names: tuple[str, ...]
    compute: Callable[[LeafView], Sequence[Floats]]
    flags: frozenset[str] = frozenset()
