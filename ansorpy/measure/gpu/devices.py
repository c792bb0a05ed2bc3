"""The GPUs of this machine as the devices of a backend."""

from __future__ import annotations

from contextlib import AbstractContextManager

from ansorpy.codegen.cuda.device.driver import bus_place, device_for
from ansorpy.errors import UsageError
from ansorpy.ir.task import Task
from ansorpy.measure.gpu.runner import Gpu, GpuRunner
from ansorpy.measure.gpu.task import GpuTask
from ansorpy.measure.run.device import OpenTask
from ansorpy.measure.run.interfaces import Machines
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.target import Target

__all__ = ["LocalGpus", "gpus_of"]


def gpus_of(target: Target) -> list[Gpu]:
    """This machine's GPUs that can run code for *target*; none if that is a CPU."""
    return [Gpu(number, bus_place(number)) for number in target.gpus()]


class LocalGpus:
    """The GPUs that run a target's code; even without one, its code can be built here."""

    has_rates = False

    def open(self, target: Target, options: MeasureOptions) -> AbstractContextManager[Machines]:
        gpus = gpus_of(target)
        return GpuRunner(gpus, options) if gpus else LocalRunner(options)

    def open_task(self, task: Task, seed: int) -> OpenTask:
        return GpuTask(task.dag, seed, device_for(task.target))

    def open_cluster(
        self, address: str, options: MeasureOptions
    ) -> AbstractContextManager[Machines]:
        raise UsageError(
            "a cluster's GPUs cannot be used", hint="leave out --workers (workers= in Python)"
        )
