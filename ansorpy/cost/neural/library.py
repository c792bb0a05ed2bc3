"""The library of networks, an extra: loaded when a model is made, and used on few threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ansorpy.errors import MissingDependency

__all__ = ["demand_torch", "on_threads"]


def demand_torch(asker: str) -> Any:
    """The module ``torch``.

    Raises:
        MissingDependency: It is not installed, so there can be no *asker*.
    """
    try:
        import torch
    except ImportError:
        raise MissingDependency(
            f"{asker} is a network, which needs torch", hint="pip install 'ansorpy[torch]'"
        ) from None
    return torch


@contextmanager
def on_threads(number: int, seed: int) -> Iterator[None]:
    """Let torch use *number* threads and draw from *seed* inside; restore its state afterwards."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(before)
