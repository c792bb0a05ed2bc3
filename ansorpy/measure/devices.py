"""The devices that run candidates, one entry for each backend."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from ansorpy.ir.task import Task
from ansorpy.measure.run.device import OpenTask
from ansorpy.measure.run.interfaces import Machines
from ansorpy.measure.run.runner import MeasureOptions
from ansorpy.registry import Registry
from ansorpy.target import Target

__all__ = ["DEVICES", "Devices", "devices_of"]


class Devices(Protocol):
    """The devices on which programs of one backend are built and timed."""

    @property
    def has_rates(self) -> bool:
        """Whether the rates measured on this machine's cores apply to these devices."""

    def open(self, target: Target, options: MeasureOptions) -> AbstractContextManager[Machines]:
        """Open this machine's devices for *target*; leaving the context ends their workers."""

    def open_task(self, task: Task, seed: int) -> OpenTask:
        """Open *task*, whose candidates run in this process; a crash in one ends it."""

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
