"""Momentum: a network trains from a slowly moving teacher, which remembers other machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import nn

__all__ = ["Teacher", "Weight", "put_weights", "weights_of"]

Weight: TypeAlias = npt.NDArray[np.float32]
Weights: TypeAlias = Mapping[str, Weight]


@dataclass
class Teacher:
    """Weights from which a network trains anew at every *every*-th training.

    After each of these, the teacher moves ``1 - momentum`` of the way to what was trained.
    Paper: ASPLOS'25 (MoA-Pruner).  Source: Pruner's code.

    Args:
        weights: The teacher's; the first trained network's, if there are none yet.
    """

    momentum: float = 0.99
    every: int = 4
    weights: Weights = field(default_factory=dict)
    _trainings: int = field(default=0, init=False)

    @property
    def _is_turn(self) -> bool:
        return self._trainings % self.every == 0

    def before(self, net: nn.Module) -> None:
        """Put the teacher's weights into *net* if it is to train from them."""
        if self.weights and self._is_turn:
            put_weights(net, self.weights)

    def after(self, net: nn.Module) -> None:
        """Move towards *net*, if it was trained from the teacher."""
        if not self.weights:
            self.weights = weights_of(net)
        elif self._is_turn:
            m = np.float32(self.momentum)
            trained = weights_of(net)
            self.weights = {n: m * w + (1 - m) * trained[n] for n, w in self.weights.items()}
        self._trainings += 1


def weights_of(net: nn.Module) -> dict[str, Weight]:
    """A copy of all weights by name."""
    return {name: tensor.numpy().copy() for name, tensor in net.state_dict().items()}


def put_weights(net: nn.Module, weights: Weights) -> None:
    """Replace all weights of *net*."""
    import torch

    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
