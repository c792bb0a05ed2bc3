"""Functions that torch would take apart before a backend sees them, kept as one operator each.

Attention in parts is a dozen operators, and an interpolation reads its input by index tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.fx import GraphModule

__all__ = ["keep_whole"]


@torch.library.custom_op("ansorpy::scaled_dot_product_attention", mutates_args=())
def _attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    return F.scaled_dot_product_attention(  # type: ignore[no-any-return]
        q, k, v, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


@_attention.register_fake
def _(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *others: Any) -> torch.Tensor:
    return q.new_empty((*q.shape[:-1], v.shape[-1]))


_WHOLE: dict[Callable[..., Any], Any] = {
    F.scaled_dot_product_attention: torch.ops.ansorpy.scaled_dot_product_attention.default,
}


def keep_whole(module: GraphModule) -> GraphModule:
    """*module*, whose calls of these functions are calls of operators of ours."""
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target in _WHOLE:
            node.target = _WHOLE[node.target]
    module.recompile()
    return module
