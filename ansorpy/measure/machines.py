"""Open the machines that build and time candidates: this one, its GPUs, or a Ray cluster."""

from __future__ import annotations

from contextlib import AbstractContextManager

from ansorpy.errors import UsageError
from ansorpy.measure.devices import devices_of
from ansorpy.measure.run.interfaces import Machines
from ansorpy.measure.run.runner import MeasureOptions
from ansorpy.target import Target

__all__ = ["LOCAL", "open_machines", "ray_address"]

LOCAL = "local"
_PORTS = 1 << 16


def open_machines(
    workers: str, options: MeasureOptions, target: Target
) -> AbstractContextManager[Machines]:
    """Open the machines that *workers* names, for *target*; leaving the context ends their workers.

    Raises:
        UsageError: *workers* is not an address (:func:`ray_address`), or names a cluster while
            *target* is a GPU.
        MissingDependency: Ray is not installed, or the cluster cannot be joined.
    """
    if workers == LOCAL:
        return devices_of(target).open(target, options)
    return devices_of(target).open_cluster(ray_address(workers), options)


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
        f"{workers!r} is not an address of workers",
        hint="use local, ray, ray://local, ray://HOST:PORT or HOST:PORT",
    )
