"""Selectors, one per file; to add one, add a line to the table."""

from __future__ import annotations

from ansorpy.registry import Registry
from ansorpy.search.selector import Selector

__all__ = ["SELECTORS"]

SELECTORS: Registry[Selector] = Registry(
    "selector",
    {
        "epsilon_greedy": "ansorpy.search.selectors.epsilon_greedy:EpsilonGreedy",
        "diversity": "ansorpy.search.selectors.diversity:Diversity",
        "submodular": "ansorpy.search.selectors.submodular:Submodular",
        "kmeans": "ansorpy.search.selectors.kmeans:KMeans",
        "ei": "ansorpy.search.selectors.expected_improvement:ExpectedImprovement",
        "top_k": "ansorpy.search.selectors.top_k:TopK",
    },
    Selector,
)
