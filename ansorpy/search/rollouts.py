"""Random completions of prefixes, scored together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.rules.placed_sketch import PlacedSketch
from ansorpy.schedule.space import Table
from ansorpy.search.population import Scored, score_all
from ansorpy.search.prefix import Prefix
from ansorpy.search.strategy import Context

__all__ = ["Explored", "explored"]


@dataclass(frozen=True)
class Explored:
    """Scored programs that begin with ``prefix`` and take its ``option``."""

    prefix: Prefix
    option: Prefix
    scored: Scored

    @property
    def best(self) -> float:
        """The best score."""
        return float(self.scored.scores.max())


def explored(context: Context, prefixes: Sequence[Prefix], n: int) -> list[Explored]:
    """About *n* random programs of each prefix, grouped by the option taken.

    Programs of one placed sketch are scored as one table, whatever their prefix.
    """
    found = [
        (prefix, option, sketch, table)
        for prefix in prefixes
        for option, sketch, table in prefix.explore(n, context.rng)
    ]
    sketches: dict[str, PlacedSketch] = {}
    tables: dict[str, list[Table]] = {}
    for _, _, sketch, table in found:
        sketches.setdefault(sketch.key, sketch)
        tables.setdefault(sketch.key, []).append(table)
    joined = [(sketches[key], np.concatenate(parts)) for key, parts in tables.items()]
    left = {s.sketch.key: s.scores for s in score_all(context.task, context.model, joined)}
    groups = []
    for prefix, option, sketch, table in found:
        scores, left[sketch.key] = np.split(left[sketch.key], [len(table)])
        groups.append(Explored(prefix, option, Scored(sketch, table, scores)))
    return groups
