"""Many chains that a policy moves under the cost model, as one table for each placed sketch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from ansorpy.arrays import Floats, Masks
from ansorpy.cost.neural.library import demand_torch, on_threads
from ansorpy.rules.placed_sketch import Pair, PlacedSketch
from ansorpy.schedule.space import Space, Table
from ansorpy.search.population import Pool, Scored, merged, sample_valid, score_all
from ansorpy.search.strategy import Context, Results
from ansorpy.search.variety import Tried, varied
from ansorpy.search.walks.actions import Actions, observed
from ansorpy.search.walks.ppo import Ppo, PpoOptions, Trail

__all__ = ["PolicyWalk", "Walk"]


@dataclass
class Walk:
    """Chains in the space of one placed sketch, and the policy that moves them.

    Args:
        starts: Where chains start, and start again.
        numbers: Where the chains stand, as numbers of rows of the decisions' domains.
        scores: The model's scores there.
    """

    sketch: PlacedSketch
    actions: Actions
    policy: Ppo
    starts: Scored = field(init=False)
    numbers: Table = field(init=False)
    scores: Floats = field(init=False)

    def begin(self, starts: Scored) -> None:
        """Put a chain on each of *starts*."""
        self.starts = starts
        self.numbers, self.scores = self.sketch.space.encode(starts.table), starts.scores

    @property
    def states(self) -> Floats:
        """What the policy sees of each chain."""
        return observed(self.sketch.space, self.numbers)

    def move(self, places: Scored, ends: Masks, rng: np.random.Generator) -> None:
        """Move the chains to *places*, and those that end to random starting points."""
        again = rng.integers(len(self.starts), size=len(places))
        table = np.where(ends[:, None], self.starts.table[again], places.table)
        self.numbers = self.sketch.space.encode(table)
        self.scores = np.where(ends, self.starts.scores[again], places.scores)

    def keep(self, chains: Masks) -> None:
        """Drop the chains outside the mask."""
        self.numbers, self.scores = self.numbers[chains], self.scores[chains]


@dataclass
class PolicyWalk(ABC):
    """The base of strategies that walk from program to program by a policy, learned on the way.

    In a round, chains start in the spaces of some placed sketches.  At each step, the sketch's
    policy chooses a move for each chain, and its reward follows from the model's scores; a move to
    an invalid row is not made.  Then the policies learn, and the best rows visited are offered.
    Placed sketches whose best scores are lowest are replaced in the next round.

    Differs from the papers in all of these: a task has many spaces, one for each placed sketch,
    each with a policy of its own.  All chains of a sketch take a step together as one table, so
    there are more chains and fewer steps.  A policy sees the logarithm of each column.  Offers are
    chosen for variety as those of evolution are (:func:`~ansorpy.search.variety.varied`), as the
    papers' models are not those that are used here; a ``doubt`` of 0 leaves the scores' order.

    Args:
        sketches: Placed sketches per round; the next round replaces ``renewed`` of them.
        chains: Total number of chains of all placed sketches.
        steps: Steps of a chain between two rounds of learning.
        settled: A chain in which at least this share of the heads stay has arrived, and starts
            again at one of the round's starting points; None if none ever arrives.
        policy: Hyper-parameters of the policies.
        considered: Rows of each placed sketch that may be offered.
        doubt: Expected error of a score's logarithm where nothing similar has been measured.
    """

    sketches: int = 4
    renewed: int = 2
    chains: int = 256
    steps: int = 20
    settled: float | None = None
    policy: PpoOptions = PpoOptions()
    considered: int = 256
    doubt: float = 0.5
    _walks: dict[str, Walk] = field(default_factory=dict, init=False, repr=False)
    _tried: list[Tried] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        demand_torch(f'the policy of the strategy "{type(self).__name__}"')

    @abstractmethod
    def actions(self, space: Space) -> Actions:
        """What the policy of a placed sketch with this *space* chooses from."""

    @abstractmethod
    def rewards(self, walk: Walk, after: Floats, valid: Masks) -> Floats:
        """The reward of a step of each chain of *walk*, to where the model's scores are *after*.

        Where the step was not *valid*, it was not made.
        """

    def ask(self, context: Context, n: int) -> Pool:
        return self._round(context, n, None)

    def tell(self, found: Results) -> None:
        self._tried += Tried.of(found)

    def _round(self, context: Context, n: int, pairs: Collection[Pair] | None) -> Pool:
        """A round on placed sketches of *pairs*, of all by default."""
        with on_threads(1, int(context.rng.integers(1 << 31))):
            started, walks = self._begun(context, pairs)
            visited = [*started, *self._walk(walks, context)]
        self._drop(walks, visited)
        measured = context.measured_of
        kept = [
            merged(visited, g.sketch, self.considered + measured[g.sketch.key]) for g in started
        ]
        best = varied(kept, 2 * n, self._tried, context.measured, self.doubt)
        return Pool(tuple(best), context.some(started, 2 * n))

    def _walk(self, walks: Sequence[Walk], context: Context) -> list[Scored]:
        """Take ``steps`` steps and learn from them; return what was visited."""
        trails, visited = self._steps(walks, context)
        for walk, trail in zip(walks, trails, strict=True):
            walk.policy.learn(trail)
        return visited

    def _begun(
        self, context: Context, pairs: Collection[Pair] | None
    ) -> tuple[list[Scored], list[Walk]]:
        """The starting points, and the walks that begin there, kept ones and new ones."""
        kept = [w for w in self._walks.values() if pairs is None or w.sketch.pair in pairs]
        shares = None if pairs is None else {pair: 1 / len(pairs) for pair in pairs}
        drawn = context.source.draw(max(self.sketches - len(kept), 0), context.rng, shares)
        new = [sketch for sketch in drawn if sketch.key not in self._walks]
        each = -(-self.chains // max(len(kept) + len(new), 1))
        tables = [(walk.sketch, self._starts(walk, each, context)) for walk in kept]
        tables += [(sketch, sample_valid(sketch, each, context.rng)) for sketch in new]
        starts = score_all(context.task, context.model, [(s, t) for s, t in tables if len(t)])
        walks = [self._begin(group) for group in starts]
        return starts, [walk for walk in walks if walk is not None]

    def _begin(self, starts: Scored) -> Walk | None:
        """The walk of the sketch of *starts*, a new one if need be; None if there is no choice."""
        sketch, space = starts.sketch, starts.sketch.space
        if sketch.key not in self._walks:
            actions = self.actions(space)
            heads, choices = actions.heads.shape
            if not heads:
                return None
            policy = Ppo(len(space.columns), heads, choices, self.policy)
            self._walks[sketch.key] = Walk(sketch, actions, policy)
        walk = self._walks[sketch.key]
        walk.begin(starts)
        return walk

    def _starts(self, walk: Walk, n: int, context: Context) -> Table:
        """The rows at which the *n* chains of a walk of the last round start in this one."""
        return sample_valid(walk.sketch, n, context.rng)

    def _drop(self, walks: Sequence[Walk], visited: Sequence[Scored]) -> None:
        """Forget those of *walks* that are to be replaced in the next round."""
        best: dict[str, float] = {}
        for group in visited:
            key = group.sketch.key
            best[key] = max(best.get(key, -np.inf), float(group.scores.max()))
        ranked = sorted((w.sketch.key for w in walks), key=lambda key: -best[key])
        for key in ranked[max(self.sketches - self.renewed, 1) :]:
            del self._walks[key]

    def _steps(self, walks: Sequence[Walk], context: Context) -> tuple[list[Trail], list[Scored]]:
        """``steps`` steps of all chains: the trail of each walk, and everything visited."""
        if not walks:
            return [], []
        notes: list[list[_Step]] = [[] for _ in walks]
        visited: list[Scored] = []
        for _ in range(self.steps):
            steps = [self._chosen(walk) for walk in walks]
            tables = [(walk.sketch, step.table) for walk, step in zip(walks, steps, strict=True)]
            scored = score_all(context.task, context.model, tables)
            for walk, step, group, noted in zip(walks, steps, scored, notes, strict=True):
                step.rewards = self.rewards(walk, group.scores, step.valid)
                walk.move(group, step.ends, context.rng)
                noted.append(step)
            visited += scored
        trails = [_trail(noted, walk.states) for noted, walk in zip(notes, walks, strict=True)]
        return trails, visited

    def _chosen(self, walk: Walk) -> _Step:
        """The next step of each chain, not yet made."""
        states, legal = walk.states, walk.actions.legal(walk.numbers)
        choices, logs = walk.policy.act(states, legal)
        space = walk.sketch.space
        table = space.decode(walk.actions.apply(walk.numbers, choices))
        valid = walk.sketch.valid(table)
        table = np.where(valid[:, None], table, space.decode(walk.numbers))
        ends = np.zeros(len(table), dtype=np.bool_)
        if self.settled is not None:
            ends = walk.actions.staying(choices, self.settled)
        return _Step(states, legal, choices, logs, table, valid, ends)


@dataclass
class _Step:
    """A step of the chains of one walk, to the rows of *table*."""

    states: Floats
    legal: Masks
    choices: Table
    logs: Floats
    table: Table
    valid: Masks
    ends: Masks
    rewards: Floats = field(default_factory=lambda: np.zeros(0))


def _trail(steps: Sequence[_Step], arrived: Floats) -> Trail:
    return Trail(
        np.array([*(s.states for s in steps), arrived]),
        np.array([s.legal for s in steps]),
        np.array([s.choices for s in steps]),
        np.array([s.logs for s in steps]),
        np.array([s.rewards for s in steps]),
        np.array([s.ends for s in steps]),
    )
