"""Models of one network whose constants change: only these are computed and packed again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Unpack

from numpy.typing import ArrayLike

from ansorpy.api.arguments import SearchArguments, SizeArguments
from ansorpy.api.assemble import kernels_median_s, tasks_of
from ansorpy.api.display.shown import shown
from ansorpy.api.networks import NetworkSpec, open_networks, tune_networks
from ansorpy.api.project import imported
from ansorpy.api.request import Request
from ansorpy.graph.choices import UnknownWay
from ansorpy.graph.cuts import Cutting
from ansorpy.graph.network import Network
from ansorpy.options import those
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.target import Target

__all__ = ["NetworkPrograms", "compile_programs"]


@dataclass(frozen=True)
class NetworkPrograms:
    """The programs of a compiled network, for other values of its constants.

    Args:
        spec: The network without these values.
        cutting: How it was cut into calls.
        tasks: The code of each call by the key of its definition.
        median_s: Seconds of all calls; None if one was not timed.
    """

    spec: NetworkSpec
    name: str
    target: Target
    threads: int
    cutting: Cutting
    tasks: Mapping[str, CompiledTask]
    median_s: float | None

    def with_constants(self, constants: Mapping[str, ArrayLike]) -> CompiledModel | None:
        """The model with these *constants*, of the names it was compiled with.

        The graph passes run again, since they also decide by values: whether two factors may
        become one without an overflow, say.  None if they lead to a call that was not compiled.
        """
        try:
            network = self._network(constants)
        except UnknownWay:
            return None
        known = all(call.key in self.tasks for call in network.calls)
        return self.model_of(network) if known else None

    def model_of(self, network: Network) -> CompiledModel:
        """The model of *network*, whose calls were compiled."""
        return CompiledModel.of(
            network, self.tasks, target=self.target, threads=self.threads, name=self.name,
            median_s=self.median_s,
        )  # fmt: skip

    def _network(self, constants: Mapping[str, ArrayLike]) -> Network:
        sizes = those(SizeArguments, vars(self.spec)) | {"constants": constants}
        return self.cutting.network(imported(self.spec.model, self.target, **sizes).graph)


def compile_programs(
    spec: NetworkSpec, **arguments: Unpack[SearchArguments]
) -> tuple[CompiledModel, NetworkPrograms]:
    """Compile the network *spec* as :func:`ansorpy.compile` does; and its programs.

    Raises:
        AnsorpyError: As :func:`ansorpy.compile`.
    """
    with shown("auto") as listener:
        request = Request.of(listener=listener, **arguments)
        [done] = tune_networks(open_networks([spec], request), request)
    project, chosen = done.project, done.chosen
    found = NetworkPrograms(
        replace(spec, constants=None), project.name, project.target, request.threads,
        project.cuts.cutting, tasks_of(project, chosen), kernels_median_s(project, chosen),
    )  # fmt: skip
    return found.model_of(project.network), found
