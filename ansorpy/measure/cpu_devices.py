"""CPU cores as the devices of a backend: those of this machine, or of a Ray cluster."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module

from ansorpy.codegen.c.loader import load
from ansorpy.errors import UsageError
from ansorpy.ir.task import Task
from ansorpy.measure.run.device import OpenTask
from ansorpy.measure.run.host import HostTask
from ansorpy.measure.run.interfaces import Machines
from ansorpy.measure.run.runner import LocalRunner, MeasureOptions
from ansorpy.target import Target

__all__ = ["CompiledC", "HostCores"]

_FLEET = "ansorpy.measure.fleet"
"""The modules that measure on other machines, which are imported only for these."""


class HostCores:
    """The cores that this process may use (:class:`ansorpy.measure.devices.Devices`)."""

    has_rates = True

    def open(self, target: Target, options: MeasureOptions) -> AbstractContextManager[Machines]:
        return LocalRunner(options)

    def open_task(self, task: Task, seed: int) -> OpenTask:
        return HostTask(task.dag, seed, task.threads)

    def open_cluster(
        self, address: str, options: MeasureOptions
    ) -> AbstractContextManager[Machines]:
        fleet = import_module(f"{_FLEET}.ray_cluster").connect(address, options)
        runner: AbstractContextManager[Machines] = import_module(f"{_FLEET}.runner").FleetRunner(
            fleet, options
        )
        return runner


class CompiledC:
    """The same cores, running generated C that this machine's compiler compiled.

    They stand in for machines that are not available, so the rates measured here are not theirs.
    """

    has_rates = False

    def open(self, target: Target, options: MeasureOptions) -> AbstractContextManager[Machines]:
        return LocalRunner(options, module="ansorpy.measure.run.c_handlers")

    def open_task(self, task: Task, seed: int) -> OpenTask:
        return HostTask(task.dag, seed, task.threads, load)

    def open_cluster(
        self, address: str, options: MeasureOptions
    ) -> AbstractContextManager[Machines]:
        raise UsageError(
            "a cluster does not compile C", hint="leave out --workers (workers= in Python)"
        )
