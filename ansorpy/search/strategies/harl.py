"""A bandit over sketches, and tracks of changes of which the less promising are stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ansorpy.arrays import Floats, Masks
from ansorpy.rules.placed_sketch import Pair
from ansorpy.schedule.space import Space
from ansorpy.search.bandits import SlidingWindowUCB
from ansorpy.search.population import Pool, Scored
from ansorpy.search.strategy import Context, Results
from ansorpy.search.walks.actions import Actions, factor_moves
from ansorpy.search.walks.ppo import PpoOptions
from ansorpy.search.walks.walk import PolicyWalk, Walk

__all__ = ["Harl"]


@dataclass
class Harl(PolicyWalk):
    """A bandit picks a sketch each round; an actor-critic changes its programs on many tracks.

    A round walks in spaces of one (definition, sketch) pair, which a sliding-window bandit picks;
    its reward is the best speed that the round measured, as a share of the best so far.  In each
    step of a track, a factor moves between two levels of a split, and every other decision changes
    by one step, or any of them stay.  The reward is the relative gain of the model's score.  After
    each stretch of ``steps`` steps, the share ``dropped`` of the tracks stop, those with the
    smallest advantages over what the critic expected, until only ``least`` are left.  These take
    one more stretch.

    Paper: HARL, ICPP 2022, arXiv 2211.11172.  Its code is not public, and what the abstract does
    not say was recalled, not checked: 256 tracks, 20 steps, half of them dropped down to 64; window
    256 and 0.25 of the bandit; rates, discount and entropy of the policy.  Differs: compute
    locations are no action, since each has a space of its own; ``sketches`` of them are walked at
    once.  A policy sees decisions, but not features of the program.
    """

    sketches: int = 2
    renewed: int = 1
    least: int = 64
    dropped: float = 0.5
    window: int = 256
    curiosity: float = 0.25
    policy: PpoOptions = PpoOptions(
        trunk=(32, 32), head=(), critic=(32, 32), temperature=1.0, actor_rate=3e-4, entropy=0.01,
        epochs=1,
    )  # fmt: skip
    """HARL's hyper-parameters; sizes of layers and temperature are ours."""
    _bandit: SlidingWindowUCB | None = field(default=None, init=False, repr=False)
    _best_s: float = field(default=float("inf"), init=False, repr=False)
    _told: list[tuple[Pair, float]] = field(default_factory=list, init=False, repr=False)
    """Rewards of pairs that the bandit has not received yet."""

    def ask(self, context: Context, n: int) -> Pool:
        pairs = list(context.source.pairs)
        self._bandit = self._bandit or SlidingWindowUCB(len(pairs), self.window, self.curiosity)
        for pair, reward in self._told:
            self._bandit.tell(pairs.index(pair), reward)
        self._told = []
        left, pool = set(range(len(pairs))), Pool(())
        while left and not pool.best:
            arm = self._bandit.pick(context.rng, left)
            left.remove(arm)
            pool = self._round(context, n, [pairs[arm]])
        return pool

    def tell(self, found: Results) -> None:
        super().tell(found)
        best: dict[Pair, float] = {}
        for candidate, result in found:
            seconds = result.median_s if result.ok else float("inf")
            pair = candidate.sketch.pair
            best[pair] = min(best.get(pair, float("inf")), seconds)
        self._best_s = min([self._best_s, *best.values()])
        for pair, seconds in best.items():
            self._told.append((pair, self._best_s / seconds if np.isfinite(seconds) else 0.0))

    def actions(self, space: Space) -> Actions:
        return factor_moves(space)

    def rewards(self, walk: Walk, after: Floats, valid: Masks) -> Floats:
        return (after - walk.scores) / np.maximum(np.abs(walk.scores), np.finfo(np.float64).tiny)

    def _walk(self, walks: Sequence[Walk], context: Context) -> list[Scored]:
        found: list[Scored] = []
        while True:
            trails, visited = self._steps(walks, context)
            found += visited
            gains = [
                walk.policy.advantages(trail).sum(axis=0)
                for walk, trail in zip(walks, trails, strict=True)
            ]
            for walk, trail in zip(walks, trails, strict=True):
                walk.policy.learn(trail)
            tracks = np.concatenate(gains) if gains else np.zeros(0)
            left = max(int((1 - self.dropped) * len(tracks)), self.least)
            if left >= len(tracks):
                return found
            kept = np.zeros(len(tracks), dtype=np.bool_)
            kept[np.argsort(-tracks, kind="stable")[:left]] = True
            ends = np.cumsum([len(gain) for gain in gains])[:-1]
            for walk, mask in zip(walks, np.split(kept, ends), strict=True):
                walk.keep(mask)
            walks = [walk for walk in walks if len(walk.numbers)]
