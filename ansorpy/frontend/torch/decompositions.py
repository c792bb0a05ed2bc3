"""How operators without a translation are replaced by others, before a graph is translated."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch._decomp import core_aten_decompositions, get_decompositions

from ansorpy.frontend.torch.table import OPERATORS, name_of
from ansorpy.frontend.torch.whole import attention

__all__ = ["decompositions"]

_aten = torch.ops.aten
_MORE = (
    _aten._native_batch_norm_legit, _aten._native_batch_norm_legit_functional, _aten.bucketize,
    _aten.cumprod, _aten.linalg_vector_norm, _aten.native_batch_norm, _aten.unfold,
)  # fmt: skip
"""Operators of torch's core that torch can take apart."""


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """The replacements that torch knows, and ours, of operators that have no translation."""
    known = {**core_aten_decompositions(), **get_decompositions(_MORE), **_OWN}
    return {op: how for op, how in known.items() if name_of(op) not in OPERATORS}


def _encoder_layer(
    x: torch.Tensor, size: int, heads: int, qkv_weight: torch.Tensor, qkv_bias: torch.Tensor,
    out_weight: torch.Tensor, out_bias: torch.Tensor, use_gelu: bool, norm_first: bool, eps: float,
    *others: Any,
) -> Any:  # fmt: skip
    """What ``nn.TransformerEncoderLayer`` calls outside training, without a mask."""
    weights, mask = others[:8], others[8] if len(others) > 8 else None
    if mask is not None or x.is_nested:
        return NotImplemented
    scale_1, shift_1, scale_2, shift_2, up_weight, up_bias, down_weight, down_bias = weights

    def attended(value: torch.Tensor) -> torch.Tensor:
        return _self_attention(value, size, heads, qkv_weight, qkv_bias, out_weight, out_bias)

    def transformed(value: torch.Tensor) -> torch.Tensor:
        hidden = F.linear(value, up_weight, up_bias)
        return F.linear(F.gelu(hidden) if use_gelu else F.relu(hidden), down_weight, down_bias)

    if norm_first:
        x = x + attended(F.layer_norm(x, (size,), scale_1, shift_1, eps))
        return x + transformed(F.layer_norm(x, (size,), scale_2, shift_2, eps))
    x = F.layer_norm(x + attended(x), (size,), scale_1, shift_1, eps)
    return F.layer_norm(x + transformed(x), (size,), scale_2, shift_2, eps)


def _multi_head_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, size: int, heads: int,
    qkv_weight: torch.Tensor, qkv_bias: torch.Tensor, out_weight: torch.Tensor,
    out_bias: torch.Tensor, mask: torch.Tensor | None = None, need_weights: bool = True,
    *others: Any,
) -> Any:  # fmt: skip
    """What ``nn.MultiheadAttention`` calls outside training, without a mask and weights."""
    if mask is not None or need_weights or q is not k or q is not v or q.is_nested:
        return NotImplemented
    found = _self_attention(q, size, heads, qkv_weight, qkv_bias, out_weight, out_bias)
    return found, q.new_empty((0,))


def _self_attention(
    x: torch.Tensor, size: int, heads: int, qkv_weight: torch.Tensor, qkv_bias: torch.Tensor,
    out_weight: torch.Tensor, out_bias: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    batch, rows, _ = x.shape
    parts = F.linear(x, qkv_weight, qkv_bias).view(batch, rows, 3, heads, size // heads)
    q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
    mixed = attention(q, k, v)
    return F.linear(mixed.transpose(1, 2).reshape(batch, rows, size), out_weight, out_bias)


_OWN: dict[Any, Callable[..., Any]] = {
    _aten._native_multi_head_attention.default: _multi_head_attention,
    _aten._transformer_encoder_layer_fwd.default: _encoder_layer,
}
