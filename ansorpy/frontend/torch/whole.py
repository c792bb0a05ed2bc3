"""Functions that torch would take apart before a backend sees them, kept as one operator each.

Attention in parts is a dozen operators, and an interpolation reads its input by index tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import torch
import torch.nn.functional as F
from torch.fx import GraphModule, Node

__all__ = ["keep_whole"]


@torch.library.custom_op("ansorpy::scaled_dot_product_attention", mutates_args=())
def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """As ``F.scaled_dot_product_attention``, by whose names a graph may give the arguments."""
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


def _autocast(*operands: Any, **named: Any) -> Any:
    """Attention is one of the functions that torch computes in the lower precision."""
    dtype = torch.get_autocast_dtype("cpu")

    def lower(x: Any) -> Any:
        is_float = isinstance(x, torch.Tensor) and x.is_floating_point()
        return x.to(dtype) if is_float and x.dtype != torch.float64 else x

    with torch.amp.autocast("cpu", enabled=False):
        return attention(*map(lower, operands), **{n: lower(x) for n, x in named.items()})


_LIBRARY = torch.library.Library("ansorpy", "FRAGMENT")
_LIBRARY.impl("scaled_dot_product_attention", _autocast, "AutocastCPU")


@attention.register_fake
def _(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *others: Any,
    enable_gqa: bool = False,
    **named: Any,
) -> Any:
    rows = -3 if enable_gqa else -2  # the heads of keys are repeated, not broadcast
    batch = torch.broadcast_shapes(*(x.shape[:rows] for x in (query, key, value)))
    return query.new_empty((*batch, *query.shape[rows:-1], value.shape[-1]))


@torch.library.custom_op("ansorpy::interpolate", mutates_args=())
def interpolate(
    x: torch.Tensor,
    size: Sequence[int] | None,
    scale_factor: Sequence[float] | None,
    mode: str,
    align_corners: bool | None,
) -> torch.Tensor:
    """As ``F.interpolate``, with a size or a factor for each axis."""
    return F.interpolate(x, size, scale_factor, mode, align_corners)


@interpolate.register_fake
def _(
    x: torch.Tensor,
    size: Sequence[int] | None,
    scale_factor: Sequence[float] | None,
    mode: str,
    align_corners: bool | None,
) -> Any:
    if size is None:
        pairs = zip(x.shape[2:], scale_factor or (), strict=True)
        size = [torch.sym_int(extent * factor) for extent, factor in pairs]
    return x.new_empty((*x.shape[:2], *size))


def keep_whole(module: GraphModule) -> GraphModule:
    """*module*, whose calls of these functions are calls of operators of ours."""
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        if node.target is F.scaled_dot_product_attention:
            node.target = torch.ops.ansorpy.scaled_dot_product_attention.default
        elif node.target is F.interpolate:
            _keep_interpolation(node)
    module.recompile()
    return module


def _keep_interpolation(node: Node) -> None:
    """Make *node* an operator of ours, unless it is one of the modes that few use."""
    bound = signature(F.interpolate).bind(*node.args, **node.kwargs)
    bound.apply_defaults()
    given = bound.arguments
    if given["antialias"] or given["recompute_scale_factor"] or given["mode"] not in _MODES:
        return
    spread = _spreading(given["input"].meta["example_value"].dim() - 2)
    node.args = (
        given["input"], spread(given["size"]), spread(given["scale_factor"]), given["mode"],
        given["align_corners"],
    )  # fmt: skip
    node.kwargs = {}
    node.target = torch.ops.ansorpy.interpolate.default


_MODES = ("nearest", "linear", "bilinear", "trilinear", "bicubic")


def _spreading(rank: int) -> Callable[[Any], Any]:
    def spread(value: Any) -> Any:
        given = value.meta["example_value"] if isinstance(value, Node) else value
        return value if given is None or isinstance(given, list | tuple) else [value] * rank

    return spread
