"""The shape of the walks' networks: many small ones side by side, computed as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

__all__ = ["perceptrons"]


def perceptrons(sizes: Sequence[int], count: int, activation: Any) -> nn.Sequential:
    """*count* networks of linear layers: ``[row, input]`` to ``[row, network, output]``.

    All see the same input.  Layers after the first are grouped convolutions over a single element.

    Args:
        sizes: Numbers of inputs, of units in each hidden layer, and of outputs.
        activation: The class of what follows every layer but the last.
    """
    from torch import nn

    first, *others = (count * size for size in sizes[1:])
    layers: list[nn.Module] = [nn.Linear(sizes[0], first), nn.Unflatten(1, (first, 1))]
    for before, after in zip((first, *others), others, strict=False):
        layers += [activation(), nn.Conv1d(before, after, 1, groups=count)]
    return nn.Sequential(*layers, nn.Unflatten(1, (count, sizes[-1])), nn.Flatten(2))
