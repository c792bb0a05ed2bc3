"""Deep Q-learning: the value of each move, learned from what moves led to."""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ansorpy.arrays import Floats, Masks
from ansorpy.search.walks.networks import perceptrons

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["QLearner", "QOptions", "Transition"]


@dataclass(frozen=True)
class QOptions:
    """Hyper-parameters; the defaults are FlexTensor's.

    Args:
        hidden: Units of the hidden layers of each head's network.
        discount: Weight of the next state's value (gamma).
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


class QLearner:
    """Networks side by side, one for each head, that estimate the values of its choices.

    Paper: Mnih et al., arXiv 1312.5602.

    Args:
        inputs: Length of a state.
        heads, choices: Number of heads, and of choices that the widest of them has.
    """

    def __init__(self, inputs: int, heads: int, choices: int, options: QOptions) -> None:
        from torch import nn, optim

        self.options = options
        self._net = perceptrons((inputs, *options.hidden, choices), heads, nn.ReLU)
        self._target = deepcopy(self._net)
        self._optimiser = optim.Adadelta(self._net.parameters(), lr=options.rate)
        self._memory: deque[Transition] = deque(maxlen=options.remembered)

    def values(self, states: Floats) -> Floats:
        """``values[row, head, choice]``."""
        import torch

        with torch.no_grad():
            values: Floats = self._net(torch.from_numpy(states).float()).double().numpy()
        return values

    def remember(self, transition: Transition) -> None:
        """Learn from *transition* from now on."""
        self._memory.append(transition)

    def learn(self) -> list[float]:
        """Fit the networks to what is remembered; the mean squared error of each epoch."""
        import torch

        memory, options = list(self._memory), self.options
        if not memory:
            return []
        states = torch.from_numpy(np.array([t.state for t in memory])).float()
        heads = torch.tensor([t.head for t in memory])
        choices = torch.tensor([t.choice for t in memory])
        goals, errors = self._goals(memory, heads), []
        for _ in range(options.epochs):
            total = 0.0
            for at in torch.randperm(len(memory)).split(options.batch):
                self._optimiser.zero_grad()
                worth = self._net(states[at])[torch.arange(len(at)), heads[at], choices[at]]
                squares = (worth - goals[at]).square()
                squares.mean().backward()
                self._optimiser.step()
                total += float(squares.detach().sum())
            errors.append(total / len(memory))
        self._target.load_state_dict(self._net.state_dict())
        return errors

    def _goals(self, memory: list[Transition], heads: Tensor) -> Tensor:
        """The reward of each transition plus the discounted value of the best next move."""
        import torch

        after = torch.from_numpy(np.array([t.after for t in memory])).float()
        legal = torch.from_numpy(np.array([t.legal for t in memory]))
        rewards = torch.tensor([t.reward for t in memory])
        with torch.no_grad():
            later = self._target(after)[torch.arange(len(memory)), heads]
        best = later.masked_fill(~legal, -float("inf")).amax(1)
        return rewards + self.options.discount * best.masked_fill(~legal.any(1), 0.0)
