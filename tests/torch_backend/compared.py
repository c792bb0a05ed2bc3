"""Compares what a compiled module returns with what torch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map

from ansorpy.torch_backend import Backend

__all__ = ["agrees", "copied"]


def copied(values: Any) -> Any:
    """*values* with each tensor copied."""
    return tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, values)


def agrees(
    backend: Backend, module: Callable[..., Any], *inputs: Any, compiled: Any = None,
    rtol: float = 1e-3, atol: float = 1e-4,
) -> Any:  # fmt: skip
    """Call *module* compiled and as it is on copies of *inputs*; compare all results and inputs.

    Returns the compiled module, to be called again.
    """
    compiled = torch.compile(module, backend=backend) if compiled is None else compiled
    ours, theirs = copied(inputs), copied(inputs)
    with torch.no_grad():
        got, want = compiled(*ours), module(*theirs)
    torch.testing.assert_close(got, want, rtol=rtol, atol=atol)
    torch.testing.assert_close(ours, theirs, rtol=rtol, atol=atol)
    return compiled
