"""Select where candidates are built and timed: this machine, its GPUs, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from ansorpy.codegen.cuda.driver import bus_place
from ansorpy.errors import UsageError
from ansorpy.ir.task import Task
from ansorpy.measure.built import Built
from ansorpy.measure.fleet.ray_cluster import connect
from ansorpy.measure.fleet.runner import FleetRunner
from ansorpy.measure.gpu.runner import Gpu, GpuRunner
from ansorpy.measure.result import MeasureResult
from ansorpy.measure.runner import LocalRunner, MeasureOptions, Runner
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["LOCAL", "Machines", "open_machines", "ray_address"]

LOCAL = "local"
_PORTS = 1 << 16


class Machines(Runner, Protocol):
    """A runner that can also re-time finalists and return the code it timed."""

    def retime(
        self, task: Task, candidates: Sequence[State], *, rounds: int = 9
    ) -> list[MeasureResult] | None:
        """Re-time finalists in turns on one machine; None when there is none left."""

    def build(self, task: Task, candidates: Sequence[State]) -> list[Built | MeasureResult]:
        """Build each candidate: object code, or the result that says why there is none."""

    def built(self, object_digest: str) -> Built | None:
        """Recently measured code, by its digest."""


def open_machines(
    workers: str, options: MeasureOptions, target: Target
) -> AbstractContextManager[Machines]:
    """Open the machines that *workers* names, for *target*; leaving the context ends their workers.

    Raises:
        UsageError: *workers* is not an address (:func:`ray_address`), or a cluster's for a GPU.
        MissingDependency: Ray is not installed, or the cluster cannot be joined.
    """
    if workers == LOCAL:
        numbers = target.gpus() if target.kind == "cuda" else ()
        gpus = [Gpu(number, bus_place(number)) for number in numbers]
        return GpuRunner(gpus, options) if gpus else LocalRunner(options)
    if target.kind == "cuda":
        raise UsageError("a cluster's GPUs cannot be used", hint="leave --workers out")
    return FleetRunner(connect(ray_address(workers), options), options)


def ray_address(workers: str) -> str:
    """Convert *workers* to an address for Ray.

        ray, ray://auto    -->  auto               the cluster of this machine or RAY_ADDRESS
        ray://local        -->  local              Ray started for this run, on this machine
        ray://host:10001   -->  ray://host:10001   a cluster's client port, from anywhere
        host:6379          -->  host:6379          a cluster that this machine is a node of

    Raises:
        UsageError: It is none of these.
    """
    scheme, separator, rest = workers.rpartition("://")
    if workers == "ray" or (scheme == "ray" and rest in ("auto", "")):
        return "auto"
    if scheme == "ray" and rest == "local":
        return "local"
    host, _, port = rest.rpartition(":")
    known_scheme = scheme in (("ray",) if separator else ("",))
    if known_scheme and host and port.isdecimal() and int(port) < _PORTS:
        return workers
    raise UsageError(
        f"--workers {workers} is not an address",
        hint="use local, ray, ray://local, ray://HOST:PORT or HOST:PORT",
    )
