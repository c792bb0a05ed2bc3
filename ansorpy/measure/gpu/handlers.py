"""Handlers of a GPU's run worker; ``ANSORPY_DEVICE`` holds the number of its GPU.

The worker ends when the GPU's context is lost; the driver restarts it and opens the task again.
"""

from __future__ import annotations

from collections.abc import Mapping

from ansorpy.codegen.cuda.device.driver import CudaDevice
from ansorpy.codegen.cuda.device.protocol import Device
from ansorpy.config import DEVICE
from ansorpy.measure.gpu.task import GpuTask
from ansorpy.measure.run.handlers import RunSession
from ansorpy.measure.workers.worker import Handler

__all__ = ["handlers_on", "make_handlers"]


def handlers_on(device: Device) -> Mapping[str, Handler]:
    """Handlers of a worker that runs candidates on *device*."""
    return RunSession(lambda dag, seed, threads: GpuTask(dag, seed, device)).handlers()


def make_handlers() -> Mapping[str, Handler]:
    """Handlers of the run worker; creates the GPU's context first."""
    return handlers_on(CudaDevice(DEVICE.get() or 0))
