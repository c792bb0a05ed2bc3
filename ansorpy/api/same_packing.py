"""Schedules for other sizes that read constants as a given schedule has packed them.

The order in which constants are packed follows from the tiles of the axes that index them.  Those
axes have the same extents at all sizes, so their tiles can stay while those of the others change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from ansorpy.api.tuner import Tuner
from ansorpy.errors import AnsorpyError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import structural_hash
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.schedule.space import Table
from ansorpy.schedule.state import History, State

__all__ = ["packed_alike"]

_DRAWN, _OFFERED = 256, 2
"""Rows that are drawn and predicted, and schedules returned."""


def packed_alike(
    tuner: Tuner, task: Task, definition: ComputeDAG, general: ComputeDAG, history: History
) -> list[State]:
    """Schedules of *definition*, a definition of *task*, in the likeness of *history*.

    The nearest one comes first, then those that are predicted to be fastest.

    Args:
        general: The definition for all sizes, for which *history* is.
    """
    sampler = SketchSampler(task, tuner.request.preset)
    wanted = structural_hash(definition)
    names = [d.name for d in sampler.definitions if structural_hash(d.dag) == wanted]
    rng = np.random.default_rng(tuner.request.seed)
    for name in names:
        for sketch, rows in sampler.refit(name, history, 1, rng):
            return [*_offers(tuner, task, sketch, rows[0], general, rng)]
    return []


def _offers(
    tuner: Tuner,
    task: Task,
    sketch: PlacedSketch,
    nearest: Table,
    general: ComputeDAG,
    rng: np.random.Generator,
) -> Iterator[State]:
    table = np.vstack([nearest, sketch.sample(_DRAWN, rng)])
    for name, columns in sketch.space.slices.items():
        if not _is_free(name, general):
            table[:, columns] = nearest[columns]
    table = np.unique(table[sketch.valid(table)], axis=0)
    scores = tuner.scores(task, sketch, table)
    for row in (nearest, *table[np.argsort(-scores)][: _OFFERED - 1]):
        with suppress(AnsorpyError):  # no program exists for some rows
            yield sketch.resolve(row)


def _is_free(decision: str, general: ComputeDAG) -> bool:
    """True for tiles of an axis over dimensions, and for decisions that are no tiles."""
    stage, _, axis = decision.rpartition(".")
    ops = {op.name: op for op in general.computes}
    if stage not in ops:
        return False
    extents = {a.name: a.extent for a in (*ops[stage].axes, *ops[stage].reduce_axes)}
    return not isinstance(extents.get(axis), int)
