"""Proximal policy optimisation: an actor that chooses moves and a critic that values states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ansorpy.arrays import Floats, Masks
from ansorpy.schedule.space import Table
from ansorpy.search.walks.networks import perceptrons

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Ppo", "PpoOptions", "Trail"]


@dataclass(frozen=True)
class PpoOptions:
    """Hyper-parameters; the defaults are Chameleon's.

    Args:
        trunk: Units of the actor's hidden layers, which all heads share.
        head: Units of the hidden layers that each head has for itself.
        critic: Units of the critic's hidden layers.
        temperature: What the actor's outputs are divided by.
        discount: Weight of the next step's reward (gamma).
        smoothing: Weight of the next step's advantage (lambda).
        clip: How far a choice's probability may move in one round of learning, as a share.
        entropy: Weight of the heads' mean entropy, which keeps them from settling too early.
        batch: Rows of a gradient step.
    """

    trunk: tuple[int, ...] = (20, 20)
    head: tuple[int, ...] = (20,)
    critic: tuple[int, ...] = (20, 20, 20)
    temperature: float = 0.1
    actor_rate: float = 1e-3
    critic_rate: float = 1e-3
    discount: float = 0.9
    smoothing: float = 0.99
    clip: float = 0.2
    entropy: float = 0.3
    epochs: int = 3
    batch: int = 256


@dataclass(frozen=True)
class Trail:
    """The steps of chains: arrays by ``[step, chain]``.

    Args:
        states: What the policy saw before each step, and after the last one.
        legal: The choices it had: ``[step, chain, head, choice]``.
        choices: What it chose: ``[step, chain, head]``.
        logs: Logarithms of the probabilities of these choices.
        rewards: Rewards of the steps.
        ends: Whether the chain started anew after the step, so that later rewards are not its own.
    """

    states: Floats
    legal: Masks
    choices: Table
    logs: Floats
    rewards: Floats
    ends: Masks


class Ppo:
    """A policy with one head for each part of an action, and a critic.

    Paper: Schulman et al., arXiv 1707.06347, with generalised advantages (arXiv 1506.02438).

    Args:
        inputs: Length of a state.
        heads, choices: Number of heads, and of choices that the widest of them has.
    """

    def __init__(self, inputs: int, heads: int, choices: int, options: PpoOptions) -> None:
        from torch import nn, optim

        self.options = options
        width = options.trunk[-1]
        self._actor = nn.Sequential(
            perceptrons((inputs, *options.trunk), 1, nn.Tanh), nn.Flatten(1), nn.Tanh(),
            perceptrons((width, *options.head, choices), heads, nn.Tanh),
        )  # fmt: skip
        self._critic = perceptrons((inputs, *options.critic, 1), 1, nn.Tanh)
        self._optimiser = optim.Adam(
            [
                {"params": self._actor.parameters(), "lr": options.actor_rate},
                {"params": self._critic.parameters(), "lr": options.critic_rate},
            ],
            eps=1e-5,
        )

    def act(self, states: Floats, legal: Masks) -> tuple[Table, Floats]:
        """``choices[row, head]``, drawn by the policy, and the logarithm of their probability."""
        import torch

        with torch.no_grad():
            logs = self._logs(_tensor(states), torch.from_numpy(legal))
            drawn = torch.multinomial(logs.exp().flatten(0, 1), 1)
            choices = drawn.reshape(logs.shape[:2])
            return choices.numpy(), _chosen(logs, choices).double().numpy()

    def values(self, states: Floats) -> Floats:
        """The critic's estimate of each state's discounted rewards."""
        import torch

        with torch.no_grad():
            values: Floats = self._critic(_tensor(states)).flatten().double().numpy()
        return values

    def advantages(self, trail: Trail) -> Floats:
        """``[step, chain]``: how much each step earned beyond the critic's estimate."""
        steps, chains = trail.rewards.shape
        flat = trail.states.reshape(-1, trail.states.shape[-1])
        values = self.values(flat).reshape(steps + 1, chains)
        onward = self.options.discount * np.where(trail.ends, 0.0, 1.0)
        surprise = trail.rewards + onward * values[1:] - values[:-1]
        found, after = np.zeros_like(surprise), np.zeros(chains)
        for step in reversed(range(steps)):
            after = surprise[step] + onward[step] * self.options.smoothing * after
            found[step] = after
        return found

    def learn(self, trail: Trail) -> None:
        """Make choices with advantages more likely, and fit the critic to what they earned."""
        import torch

        advantages = self.advantages(trail)
        weights = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        flat = trail.states[:-1].reshape(-1, trail.states.shape[-1])
        rows = [
            _tensor(flat),
            torch.from_numpy(trail.legal).flatten(0, 1),
            torch.from_numpy(trail.choices).flatten(0, 1),
            _tensor(trail.logs.ravel()),
            _tensor(weights.ravel()),
            _tensor(advantages.ravel() + self.values(flat)),
        ]
        for _ in range(self.options.epochs):
            for at in torch.randperm(len(flat)).split(self.options.batch):
                self._optimiser.zero_grad()
                self._loss(*(row[at] for row in rows)).backward()
                self._optimiser.step()

    def _logs(self, states: Tensor, legal: Tensor) -> Tensor:
        """``[row, head, choice]``: the logarithms of the probabilities, -inf if not legal."""
        scores = self._actor(states) / self.options.temperature
        return scores.masked_fill(~legal, -float("inf")).log_softmax(2)

    def _loss(
        self,
        states: Tensor,
        legal: Tensor,
        choices: Tensor,
        before: Tensor,
        weights: Tensor,
        returns: Tensor,
    ) -> Tensor:
        """The loss of actor and critic; *before* are the logarithms when the choices were made."""
        logs = self._logs(states, legal)
        ratio = (_chosen(logs, choices) - before).clamp(-20, 20).exp()
        clipped = ratio.clamp(1 - self.options.clip, 1 + self.options.clip)
        gain = (ratio * weights).minimum(clipped * weights).mean()
        entropy = -(logs.exp() * logs.masked_fill(~legal, 0.0)).sum(2).mean()
        error = (self._critic(states).flatten() - returns).square().mean()
        return error - gain - self.options.entropy * entropy


def _tensor(numbers: Floats) -> Tensor:
    import torch

    return torch.from_numpy(numbers).float()


def _chosen(logs: Tensor, choices: Tensor) -> Tensor:
    """The logarithm of the probability of all heads' choices together, for each row."""
    return logs.gather(2, choices[:, :, None])[:, :, 0].sum(1)
