"""What a program on a GPU consists of: kernels launched one after another, and their workspace.

A :class:`LaunchPlan` is all a caller needs beside the code: it allocates ``workspace_bytes`` once
and launches every kernel of ``launches`` in order on one stream, which also orders their accesses
to memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

__all__ = ["ALIGNMENT", "Argument", "Extents", "Launch", "LaunchPlan"]

ALIGNMENT = 16
"""Bytes; the widest access of a thread.  CUDA's own allocations are at multiples of 256."""

Extents = tuple[int, int, int]
"""Along x, y and z."""


@dataclass(frozen=True)
class Argument:
    """One pointer that a kernel receives.

    Args:
        name: The buffer it points to.
        place: ``parameter``: the program's parameter number ``position``.  ``workspace``: byte
            ``position`` of the workspace.
        alignment: Bytes that the address must be a multiple of: of an element where the tensor
            is a part of another one, of the widest access otherwise.
    """

    name: str
    place: Literal["parameter", "workspace"]
    position: int
    alignment: int = ALIGNMENT


@dataclass(frozen=True)
class Launch:
    """One kernel: its name in the module, how many blocks and threads, and its arguments.

    Shared memory is declared in the kernel (``static_shared_bytes``) up to what a block gets
    without asking; beyond, all of it is ``dynamic_shared_bytes`` of the launch.
    """

    kernel: str
    grid: Extents
    block: Extents
    arguments: tuple[Argument, ...]
    static_shared_bytes: int = 0
    dynamic_shared_bytes: int = 0

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return prod(self.block)

    @property
    def shared_bytes(self) -> int:
        return self.static_shared_bytes + self.dynamic_shared_bytes


@dataclass(frozen=True)
class LaunchPlan:
    """Kernels in the order they are launched; see the module's docstring."""

    launches: tuple[Launch, ...]
    workspace_bytes: int
