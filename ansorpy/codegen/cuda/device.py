"""What ansorpy asks of a GPU: memory, modules, launches on one stream, events and graphs.

The one implementation over CUDA is :mod:`ansorpy.codegen.cuda.driver`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy.typing as npt

from ansorpy.codegen.cuda.plan import Launch, LaunchPlan
from ansorpy.errors import AnsorpyError

__all__ = ["Device", "DeviceLost", "launch_all", "repeat"]

Array = npt.NDArray[Any]


class DeviceLost(AnsorpyError):
    """The context of a GPU is unusable, as after an access outside of all memory.

    Whatever is asked of the GPU in this process fails from now on; another process may go on.
    """


class Device(Protocol):
    """One GPU in this process.  Addresses are its own; sizes are in bytes.

    Fills, copies, launches and replays go to one stream and run in the order they are asked for.
    ``upload`` and ``download`` are done when they return, and wait for what came before.

    Every method raises :class:`DeviceLost` when the context is unusable, and ``CodegenError`` for
    anything else the GPU refuses.
    """

    def allocate(self, size: int) -> int:
        """The address of *size* bytes, a multiple of 256."""

    def release(self, address: int) -> None:
        """Give back what :meth:`allocate` returned."""

    def upload(self, address: int, source: Array) -> None:
        """Copy the dense array *source* to *address*."""

    def download(self, address: int, into: Array) -> None:
        """Copy from *address* to the dense array *into*."""

    def copy(self, address: int, source: int, size: int) -> None:
        """Copy within the GPU's memory."""

    def fill(self, address: int, byte: int, size: int) -> None:
        """Set *size* bytes to *byte*."""

    def equal(self, address: int, other: int, size: int) -> bool:
        """Whether *size* bytes at two addresses, multiples of 16, are the same."""

    def load(self, cubin: bytes) -> object:
        """A module: the kernels of *cubin*, which can be launched."""

    def unload(self, module: object) -> None:
        """Give back what :meth:`load` returned."""

    def launch(self, module: object, launch: Launch, addresses: Sequence[int]) -> None:
        """Start a kernel of *module* with one address an argument."""

    def synchronise(self) -> None:
        """Wait until all is done."""

    def wait_for(self, stream: int) -> None:
        """Let what follows wait for what another CUDA stream of this process has been given."""

    def seconds(self, work: Callable[[], None]) -> float:
        """Seconds on the GPU of what *work* asks for, by events around it."""

    def capture(self, work: Callable[[], None]) -> object:
        """A graph of the launches, copies and fills *work* asks for, none of which is done yet."""

    def replay(self, graph: object) -> None:
        """Do what the graph holds."""

    def discard(self, graph: object) -> None:
        """Give back what :meth:`capture` returned."""


def launch_all(
    device: Device, module: object, plan: LaunchPlan, parameters: Sequence[int], workspace: int
) -> None:
    """Launch the kernels of *plan* in order.

    Args:
        parameters: Addresses of the program's parameters.
        workspace: Address of at least ``plan.workspace_bytes`` bytes.
    """
    for launch in plan.launches:
        addresses = [
            parameters[a.position] if a.place == "parameter" else workspace + a.position
            for a in launch.arguments
        ]
        device.launch(module, launch, addresses)


def repeat(times: int, work: Callable[[], None]) -> None:
    """Do *work* so many times."""
    for _ in range(times):
        work()
