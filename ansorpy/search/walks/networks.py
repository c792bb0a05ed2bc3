"""Small fully connected networks and the rules that train them.

The networks of these walks have some hundred to some thousand weights and see a few hundred rows at
a time.  A layer is one product of matrices, and its gradient two, so numpy is all they need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ansorpy.cost.nest_view import Floats

__all__ = ["Adadelta", "Adam", "Perceptrons"]


class Perceptrons:
    """*count* networks of the same shape, side by side: ``outputs[network, row, output]``.

    Hidden layers are rectified, or have tanh; the last layer is linear.

    Args:
        sizes: Numbers of inputs, of units in each hidden layer, and of outputs.
    """

    def __init__(
        self, sizes: Sequence[int], count: int, rng: np.random.Generator, *, rectified: bool = False
    ) -> None:
        self.rectified = rectified
        self.weights = [
            rng.uniform(-1, 1, size=(count, inputs + 1, outputs)) / np.sqrt(max(inputs, 1))
            for inputs, outputs in zip(sizes, sizes[1:], strict=False)
        ]

    def layers(self, inputs: Floats) -> list[Floats]:
        """The inputs of every layer, the bias's ones included, and at last the outputs.

        *inputs* are ``[row, input]``, the same for all networks, or ``[network, row, input]``.
        """
        found = []
        for at, weight in enumerate(self.weights):
            hidden = inputs if not at else self._active(inputs)
            found.append(np.concatenate([hidden, np.ones((*hidden.shape[:-1], 1))], axis=-1))
            inputs = found[-1] @ weight
        return [*found, inputs]

    def __call__(self, inputs: Floats) -> Floats:
        """``outputs[network, row, output]``."""
        return self.layers(inputs)[-1]

    def gradients(self, layers: Sequence[Floats], slope: Floats) -> tuple[list[Floats], Floats]:
        """Gradients of the weights and of the inputs, given the loss's *slope* by the outputs."""
        found: list[Floats] = []
        for at in reversed(range(len(self.weights))):
            found.insert(0, layers[at].swapaxes(-1, -2) @ slope)
            slope = slope @ self.weights[at][:, :-1].swapaxes(-1, -2)
            if at:
                hidden = layers[at][..., :-1]
                slope = slope * ((hidden > 0) if self.rectified else 1 - hidden**2)
        return found, slope

    def _active(self, sums: Floats) -> Floats:
        active: Floats = np.maximum(sums, 0) if self.rectified else np.tanh(sums)
        return active


@dataclass
class Adam:
    """Steps of about equal length for all weights (Kingma and Ba, ICLR 2015)."""

    rate: float
    epsilon: float = 1e-5
    decays: tuple[float, float] = (0.9, 0.999)
    _means: list[tuple[Floats, Floats]] = field(default_factory=list, repr=False)
    _steps: int = field(default=0, repr=False)

    def step(self, weights: Sequence[Floats], gradients: Sequence[Floats]) -> None:
        """Change *weights* in place against their *gradients*."""
        self._means = self._means or [(np.zeros_like(w), np.zeros_like(w)) for w in weights]
        self._steps += 1
        slow, slower = (1 - decay**self._steps for decay in self.decays)
        for weight, gradient, (mean, square) in zip(weights, gradients, self._means, strict=True):
            mean += (1 - self.decays[0]) * (gradient - mean)
            square += (1 - self.decays[1]) * (gradient**2 - square)
            weight -= self.rate * (mean / slow) / (np.sqrt(square / slower) + self.epsilon)


@dataclass
class Adadelta:
    """Steps as long as recent ones, by size of recent gradients (Zeiler, arXiv 1212.5701)."""

    rate: float
    decay: float = 0.9
    epsilon: float = 1e-6
    _means: list[tuple[Floats, Floats]] = field(default_factory=list, repr=False)

    def step(self, weights: Sequence[Floats], gradients: Sequence[Floats]) -> None:
        """Change *weights* in place against their *gradients*."""
        self._means = self._means or [(np.zeros_like(w), np.zeros_like(w)) for w in weights]
        for weight, gradient, (square, moved) in zip(weights, gradients, self._means, strict=True):
            square += (1 - self.decay) * (gradient**2 - square)
            change = gradient * np.sqrt(moved + self.epsilon) / np.sqrt(square + self.epsilon)
            moved += (1 - self.decay) * (change**2 - moved)
            weight -= self.rate * change
