"""Launch plan of a GPU program: its kernels in launch order, and their workspace.

Besides the code, a caller needs only a :class:`LaunchPlan`: allocate ``workspace_bytes`` once, and
launch every kernel of ``launches`` in order on one stream, which also orders their memory accesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

__all__ = ["ALIGNMENT", "Argument", "Extents", "Launch", "LaunchPlan"]

ALIGNMENT = 16
"""Bytes of the widest access of a thread.  CUDA's own allocations are aligned to 256."""

Extents = tuple[int, int, int]
"""Extents along x, y and z."""


@dataclass(frozen=True)
class Argument:
    """One pointer that a kernel receives.

    Args:
        name: The buffer it points to.
        place: ``parameter``: the program's parameter number ``position``.  ``workspace``: byte
            ``position`` of the workspace.
        alignment: Required alignment of the address in bytes: that of an element if the tensor
            is part of another one, that of the widest access otherwise.
    """

    name: str
    place: Literal["parameter", "workspace"]
    position: int
    alignment: int = ALIGNMENT


@dataclass(frozen=True)
class Launch:
    """One kernel: its name in the module, its grid and block extents, and its arguments.

    Shared memory is declared in the kernel (``static_shared_bytes``) up to the default limit of a
    block; beyond that limit, all of it is passed at launch (``dynamic_shared_bytes``).
    """

    kernel: str
    grid: Extents
    block: Extents
    arguments: tuple[Argument, ...]
    static_shared_bytes: int = 0
    dynamic_shared_bytes: int = 0

    @property
    def threads(self) -> int:
        """Number of threads per block."""
        return prod(self.block)

    @property
    def shared_bytes(self) -> int:
        return self.static_shared_bytes + self.dynamic_shared_bytes


@dataclass(frozen=True)
class LaunchPlan:
    """Kernels in launch order; see the module's docstring."""

    launches: tuple[Launch, ...]
    workspace_bytes: int
