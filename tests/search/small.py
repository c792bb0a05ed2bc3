"""Small parts of a search, for tests of what happens around one: the same code in less time."""

from __future__ import annotations

from functools import partial

from ansorpy.cost.boosted import BoostedOptions, BoostedTrees
from ansorpy.search.strategies.evolution import Evolution
from ansorpy.search.strategies.random import RandomSearch
from ansorpy.tasks.predict import PredictOptions

__all__ = ["EVOLUTION", "PREDICTION", "SAMPLING", "TREES"]

EVOLUTION = partial(Evolution, sketches=2, scouts=3, population=64, generations=1)
SAMPLING = partial(RandomSearch, sketches=1, population=16)
PREDICTION = partial(PredictOptions, sketches=3, population=64, generations=1)
TREES = partial(BoostedTrees, BoostedOptions(8))
