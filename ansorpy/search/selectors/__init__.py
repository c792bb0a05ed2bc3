"""Selectors, one file each; a new one is one line in the table."""

from __future__ import annotations

from ansorpy.registry import Registry
from ansorpy.search.selector import Selector

__all__ = ["SELECTORS"]

SELECTORS: Registry[Selector] = Registry(
    "selector",
    {
        "epsilon_greedy": "ansorpy.search.selectors.epsilon_greedy:EpsilonGreedy",
        "diversity": "ansorpy.search.selectors.diversity:Diversity",
        "top_k": "ansorpy.search.selectors.top_k:TopK",
    },
)
