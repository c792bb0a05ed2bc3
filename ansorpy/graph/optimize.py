"""The graph passes, in order."""

from __future__ import annotations

from collections.abc import Callable

from ansorpy.graph.ir import Graph
from ansorpy.graph.passes.channels_last import channels_last
from ansorpy.graph.passes.fold_scale import fold_scale
from ansorpy.graph.passes.fuse_attention import fuse_attention
from ansorpy.graph.passes.fuse_siblings import fuse_siblings
from ansorpy.graph.passes.join_norms import join_norms
from ansorpy.graph.passes.pool_first import pool_first
from ansorpy.graph.passes.simplify_moves import simplify_moves

__all__ = ["PASSES", "optimize"]

PASSES: tuple[Callable[[Graph], Graph], ...] = (
    simplify_moves,
    join_norms,
    pool_first,
    fold_scale,
    channels_last,
    simplify_moves,
    fuse_attention,
    fuse_siblings,
)
"""Norms are found before scales are folded into their parts; moves are simplified before the layout
pass, which knows shuffles, and again after it."""


def optimize(graph: Graph) -> Graph:
    """*graph* after all passes: scales folded, images channels last, no needless movement.

    Constants are folded and dead nodes dropped whenever a pass builds its result.
    """
    for run in PASSES:
        graph = run(graph)
    return graph
