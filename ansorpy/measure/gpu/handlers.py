"""Handlers of a GPU's run worker; ``ANSORPY_DEVICE`` holds the number of its GPU.

The worker ends when the GPU's context is lost; a spare one takes over and opens the task again.
"""

from __future__ import annotations

from collections.abc import Mapping

from ansorpy.codegen.cuda.device.driver import CudaDevice
from ansorpy.codegen.cuda.device.protocol import Device
from ansorpy.config import DEVICE
from ansorpy.measure.gpu.task import GpuTask
from ansorpy.measure.run.handlers import RunSession
from ansorpy.measure.workers.worker import Handler

__all__ = ["handlers_on", "make_handlers", "warm_up"]


def handlers_on(device: Device) -> Mapping[str, Handler]:
    """Handlers of a worker that runs candidates on *device*."""
    return RunSession(lambda dag, seed, threads: GpuTask(dag, seed, device)).handlers()


def warm_up(device: Device) -> None:
    """Compile and load the kernels that check memory, which the first candidate would wait for."""
    place = device.allocate(1)
    device.filled([(place, 1)], 0)
    device.release(place)


def make_handlers() -> Mapping[str, Handler]:
    """Handlers of the run worker; creates the GPU's context first."""
    device = CudaDevice(DEVICE.get() or 0)
    warm_up(device)
    return handlers_on(device)
