"""The graph passes, in order."""

from __future__ import annotations

from collections.abc import Callable

from ansorpy.graph.choices import Choices
from ansorpy.graph.ir import Graph
from ansorpy.graph.passes.channels_last import channels_last
from ansorpy.graph.passes.drop_taps import drop_taps
from ansorpy.graph.passes.fold_scale import fold_scale
from ansorpy.graph.passes.fuse_attention import fuse_attention
from ansorpy.graph.passes.fuse_siblings import fuse_siblings
from ansorpy.graph.passes.guard_softmax import guard_softmax
from ansorpy.graph.passes.join_norms import join_norms
from ansorpy.graph.passes.multiply_bytes import multiply_bytes
from ansorpy.graph.passes.pool_first import pool_first
from ansorpy.graph.passes.scale_behind import scale_behind
from ansorpy.graph.passes.simplify_moves import simplify_moves
from ansorpy.graph.passes.sink_reshapes import sink_reshapes
from ansorpy.graph.passes.split_batch import split_batch
from ansorpy.graph.passes.turn_norms import turn_norms
from ansorpy.graph.passes.turn_products import turn_products

__all__ = ["ARRANGING", "SIMPLIFYING", "arrange", "optimize", "simplify"]

SIMPLIFYING: tuple[Callable[[Graph], Graph], ...] = (
    simplify_moves,
    join_norms,
    guard_softmax,
    sink_reshapes,
    scale_behind,
    drop_taps,
    pool_first,
    fold_scale,
    channels_last,
    simplify_moves,
    sink_reshapes,
    turn_norms,
)
"""Passes that never make a graph worse.  Norms are recognised and reshapes moved out of the way
before scales are folded.  Moves are simplified before the layout pass, which handles shuffles, and
again after it, because it removes transposes that had kept reshapes in place."""

ARRANGING: tuple[Callable[[Graph, Choices], Graph], ...] = (
    fuse_attention,
    lambda graph, choices: turn_products(graph),
    lambda graph, choices: fuse_siblings(graph),
    split_batch,
)
"""Passes that join operators or split the batch; where this may be slower, a choice decides."""


def simplify(graph: Graph, *, byte_dots: bool = True) -> Graph:
    """*graph* with scales folded, images channels last, and no needless movements.

    Every pass folds constants and drops dead nodes when it builds its result.

    Args:
        byte_dots: Whether the target has dot products of unsigned by signed bytes, so that it pays
            to compute products of dequantized operands from their integers.
    """
    if byte_dots:
        graph = multiply_bytes(graph)
    for run in SIMPLIFYING:
        graph = run(graph)
    return graph


def arrange(graph: Graph, choices: Choices) -> Graph:
    """A simplified *graph* with operators joined, and the batch split, as *choices* say."""
    for run in ARRANGING:
        graph = run(graph, choices)
    return graph


def optimize(graph: Graph) -> Graph:
    """*graph* after all passes, with the first option of every choice."""
    return arrange(simplify(graph), Choices())
