"""Blocks that several networks are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["attention", "dense", "residual"]


def dense(*widths: int) -> nn.Sequential:
    """Linear layers between these *widths*, each followed by a rectifier."""
    from torch import nn

    layers: list[nn.Module] = []
    for before, after in zip(widths, widths[1:], strict=False):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers)


def residual(blocks: nn.ModuleList, x: Tensor) -> Tensor:
    """*x* through *blocks*, each of which adds its output to its input."""
    for block in blocks:
        x = x + block(x)
    return x


def attention(layer: nn.MultiheadAttention, x: Tensor, real: Tensor) -> Tensor:
    """*x* plus its self-attention over the real rows of each program."""
    gathered: Tensor = layer(x, x, x, key_padding_mask=~real, need_weights=False)[0]
    return x + gathered
