"""Interface to a GPU: memory, modules, launches on one stream, events and graphs.

The only implementation, for CUDA, is :mod:`ansorpy.codegen.cuda.device.driver`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ansorpy.arrays import Array
from ansorpy.codegen.cuda.device.checks import Difference, NearBounds
from ansorpy.codegen.cuda.launch.plan import Argument, Launch, LaunchPlan

__all__ = ["Device", "Order", "launch_all", "repeat"]


@dataclass(frozen=True)
class Order:
    """When a call runs: after the calls before it on *branch*, and after those numbered *after*."""

    branch: int
    after: tuple[int, ...] = ()


class Device(Protocol):
    """One GPU in this process.  Addresses are in its memory; sizes are in bytes.

    Fills, copies, launches and replays run on one stream, in the order of their calls.
    ``upload`` and ``download`` are synchronous and wait for earlier work.

    Programs of several threads take turns: each holds ``lock`` while it uses the stream.  Methods
    that only free resources (``release``, ``unload``, ``discard``) do not need the lock, because
    finalizers may call them at any time.

    Every method raises :class:`DeviceLost` if the context is unusable, and ``CodegenError`` for
    any other error of the GPU.
    """

    @property
    def number(self) -> int:
        """Which of this machine's GPUs it is, as CUDA counts."""

    @property
    def lock(self) -> AbstractContextManager[object]:
        """Held by the program whose turn it is."""

    def allocate(self, size: int) -> int:
        """Allocate *size* bytes at an address that is a multiple of 256."""

    def release(self, address: int) -> None:
        """Free memory that :meth:`allocate` returned."""

    def upload(self, address: int, source: Array) -> None:
        """Copy the dense array *source* to *address*."""

    def download(self, address: int, into: Array) -> None:
        """Copy from *address* to the dense array *into*."""

    def copy(self, address: int, source: int, size: int) -> None:
        """Copy within the GPU's memory."""

    def fill(self, address: int, byte: int, size: int) -> None:
        """Set *size* bytes to *byte*."""

    def equal(self, address: int, other: int, size: int) -> bool:
        """Whether *size* bytes at two addresses are equal; both are multiples of 16."""

    def filled(self, ranges: Sequence[tuple[int, int]], byte: int) -> list[bool]:
        """For each range, an address and a number of bytes: whether all its bytes are *byte*."""

    def difference(
        self, address: int, wanted: int, dtype: np.dtype[Any], count: int, bounds: NearBounds | None
    ) -> Difference:
        """How the *count* elements of *dtype* at *address* differ from those at *wanted*.

        With *bounds*, elements that differ by more count as wrong.  A wanted element whose bits are
        all ones must have the same bits: it lies in a gap between elements.
        """

    def load(self, cubin: bytes) -> object:
        """Load *cubin* as a module, whose kernels can be launched."""

    def unload(self, module: object) -> None:
        """Unload a module that :meth:`load` returned."""

    def launch(self, module: object, launch: Launch, values: Sequence[int]) -> None:
        """Start a kernel of *module* on a grid of numbers, with a value per argument."""

    def synchronise(self) -> None:
        """Wait until all work is done."""

    def wait_for(self, stream: int) -> None:
        """Make later work wait for the work enqueued so far on another CUDA stream."""

    def follow(self, producer: Callable[[int], object]) -> None:
        """Call *producer* with this stream's handle; it makes the stream wait for its own work."""

    def seconds(self, work: Callable[[], None]) -> float:
        """GPU time in seconds of the work that *work* enqueues, measured with CUDA events."""

    def seconds_each(self, works: Sequence[Callable[[], None]]) -> list[float]:
        """As :meth:`seconds`, of each of *works*, with a single event between two."""

    def capture(self, work: Callable[[], None]) -> object:
        """Capture the launches, copies and fills of *work* as a graph, without running them."""

    def overlap(self, works: Sequence[Callable[[], None]], orders: Sequence[Order]) -> None:
        """Enqueue each of *works*, which run when *orders* allow it, after all earlier work.

        Later work runs after all of them.
        """

    def replay(self, graph: object) -> None:
        """Run the work that the graph holds."""

    def discard(self, graph: object) -> None:
        """Free a graph that :meth:`capture` returned."""


def launch_all(
    device: Device,
    module: object,
    plan: LaunchPlan,
    parameters: Sequence[int],
    workspace: int,
    sizes: Sequence[int] = (),
) -> None:
    """Launch the kernels of *plan* in order.

    Args:
        parameters: Addresses of the program's parameters.
        workspace: Address of at least ``plan.workspace_bytes`` bytes.
        sizes: The sizes of ``plan.dims``.
    """

    def value(argument: Argument) -> int:
        match argument.place:
            case "parameter":
                return parameters[argument.position]
            case "workspace":
                return workspace + argument.position
        return sizes[argument.position]

    for launch in plan.at(sizes):
        device.launch(module, launch, [value(argument) for argument in launch.arguments])


def repeat(times: int, work: Callable[[], None]) -> None:
    """Call *work* *times* times."""
    for _ in range(times):
        work()
