"""Search strategies, one per file; to add one, add a line to the table."""

from __future__ import annotations

from ansorpy.registry import Registry
from ansorpy.search.strategy import Strategy

__all__ = ["STRATEGIES"]

STRATEGIES: Registry[Strategy] = Registry(
    "strategy",
    {
        "evolution": "ansorpy.search.strategies.evolution:Evolution",
        "evolution_droplet": "ansorpy.search.strategies.droplet:evolution_droplet",
        "droplet": "ansorpy.search.strategies.droplet:random_droplet",
        "annealing": "ansorpy.search.strategies.annealing:Annealing",
        "sampling": "ansorpy.search.strategies.sampling:Sampling",
        "random": "ansorpy.search.strategies.random:RandomSearch",
        "grid": "ansorpy.search.strategies.grid:Grid",
        "bayes_opt": "ansorpy.search.strategies.bayes_opt:BayesOpt",
        "tuna": "ansorpy.search.strategies.tuna:Tuna",
        "one_shot": "ansorpy.search.strategies.one_shot:OneShot",
    },
)
