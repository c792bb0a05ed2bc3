"""Proximal policy optimisation: an actor that chooses moves and a critic that values places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansorpy.cost.nest_view import Floats
from ansorpy.schedule.space import Table
from ansorpy.search.walks.actions import Masks
from ansorpy.search.walks.networks import Adam, Perceptrons

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
    """What chains did: arrays by ``[step, chain]``.

    Args:
        states: What the policy saw, and at last where the chains arrived: one step more.
        legal: The choices it had: ``[step, chain, head, choice]``.
        choices: What it chose: ``[step, chain, head]``.
        logs: Logarithms of the probabilities with which it chose that.
        rewards: What each step was worth.
        ends: Whether the chain left off after the step, so that what follows is not its doing.
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

    def __init__(
        self, inputs: int, heads: int, choices: int, options: PpoOptions, rng: np.random.Generator
    ) -> None:
        self.options = options
        width = options.trunk[-1]
        self._trunk = Perceptrons((inputs, *options.trunk), 1, rng)
        self._heads = Perceptrons((width, *options.head, choices), heads, rng)
        self._critic = Perceptrons((inputs, *options.critic, 1), 1, rng)
        self._actor_step = Adam(options.actor_rate)
        self._critic_step = Adam(options.critic_rate)

    def act(self, states: Floats, legal: Masks, rng: np.random.Generator) -> tuple[Table, Floats]:
        """``choices[row, head]``, drawn by the policy, and the logarithm of their probability."""
        logs = self._logs(states, legal)[-1]
        below = np.exp(logs).cumsum(axis=2)
        drawn = rng.random((*logs.shape[:2], 1)) * below[:, :, -1:]
        choices = (below > drawn).argmax(axis=2)
        return choices, _chosen(logs, choices)

    def values(self, states: Floats) -> Floats:
        """What the critic expects of each state: its discounted rewards."""
        return self._critic(states)[0, :, 0]

    def advantages(self, trail: Trail) -> Floats:
        """``[step, chain]``: how much better each step did than the critic expected."""
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

    def learn(self, trail: Trail, rng: np.random.Generator) -> None:
        """Make what did better than expected more likely, and expect what came."""
        advantages = self.advantages(trail)
        states = trail.states[:-1].reshape(-1, trail.states.shape[-1])
        returns = advantages.ravel() + self.values(states)
        weights = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        legal = trail.legal.reshape(-1, *trail.legal.shape[2:])
        choices = trail.choices.reshape(-1, trail.choices.shape[2])
        for _ in range(self.options.epochs):
            order = rng.permutation(len(states))
            for first in range(0, len(order), self.options.batch):
                at = order[first : first + self.options.batch]
                self._improve(
                    states[at], legal[at], choices[at], trail.logs.ravel()[at], weights.ravel()[at]
                )
                self._fit(states[at], returns[at])

    def _logs(self, states: Floats, legal: Masks) -> tuple[list[Floats], list[Floats], Floats]:
        """The layers of trunk and heads, and ``logs[row, head, choice]`` of the probabilities."""
        trunk = self._trunk.layers(states)
        heads = self._heads.layers(np.tanh(trunk[-1][0]))
        scores = heads[-1].swapaxes(0, 1) / self.options.temperature
        scores = np.where(legal, scores, -np.inf)
        scores = scores - scores.max(axis=2, keepdims=True)
        total = np.exp(scores).sum(axis=2, keepdims=True)
        return trunk, heads, np.where(legal, scores, -np.inf) - np.log(total)

    def _improve(
        self, states: Floats, legal: Masks, choices: Table, before: Floats, weights: Floats
    ) -> None:
        """One step of the actor; *before* are the logarithms with which the choices were made."""
        options = self.options
        trunk, heads, logs = self._logs(states, legal)
        chances = np.exp(logs)
        ratio = np.exp(np.clip(_chosen(logs, choices) - before, -20, 20))
        beyond = np.where(weights > 0, ratio > 1 + options.clip, ratio < 1 - options.clip)
        pull = np.where(beyond, 0.0, weights * ratio)[:, None, None]
        taken = np.arange(logs.shape[2]) == choices[:, :, None]
        finite = np.where(legal, logs, 0.0)
        spread = -(chances * finite).sum(axis=2, keepdims=True)
        slope = -pull * (taken - chances)
        slope += options.entropy * chances * (finite + spread) / logs.shape[1]
        slope = np.where(legal, slope, 0.0) / (options.temperature * len(states))
        top, inputs = self._heads.gradients(heads, slope.swapaxes(0, 1))
        hidden = np.tanh(trunk[-1])
        below, _ = self._trunk.gradients(trunk, inputs.sum(axis=0) * (1 - hidden**2))
        self._actor_step.step([*self._trunk.weights, *self._heads.weights], [*below, *top])

    def _fit(self, states: Floats, returns: Floats) -> None:
        """One step of the critic towards *returns*."""
        layers = self._critic.layers(states)
        slope = (layers[-1] - returns[None, :, None]) / len(states)
        self._critic_step.step(self._critic.weights, self._critic.gradients(layers, slope)[0])


def _chosen(logs: Floats, choices: npt.NDArray[np.int64]) -> Floats:
    """The logarithm of the probability of all heads' choices together, for each row."""
    taken: Floats = np.take_along_axis(logs, choices[:, :, None], axis=2)[:, :, 0].sum(axis=1)
    return taken
