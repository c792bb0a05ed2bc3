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
        "flextensor": "ansorpy.search.strategies.flextensor:FlexTensor",
        "chameleon": "ansorpy.search.strategies.chameleon:Chameleon",
        "ga": "ansorpy.search.strategies.ga:Genetic",
        "rl": "ansorpy.search.strategies.rl:ReinforcedSearch",
        "harl": "ansorpy.search.strategies.harl:Harl",
        "sampling": "ansorpy.search.strategies.sampling:Sampling",
        "random": "ansorpy.search.strategies.random:RandomSearch",
        "heron": "ansorpy.search.strategies.heron:Heron",
        "beam": "ansorpy.search.strategies.beam:Beam",
        "value_greedy": "ansorpy.search.strategies.beam:value_greedy",
        "protuner": "ansorpy.search.strategies.protuner:ProTuner",
        "grid": "ansorpy.search.strategies.grid:Grid",
        "bayes_opt": "ansorpy.search.strategies.bayes_opt:BayesOpt",
        "tuna": "ansorpy.search.strategies.tuna:Tuna",
        "one_shot": "ansorpy.search.strategies.one_shot:OneShot",
    },
    Strategy,
)
