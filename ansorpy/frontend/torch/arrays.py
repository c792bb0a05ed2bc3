"""Tensors as arrays of numpy and back, in the same memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ansorpy.frontend.torch.writer import DTYPES

__all__ = ["array_of", "tensor_of"]


def array_of(tensor: torch.Tensor) -> NDArray[Any]:
    """The memory of *tensor*, or a copy if its elements are not in order."""
    plain = tensor.detach().resolve_neg().contiguous()
    if plain.dtype != torch.bfloat16:
        return plain.numpy()
    bits: NDArray[Any] = plain.view(torch.int16).numpy()
    return bits.view(DTYPES[torch.bfloat16])


def tensor_of(array: NDArray[Any], dtype: torch.dtype) -> torch.Tensor:
    """The memory of *array*, which is contiguous, as a tensor."""
    if dtype != torch.bfloat16:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
