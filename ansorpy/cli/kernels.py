"""The kernels of a library or network, and what its dimensions reach."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ansorpy.errors import UsageError
from ansorpy.evaluation.kernels import Reach, ShownKernel, reach_of
from ansorpy.runtime.library.shared_library import read_library
from ansorpy.runtime.schedules import states_of

if TYPE_CHECKING:
    from ansorpy.api.project import Project
    from ansorpy.api.tuner import Chosen

__all__ = ["kernels_of", "library_kernels", "library_reach", "network_reach"]


def library_kernels(path: Path) -> list[ShownKernel]:
    """The kernels that the library *path* says it was made from, with their schedules.

    Raises:
        ForeignFile: The library was made by another version.
        UsageError: It does not say what it was made from.
    """
    programs = read_library(path)[0].programs
    if not programs:
        raise UsageError(f"{path} does not say what programs it was made from")
    return [ShownKernel(p.name, p.calls, p.dims, states_of(p.schedule)) for p in programs]


def library_reach(path: Path, kernels: Sequence[ShownKernel]) -> tuple[Reach, ...]:
    """What each dimension of the library *path* reaches; *kernels* are those of the library."""
    metadata = read_library(path)[0]
    return reach_of(metadata.input_ports, metadata.output_ports, kernels)


def kernels_of(project: Project, chosen: Sequence[Chosen] = ()) -> list[ShownKernel]:
    """The kernels of *project*, with the schedules *chosen*, if they are known."""
    network = project.network
    dims: dict[str, dict[str, None]] = {}
    for call in network.calls:
        dims.setdefault(call.key, {}).update(dict.fromkeys(dim.name for dim in call.dag.dims))
    states = [one.states for one in chosen] or [()] * len(dims)
    return [
        ShownKernel(workload.name, workload.weight, tuple(dims[workload.key]), parts)
        for workload, parts in zip(network.workloads(), states, strict=True)
    ]


def network_reach(project: Project) -> tuple[Reach, ...]:
    """What each dimension of *project* reaches."""
    network = project.network
    return reach_of(network.inputs, network.results, kernels_of(project))
