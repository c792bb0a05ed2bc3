"""Steps from measured programs, in directions chosen by Q-learning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ansorpy.cost.neural.library import demand_torch, on_threads
from ansorpy.rules.placed_sketch import PlacedSketch
from ansorpy.search.population import (
    Candidate,
    Key,
    Pool,
    by_sketch,
    different,
    score_all,
    top,
)
from ansorpy.search.strategy import Context, Results
from ansorpy.search.walks.actions import Actions, directions, observed
from ansorpy.search.walks.q_learning import QLearner, QOptions, Transition

__all__ = ["FlexTensor"]


@dataclass(frozen=True)
class _Step:
    """How a candidate was made: from *parent*, by a choice of one head."""

    parent: Candidate
    head: int
    choice: int


@dataclass
class FlexTensor:
    """Measures neighbours of good programs, in the directions that Q-learning found worthwhile.

    After some random programs, candidates are single steps from measured ones.  A measured program
    of time t is stepped from with probability ``exp(-greed * (t - best) / best)``, and otherwise
    the best one is.  For each decision, a network estimates what each direction is worth, and the
    best direction is taken, or with a falling probability a random one.  The reward of a step is
    ``tanh(max(parent's time - child's time, 0))``.

    Paper: FlexTensor, ASPLOS 2020 §5.1.  Source: its public code (``greed`` 0.5; random directions
    0.8 exp(-0.01 rounds), at least 0.1; networks of width 64 by Adadelta), which draws programs to
    step from in one method, and learns directions in another, from the best programs.  Differs:
    both are one.  Times are in units of the best, so that rewards do not depend on the task.  The
    first programs are 16 instead of 200, more than most runs measure, and random directions get
    rarer by trials instead of rounds.  Networks are trained after every 16 steps instead of five
    times per run, if they have seen a new one; the source then also measures its best programs
    again, and some random ones.  Candidates are measured in rounds, so a round steps from several
    programs.  The model takes the place of the optional network that predicts performance: it
    orders the first programs, and the steps of a round.

    Args:
        warm_up: Number of random programs measured first.
        every: Number of steps measured between two trainings.
        starts: Number of programs that a round steps from.
    """

    warm_up: int = 16
    greed: float = 0.5
    every: int = 16
    starts: int = 8
    sketches: int = 8
    sampled: int = 256
    chance: tuple[float, float, float] = (0.8, 0.01, 0.1)
    """Probability of a random direction: at first, its decay per trial, and at least."""
    learner: QOptions = QOptions()
    _told: list[tuple[Candidate, float]] = field(default_factory=list, init=False, repr=False)
    """Results that have not been learned from."""
    _memory: list[tuple[float, Candidate]] = field(default_factory=list, init=False, repr=False)
    """Programs to step from, with their seconds; the best is first."""
    _trials: int = field(default=0, init=False, repr=False)
    _steps: dict[Key, _Step] = field(default_factory=dict, init=False, repr=False)
    _seconds: dict[Key, float] = field(default_factory=dict, init=False, repr=False)
    _learners: dict[str, tuple[Actions, QLearner]] = field(
        default_factory=dict, init=False, repr=False
    )
    _untrained: dict[str, int] = field(default_factory=dict, init=False, repr=False)
    """Steps that each learner has seen since it was trained, where it has seen any."""

    def __post_init__(self) -> None:
        demand_torch(f'the policy of the strategy "{type(self).__name__}"')

    def ask(self, context: Context, n: int) -> Pool:
        sampled = self._sampled(context)
        with on_threads(1, int(context.rng.integers(1 << 31))):
            self._learn(context)
            ready = self._trials >= self.warm_up and self._memory
            stepped = self._stepped(context, n) if ready else []
        offered = different([*stepped, *sampled[: max(2 * n - len(stepped), 0)]])
        return Pool(tuple(offered), tuple(sampled))

    def tell(self, found: Results) -> None:
        self._told += [(c, r.median_s if r.ok else float("inf")) for c, r in found]

    def _sampled(self, context: Context) -> list[Candidate]:
        """Random programs that have not been measured, those with the highest scores first."""
        drawn = context.samples(self.sketches, self.sampled)
        groups = score_all(context.task, context.model, drawn)
        found = different(context.new(c for group in groups for c in group.candidates()))
        return sorted(found, key=lambda c: -c.score)

    def _stepped(self, context: Context, n: int) -> list[Candidate]:
        """Steps from measured programs, highest score first."""
        found: dict[Key, Candidate] = {}
        for start in range(4 * self.starts):
            if start >= self.starts and len(found) >= n:
                break
            for step, child in self._children(self._start(context.rng), context):
                if child.key not in context.measured and child.key not in found:
                    found[child.key] = child
                    self._steps.setdefault(child.key, step)
        tables = [(sketch, table) for sketch, table, _ in by_sketch(list(found.values()))]
        return top(score_all(context.task, context.model, tables), len(found))

    def _start(self, rng: np.random.Generator) -> Candidate:
        """A program to step from."""
        best_s, best = self._memory[0]
        seconds, drawn = self._memory[int(rng.integers(len(self._memory)))]
        return drawn if self._accepts(seconds, best_s, rng) else best

    def _accepts(self, seconds: float, best_s: float, rng: np.random.Generator) -> bool:
        return bool(rng.random() < np.exp(-self.greed * (seconds - best_s) / best_s))

    def _children(self, parent: Candidate, context: Context) -> Iterator[tuple[_Step, Candidate]]:
        """Valid programs one step from *parent*, at most one for each decision."""
        sketch, space = parent.sketch, parent.sketch.space
        if all(len(decision.domain.rows) == 1 for decision in space.decisions):
            return
        actions, learner = self._learner(sketch)
        heads = len(actions.heads)
        numbers = space.encode(parent.row[None])
        [legal] = actions.legal(numbers)
        [values] = learner.values(observed(space, numbers))
        first, decay, least = self.chance
        chance = max(first * np.exp(-decay * self._trials), least)
        wild = context.rng.random(heads) < chance
        values = np.where(wild[:, None], context.rng.random(values.shape), values)
        choices = np.where(legal, values, -np.inf).argmax(axis=1)
        moved = [actions.step(numbers, head, choices[head, None]) for head in range(heads)]
        table = space.decode(np.concatenate(moved))
        for head in np.flatnonzero(sketch.valid(table) & legal.any(axis=1)):
            step = _Step(parent, int(head), int(choices[head]))
            yield step, Candidate(sketch, table[head])

    def _learner(self, sketch: PlacedSketch) -> tuple[Actions, QLearner]:
        if sketch.key not in self._learners:
            actions = directions(sketch.space)
            heads, choices = actions.heads.shape
            learner = QLearner(len(sketch.columns), heads, choices, self.learner)
            self._learners[sketch.key] = actions, learner
        return self._learners[sketch.key]

    def _learn(self, context: Context) -> None:
        """Remember new results, and train where enough steps were measured since the last time."""
        for candidate, seconds in self._told:
            self._trials += 1
            self._seconds[candidate.key] = seconds
            best_s = min(seconds, self._memory[0][0] if self._memory else seconds)
            if np.isfinite(seconds) and self._accepts(seconds, best_s, context.rng):
                at = 0 if seconds == best_s else len(self._memory)
                self._memory.insert(at, (seconds, candidate))
            step = self._steps.pop(candidate.key, None)
            if step is not None:
                self._remember(step, candidate, best_s)
        self._told = []
        if sum(self._untrained.values()) >= self.every:
            for key in self._untrained:
                self._learners[key][1].learn()
            self._untrained = {}

    def _remember(self, step: _Step, child: Candidate, best_s: float) -> None:
        """Learn from the *step* that led to *child* from now on."""
        actions, learner = self._learners[child.sketch.key]
        space = child.sketch.space
        numbers = space.encode(np.array([step.parent.row, child.row]))
        before, after = observed(space, numbers)
        gain = max(self._seconds[step.parent.key] - self._seconds[child.key], 0.0) / best_s
        legal = actions.legal(numbers)[1, step.head]
        learner.remember(
            Transition(before, step.head, step.choice, float(np.tanh(gain)), after, legal)
        )
        self._untrained[child.sketch.key] = self._untrained.get(child.sketch.key, 0) + 1
