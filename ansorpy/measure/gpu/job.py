"""What the run worker of a GPU does; which one is its own, ``ANSORPY_DEVICE`` says.

It ends when the GPU's context is lost; the driver restarts it and opens the task again.
"""

from __future__ import annotations

from collections.abc import Mapping

from ansorpy.codegen.cuda.device import Device
from ansorpy.codegen.cuda.driver import CudaDevice
from ansorpy.config import DEVICE
from ansorpy.measure.gpu.task import GpuTask
from ansorpy.measure.run_job import RunSession
from ansorpy.measure.worker import Handler

__all__ = ["handlers_on", "make_handlers"]


def handlers_on(device: Device) -> Mapping[str, Handler]:
    """The handlers of a worker that has *device*."""
    return RunSession(lambda dag, seed, threads: GpuTask(dag, seed, device)).handlers()


def make_handlers() -> Mapping[str, Handler]:
    """The handlers of the run worker, made once the GPU's context is."""
    return handlers_on(CudaDevice(DEVICE.get() or 0))
