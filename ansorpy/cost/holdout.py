"""Evaluation of how well cost models rank measured programs that they have not seen."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ansorpy.cost.boosted import BoostedOptions, BoostedTrees, WeightedTrees
from ansorpy.cost.dataset import TaskSamples
from ansorpy.cost.metrics import Ranking, ranking

__all__ = ["FOLDS", "LEAST_HELD_OUT", "LEVELS", "Judged", "Knowing", "common_level", "judge"]

LEVELS = (8, 32, 64)
"""Numbers of a task's first trials that the trees are trained on."""

FOLDS = 4
LEAST_HELD_OUT = 16


class Knowing(Enum):
    """Training data of a model; all but the first include every trial of tasks in other folds."""

    NOTHING = "analytic"
    OTHERS = "boosted, other tasks"
    OWN = "boosted, first {} too"
    """Also the task's first trials; everything is learned together."""
    LOADED = "loaded, then first {}"
    """The same trials as ``OWN``, but other tasks' come through a pretrained initial model."""


@dataclass(frozen=True)
class Judged:
    """Ranking metrics of one model on the held-out trials of one task.

    ``known`` counts the task's first trials that the model has seen.
    """

    task: str
    knowing: Knowing
    known: int
    held_out: int
    figures: Ranking


def common_level(tasks: Mapping[str, TaskSamples]) -> int:
    """The largest of ``LEVELS`` for which half of the tasks have enough trials.

    Only tasks that have enough for the smallest level count.
    """
    spare = [len(samples.seconds) - LEAST_HELD_OUT for samples in tasks.values()]
    counts = {level: sum(n >= level for n in spare) for level in LEVELS}
    return max((n for n in LEVELS if 2 * counts[n] >= counts[LEVELS[0]]), default=LEVELS[0])


def judge(
    tasks: Mapping[str, TaskSamples],
    levels: Sequence[int] = LEVELS,
    seed: int = 0,
    models: Collection[Knowing] = tuple(Knowing),
    options: BoostedOptions | None = None,
) -> list[Judged]:
    """Evaluate *models* on every task that has enough trials to hold some out.

    A task's held-out trials, the same for every model, are those after the largest of *levels* that
    leaves ``LEAST_HELD_OUT``.  Tasks whose held-out trials all failed are skipped.
    Cost: trains ``FOLDS * (1 + 2 * len(levels))`` models if all are requested.
    """
    starts = {name: _held_from(samples, levels) for name, samples in tasks.items()}
    held = {name: tasks[name].after(n) for name, n in starts.items() if n is not None}
    held = {name: late for name, late in held.items() if np.isfinite(late.seconds).any()}
    judged = list(held)
    found = []
    for name, late in held.items():
        figures = ranking(1 / np.asarray(late.prior_s), np.asarray(late.seconds))
        found.append(Judged(name, Knowing.NOTHING, 0, len(late.seconds), figures))
    order = np.random.default_rng(seed).permutation(len(judged))
    for number in range(FOLDS):
        fold = sorted(judged[at] for at in order[number::FOLDS])
        for knowing, known, model in _models(tasks, fold, levels, models, options):
            fits = [name for name in fold if known <= (starts[name] or 0)]
            found += [_judged(name, knowing, known, held[name], model) for name in fits]
    return [j for j in found if j.knowing in models]


def _held_from(samples: TaskSamples, levels: Sequence[int]) -> int | None:
    fits = [n for n in levels if n + LEAST_HELD_OUT <= len(samples.seconds)]
    return max(fits, default=None)


def _models(
    tasks: Mapping[str, TaskSamples],
    fold: Sequence[str],
    levels: Sequence[int],
    wanted: Collection[Knowing],
    options: BoostedOptions | None,
) -> Iterator[tuple[Knowing, int, BoostedTrees]]:
    """Trained models to rank the held-out trials of the tasks of *fold*."""
    if not fold:
        return
    others = {name: samples for name, samples in tasks.items() if name not in fold}
    before = _trained(others, options)
    yield Knowing.OTHERS, 0, before
    for level in levels:
        own = {name: tasks[name].first(level) for name in fold}
        if Knowing.OWN in wanted:
            yield Knowing.OWN, level, _trained({**others, **own}, options)
        if Knowing.LOADED in wanted:
            yield Knowing.LOADED, level, _trained(own, options, before.trees())


def _trained(
    parts: Mapping[str, TaskSamples],
    options: BoostedOptions | None,
    base: Sequence[WeightedTrees] = (),
) -> BoostedTrees:
    model = BoostedTrees(options, base=base)
    for name, part in parts.items():
        model.take(name, part)
    model.refit()
    return model


def _judged(
    name: str, knowing: Knowing, known: int, late: TaskSamples, model: BoostedTrees
) -> Judged:
    scores = model.score(late.features, np.asarray(late.prior_s))
    figures = ranking(scores, np.asarray(late.seconds))
    return Judged(name, knowing, known, len(late.seconds), figures)
