"""Simulated annealing under the cost model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.rules.placed_sketch import PlacedSketch
from ansorpy.schedule.space import Table
from ansorpy.search.population import Pool, Scored, best_groups, sample_valid, score_all
from ansorpy.search.strategy import Context, Strategy

__all__ = ["Annealing", "stepped"]


@dataclass
class Annealing(Strategy):
    """Simulated annealing with many chains; offers the best candidates that they visit.

    A step mutates each chain once, as evolution does.  The new point is accepted when the model
    scores it higher, and otherwise with probability ``exp((new - old) / t)``, where the temperature
    *t* falls linearly to 0 in each round.  Chains continue in the next round with the updated
    model; new placed sketches replace those whose best scores are lowest.  Random rows of the same
    sketches are offered too, so the search goes on when all chains have met.

    Paper: AutoTVM, arXiv 1805.08318 §3.  Source: TVM's SimulatedAnnealingOptimizer (128 chains,
    500 steps, temperature 1 to 0).  Differs: all chains of one take a step together as one
    table, so there are more chains and fewer steps.  TVM resamples a whole decision, which here
    does worse than plain sampling with the same number of model queries.  The temperature is in
    standard deviations of the first scores, so it does not depend on the model's unit.

    Args:
        sketches: Placed sketches per round; the next round replaces ``renewed`` of them.
        chains: Total number of chains of all placed sketches.
        steps: Steps per round.
        heat: Temperature at the start of a round.
    """

    sketches: int = 8
    renewed: int = 3
    chains: int = 384
    steps: int = 12
    heat: float = 0.3
    _chains: dict[str, tuple[PlacedSketch, Table]] = field(default_factory=dict, repr=False)
    """The most promising placed sketches, and where their chains stand."""

    def ask(self, context: Context, n: int) -> Pool:
        started = self._started(context)
        if not started:
            return Pool(())
        spread = float(np.std(np.concatenate([g.scores for g in started])))
        found = list(started)
        groups = started
        for step in range(self.steps):
            temperature = self.heat * spread * (1 - step / self.steps)
            groups = stepped(groups, temperature, context)
            found += groups
        kept = best_groups(groups, max(self.sketches - self.renewed, 1))
        self._chains = {g.sketch.key: (g.sketch, g.table) for g in kept}
        drawn = [(g.sketch, sample_valid(g.sketch, n, context.rng)) for g in groups]
        return context.pool(found, score_all(context.task, context.model, drawn), n)

    def _started(self, context: Context) -> list[Scored]:
        """The chains of the last round and those of new placed sketches, scored."""
        chains = dict(self._chains)
        each = -(-self.chains // self.sketches)
        for sketch in context.source.draw(self.sketches - len(chains), context.rng):
            if sketch.key not in chains:
                chains[sketch.key] = (sketch, sample_valid(sketch, each, context.rng))
        scored = score_all(context.task, context.model, list(chains.values()))
        return [group for group in scored if len(group)]


def stepped(groups: Sequence[Scored], temperature: float, context: Context) -> list[Scored]:
    """Propose one step for each chain of *groups*, and apply those accepted."""
    rng = context.rng
    proposals = []
    for group in groups:
        proposed = group.sketch.mutate(group.table, rng)
        valid = group.sketch.valid(proposed)
        proposals.append((group.sketch, np.where(valid[:, None], proposed, group.table)))
    moved = []
    scored = score_all(context.task, context.model, proposals)
    for old, new in zip(groups, scored, strict=True):
        accepted = _chance(new.scores - old.scores, temperature) > rng.random(len(old))
        table = np.where(accepted[:, None], new.table, old.table)
        moved.append(Scored(old.sketch, table, np.where(accepted, new.scores, old.scores)))
    return moved


def _chance(gain: Floats, temperature: float) -> Floats:
    """The probability of accepting each change of score."""
    if temperature <= 0:
        return (gain >= 0).astype(np.float64)
    return np.exp(np.minimum(gain / temperature, 0.0))
