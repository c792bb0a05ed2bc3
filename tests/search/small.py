"""Small parts of a search, for tests of what happens around one: the same code in less time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pytest

from ansorpy.cost.boosted import BoostedOptions, BoostedTrees
from ansorpy.errors import MissingDependency
from ansorpy.search.strategies import STRATEGIES
from ansorpy.search.strategies.annealing import Annealing
from ansorpy.search.strategies.beam import Beam
from ansorpy.search.strategies.chameleon import Chameleon
from ansorpy.search.strategies.droplet import Droplet
from ansorpy.search.strategies.evolution import Evolution, PredictOptions
from ansorpy.search.strategies.harl import Harl
from ansorpy.search.strategies.heron import Heron
from ansorpy.search.strategies.one_shot import OneShot
from ansorpy.search.strategies.protuner import ProTuner
from ansorpy.search.strategies.random import RandomSearch
from ansorpy.search.strategies.rl import ReinforcedSearch
from ansorpy.search.strategies.sampling import Sampling
from ansorpy.search.strategies.sequence import Then
from ansorpy.search.strategies.tuna import Tuna
from ansorpy.search.strategy import Strategy

__all__ = [
    "DRAWING", "EVOLUTION", "PREDICTION", "RANKED_SAMPLING", "SAMPLING", "TREES", "small_strategy",
]  # fmt: skip

EVOLUTION = partial(Evolution, sketches=2, scouts=3, population=64, generations=1)
SAMPLING = partial(RandomSearch, sketches=1, population=16)
DRAWING = partial(RandomSearch, sketches=4, population=32)
RANKED_SAMPLING = partial(Sampling, sketches=4, population=64)
PREDICTION = partial(PredictOptions, sketches=3, population=64, generations=1)
TREES = partial(BoostedTrees, BoostedOptions(8))
ANNEALING = partial(Annealing, sketches=2, chains=32, steps=4)
SMALL: Mapping[str, Callable[[], Strategy]] = {
    "evolution": EVOLUTION,
    "evolution_droplet": lambda: Then(EVOLUTION(), 8, Droplet()),
    "annealing": ANNEALING,
    "one_shot": lambda: OneShot(search=ANNEALING()),
    "heron": partial(Heron, sketches=2, renewed=1, population=24, parents=8, generations=1),
    "beam": partial(Beam, width=2, rollouts=8),
    "protuner": partial(ProTuner, trees=2, explorations=4, rollouts=16),
    "tuna": partial(Tuna, sketches=2, population=16, steps=3),
    "chameleon": partial(Chameleon, sketches=2, chains=32, steps=4),
    "rl": partial(ReinforcedSearch, sketches=2, chains=32, steps=4),
    "harl": partial(Harl, sketches=1, chains=32, least=16, steps=4),
}


def small_strategy(name: str) -> Callable[[], Strategy]:
    """A factory of the strategy called *name*, of a small one where it would take a second.

    Skips the test where the strategy needs a package that is missing.
    """
    factory = SMALL.get(name) or STRATEGIES.factory(name)
    try:
        factory()
    except MissingDependency as error:
        pytest.skip(error.message)
    return factory
