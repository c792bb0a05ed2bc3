"""The devices that run candidates, one entry for each backend."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.result import MeasureResult
from ansorpy.measure.run.runner import MeasureOptions, Runner
from ansorpy.registry import Registry
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["DEVICES", "Devices", "Machines", "devices_of"]


class Machines(Runner, Protocol):
    """A runner that can also re-time finalists and return the code it timed."""

    def retime(
        self, task: Task, candidates: Sequence[State], *, rounds: int = 9
    ) -> list[MeasureResult] | None:
        """Re-time finalists in turns on one machine; None when no machine is left."""

    def build(self, task: Task, candidates: Sequence[State]) -> list[Built | MeasureResult]:
        """Build each candidate: object code, or the result that explains the failure."""

    def built(self, object_digest: str) -> Built | None:
        """Return recently measured code by its digest."""


class Devices(Protocol):
    """The devices on which programs of one backend are built and timed."""

    @property
    def has_rates(self) -> bool:
        """Whether the rates measured on this machine's cores apply to these devices."""

    def open(self, target: Target, options: MeasureOptions) -> AbstractContextManager[Machines]:
        """Open this machine's devices for *target*; leaving the context ends their workers."""

    def open_cluster(
        self, address: str, options: MeasureOptions
    ) -> AbstractContextManager[Machines]:
        """Open the devices of the Ray cluster at *address*.

        Raises:
            UsageError: A cluster cannot time programs of this backend.
            MissingDependency: Ray is not installed, or the cluster cannot be joined.
        """


DEVICES: Registry[Devices] = Registry(
    "device",
    {
        "llvm": "ansorpy.measure.cpu_devices:HostCores",
        "cuda": "ansorpy.measure.gpu.devices:LocalGpus",
        "c": "ansorpy.measure.cpu_devices:CompiledC",
    },
)
"""The devices of each backend."""


def devices_of(target: Target) -> Devices:
    """The devices of *target*'s backend."""
    return DEVICES.one(target.backend)
