"""The graph passes, in order."""

from __future__ import annotations

from collections.abc import Callable

from ansorpy.graph.choices import Choices
from ansorpy.graph.ir import Graph
from ansorpy.graph.passes.absorb_transposes import absorb_transposes
from ansorpy.graph.passes.channels_last import channels_last
from ansorpy.graph.passes.drop_taps import drop_taps
from ansorpy.graph.passes.expand_constants import expand_constants
from ansorpy.graph.passes.fold_scale import fold_scale
from ansorpy.graph.passes.fuse_attention import fuse_attention
from ansorpy.graph.passes.fuse_dequantize import fuse_dequantize
from ansorpy.graph.passes.fuse_guarded_softmax import fuse_guarded_softmax
from ansorpy.graph.passes.fuse_norms import fuse_norms
from ansorpy.graph.passes.fuse_siblings import fuse_siblings
from ansorpy.graph.passes.hoist_from_loops import hoist_from_loops
from ansorpy.graph.passes.pool_first import pool_first
from ansorpy.graph.passes.read_fills import read_fills
from ansorpy.graph.passes.repeat_sizes import repeat_sizes
from ansorpy.graph.passes.simplify_moves import simplify_moves
from ansorpy.graph.passes.sink_from_loops import sink_from_loops
from ansorpy.graph.passes.sink_norms import sink_norms
from ansorpy.graph.passes.sink_reshapes import sink_reshapes
from ansorpy.graph.passes.sink_scales import sink_scales
from ansorpy.graph.passes.split_batch import split_batch
from ansorpy.graph.regions import with_bodies

__all__ = ["ARRANGING", "SIMPLIFYING", "arrange", "optimize", "simplify"]

SIMPLIFYING: tuple[Callable[[Graph], Graph], ...] = (
    expand_constants,
    read_fills,
    simplify_moves,
    fuse_norms,
    fuse_guarded_softmax,
    sink_reshapes,
    sink_scales,
    drop_taps,
    pool_first,
    fold_scale,
    channels_last,
    simplify_moves,
    sink_reshapes,
    sink_norms,
    repeat_sizes,
)
"""Passes that never make a graph worse.  Norms are recognised and reshapes moved out of the way
before scales are folded.  Moves are simplified before the layout pass, which handles shuffles, and
again after it, because it removes transposes that had kept reshapes in place."""

ARRANGING: tuple[Callable[[Graph, Choices], Graph], ...] = (
    fuse_attention,
    lambda graph, choices: absorb_transposes(graph),
    lambda graph, choices: fuse_siblings(graph),
    split_batch,
)
"""Passes that join operators or split the batch; where this may be slower, a choice decides."""


def simplify(graph: Graph, *, byte_dots: bool = True) -> Graph:
    """*graph* with scales folded, images channels last, and no needless movements.

    Every pass folds constants and drops dead nodes when it builds its result.  Passes change the
    bodies of regions, too.

    Args:
        byte_dots: Whether the target has dot products of unsigned by signed bytes, so that it pays
            to compute products of dequantized operands from their integers.
    """
    graph = _with_integers(graph) if byte_dots else graph
    return _simplified(sink_from_loops(hoist_from_loops(graph)))


def _with_integers(graph: Graph) -> Graph:
    return with_bodies(fuse_dequantize(graph), _with_integers)


def _simplified(graph: Graph) -> Graph:
    for run in SIMPLIFYING:
        graph = run(graph)
    return with_bodies(graph, _simplified)


def arrange(graph: Graph, choices: Choices) -> Graph:
    """A simplified *graph* with operators joined, and the batch split, as *choices* say."""
    for run in ARRANGING:
        graph = run(graph, choices)
    return with_bodies(graph, lambda body: arrange(body, choices))


def optimize(graph: Graph) -> Graph:
    """*graph* after all passes, with the first option of every choice."""
    return arrange(simplify(graph), Choices())
