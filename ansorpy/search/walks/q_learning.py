"""Deep Q-learning: the value of each move, learned from what moves led to."""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np

from ansorpy.cost.nest_view import Floats
from ansorpy.schedule.space import Table
from ansorpy.search.walks.actions import Masks
from ansorpy.search.walks.networks import Adadelta, Perceptrons

__all__ = ["QLearner", "QOptions", "Transition"]


@dataclass(frozen=True)
class QOptions:
    """Hyper-parameters; the defaults are FlexTensor's.

    Args:
        hidden: Units of the hidden layers of each head's network.
        discount: Weight of what the state that a move leads to is worth.
        remembered: Number of the latest transitions to learn from.
        batch: Transitions of a gradient step.
    """

    hidden: tuple[int, ...] = (64, 64, 64)
    discount: float = 0.9
    rate: float = 0.02
    epochs: int = 20
    remembered: int = 1000
    batch: int = 32


@dataclass(frozen=True)
class Transition:
    """One move: state, head and choice, reward, the state after, and the head's moves there."""

    state: Floats
    head: int
    choice: int
    reward: float
    after: Floats
    legal: Masks


@dataclass
class QLearner:
    """Networks side by side, one for each head, that estimate what each of its choices is worth.

    Paper: Mnih et al., arXiv 1312.5602.

    Args:
        inputs: Length of a state.
        heads, choices: Number of heads, and of choices that the widest of them has.
    """

    inputs: int
    heads: int
    choices: int
    options: QOptions
    rng: np.random.Generator
    _memory: deque[Transition] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        sizes = (self.inputs, *self.options.hidden, self.choices)
        self._net = Perceptrons(sizes, self.heads, self.rng, rectified=True)
        self._target = deepcopy(self._net)
        self._step = Adadelta(self.options.rate)
        self._memory = deque(maxlen=self.options.remembered)

    def values(self, states: Floats) -> Floats:
        """``values[row, head, choice]``."""
        return self._net(states).swapaxes(0, 1)

    def remember(self, transition: Transition) -> None:
        """Learn from *transition* from now on."""
        self._memory.append(transition)

    def learn(self) -> list[float]:
        """Fit the networks to what is remembered; the mean squared error of each epoch."""
        memory, options = list(self._memory), self.options
        if not memory:
            return []
        states = np.array([t.state for t in memory])
        heads = np.array([t.head for t in memory])
        choices = np.array([t.choice for t in memory])
        goals = self._goals(memory, heads)
        errors = []
        for _ in range(options.epochs):
            order = self.rng.permutation(len(memory))
            squares = [
                self._fit(states[at], heads[at], choices[at], goals[at])
                for at in np.split(order, range(options.batch, len(order), options.batch))
            ]
            errors.append(float(np.concatenate(squares).mean()))
        self._target = deepcopy(self._net)
        return errors

    def _goals(self, memory: list[Transition], heads: Table) -> Floats:
        """The reward of each transition, and what the best move after it is worth."""
        later = self._target(np.array([t.after for t in memory]))[heads, np.arange(len(memory))]
        legal = np.array([t.legal for t in memory])
        best = np.where(legal, later, -np.inf).max(axis=1)
        rewards = np.array([t.reward for t in memory])
        return rewards + self.options.discount * np.where(legal.any(axis=1), best, 0.0)

    def _fit(self, states: Floats, heads: Table, choices: Table, goals: Floats) -> Floats:
        """One gradient step; the squared errors before it."""
        layers = self._net.layers(states)
        rows = np.arange(len(states))
        errors = layers[-1][heads, rows, choices] - goals
        slope = np.zeros_like(layers[-1])
        slope[heads, rows, choices] = 2 * errors / len(states)
        self._step.step(self._net.weights, self._net.gradients(layers, slope)[0])
        return errors**2
