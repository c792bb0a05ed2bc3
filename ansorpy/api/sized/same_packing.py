"""Schedules for some sizes that read constants as the chosen schedules have packed them.

The order in which constants are packed follows from the tiles of the axes that index them.  Those
axes have the same extents at all sizes, so their tiles can stay while those of the others change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from math import log

import numpy as np

from ansorpy.api.sized.candidates import SizedCandidate
from ansorpy.api.sized.times import Times
from ansorpy.api.tuner import Tuner
from ansorpy.errors import AnsorpyError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.sizes import Sizes
from ansorpy.ir.task import Task
from ansorpy.ir.text.serialize import structural_hash
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.schedule.space import Table

__all__ = ["packed_alike"]

_NEAR = log(1.03)
"""Schedules that take this much longer than the fastest one are worth replacing."""

_DRAWN, _OFFERED = 256, 2
"""Rows that are drawn and predicted, and schedules offered for a size."""


def packed_alike(times: Times) -> Iterator[tuple[int, list[SizedCandidate]]]:
    """Schedules that read constants as those do that are chosen so far.

    They are looked for at the sizes (of these numbers) at which another packing is faster.
    """
    path = times.chosen()
    logs = [list(column) for column in zip(*times.logs(), strict=True)]
    for n, (task, sizes) in enumerate(times.tasks.items()):
        chosen, seconds = times.candidates[path[n]], logs[n]
        if chosen.packing[0] and seconds[path[n]] >= min(seconds) + _NEAR:
            alike = _alike(times.timer.tuner, chosen, task, sizes)
            yield n, [candidate for candidate in alike if candidate.applies]


def _alike(tuner: Tuner, chosen: SizedCandidate, task: Task, sizes: Sizes) -> list[SizedCandidate]:
    """Schedules in the likeness of *chosen* for *task*, that of *sizes*.

    The nearest one comes first, then those that are predicted to be fastest.
    """
    sampler = SketchSampler(task, tuner.request.preset)
    wanted = structural_hash(dag_at(chosen.definition, sizes))
    names = [d.name for d in sampler.definitions if structural_hash(d.dag) == wanted]
    rng = np.random.default_rng(tuner.request.seed)
    for name in names:
        for sketch, rows in sampler.refit(name, chosen.history, 1, rng):
            return [*_offers(tuner, task, sketch, rows[0], chosen.definition, rng)]
    return []


def _offers(
    tuner: Tuner,
    task: Task,
    sketch: PlacedSketch,
    nearest: Table,
    general: ComputeDAG,
    rng: np.random.Generator,
) -> Iterator[SizedCandidate]:
    table = np.vstack([nearest, sketch.sample(_DRAWN, rng)])
    for name, columns in sketch.space.slices.items():
        if not _is_free(name, general):
            table[:, columns] = nearest[columns]
    table = np.unique(table[sketch.valid(table)], axis=0)
    scores = tuner.scores(task, sketch, table)
    for row in (nearest, *table[np.argsort(-scores)][: _OFFERED - 1]):
        with suppress(AnsorpyError):  # no program exists for some rows
            yield SizedCandidate(general, sketch.resolve(row).history)


def _is_free(decision: str, general: ComputeDAG) -> bool:
    """True for tiles of an axis over dimensions, and for decisions that are no tiles."""
    stage, _, axis = decision.rpartition(".")
    ops = {op.name: op for op in general.computes}
    if stage not in ops:
        return False
    extents = {a.name: a.extent for a in (*ops[stage].axes, *ops[stage].reduce_axes)}
    return not isinstance(extents.get(axis), int)
