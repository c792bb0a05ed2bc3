"""Small parts of a search, for tests of what happens around one: the same code in less time."""

from __future__ import annotations

from functools import partial

from ansorpy.cost.boosted import BoostedOptions, BoostedTrees
from ansorpy.search.strategies.evolution import Evolution

__all__ = ["EVOLUTION", "TREES"]

EVOLUTION = partial(Evolution, structures=4, scouts=4, population=128, generations=2)
TREES = partial(BoostedTrees, BoostedOptions(8))
