"""A network made ready for search: imported, optimised, cut into tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import onnx

from ansorpy.api.request import Request
from ansorpy.errors import UsageError
from ansorpy.frontend.onnx import load as load_onnx
from ansorpy.graph.network import Network
from ansorpy.graph.optimize import optimize
from ansorpy.graph.partition import partition
from ansorpy.ir.task import Task, Warmth
from ansorpy.target import Target

__all__ = ["Project", "memory_hint", "open_project"]


@dataclass(frozen=True)
class Project:
    """A network and its tasks, one a workload and in the workloads' order.

    ``memory`` is what the model may take, in bytes, where that was said.
    """

    name: str
    network: Network
    tasks: tuple[Task, ...]
    target: Target
    memory: int | None = None

    @cached_property
    def weights(self) -> dict[str, int]:
        """Task key -> calls in the network."""
        workloads = self.network.workloads()
        return {t.key: w.weight for t, w in zip(self.tasks, workloads, strict=True)}

    @property
    def constant_bytes(self) -> int:
        """Size of all constants, each counted once."""
        arrays = {id(a): a.nbytes for call in self.network.calls for a in call.constants.values()}
        return sum(arrays.values())

    @property
    def memory_bytes(self) -> int:
        """What one context of the compiled model holds at least: arena and constants."""
        return self.network.arena.bytes + self.constant_bytes

    @property
    def touched_bytes(self) -> int:
        """What one run reads and writes: constants, inputs, outputs and the arena."""
        ends = (*self.network.inputs, *self.network.outputs)
        return self.memory_bytes + sum(t.bytes for t in ends)

    def fit(self, memory: int | None) -> Project:
        """The same project, which shall take *memory* bytes at most.

        Raises:
            UsageError: It needs more, whatever programs are taken.
        """
        if memory is not None and self.memory_bytes > memory:
            needs, allowed = (f"{b / (1 << 20):.1f} MiB" for b in (self.memory_bytes, memory))
            raise UsageError(
                f"the model needs {needs} ({self.constant_bytes >> 20} MiB of it constants), "
                f"more than the {allowed} allowed",
                hint=memory_hint(self.memory_bytes),
            )
        return replace(self, memory=memory)


def memory_hint(bytes_needed: int) -> str:
    """What to do about too little memory, on the command line and in Python."""
    return f"allow {-(-bytes_needed >> 20)} MiB or more with --memory (memory= in Python)"


def open_project(
    model: str | Path | onnx.ModelProto,
    request: Request,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> Project:
    """Import *model* and cut it into tasks.

    Raises:
        ForeignFile: Not an ONNX model.
        UnsupportedModel: Operators that cannot be compiled, all of them in its table.
        UsageError: A dynamic dimension without a size, or an unknown name.
    """
    network = partition(optimize(load_onnx(model, shapes, dims)))
    name = model.graph.name if isinstance(model, onnx.ModelProto) else Path(model).stem
    project = Project(name, network, (), request.target)
    warmth = _warmth(project.touched_bytes, request)
    tasks = tuple(
        Task(w.dag, request.target, request.threads, request.precision, warmth, w.name)
        for w in network.workloads()
    )
    return replace(project, tasks=tasks)


def _warmth(touched_bytes: int, request: Request) -> Warmth:
    """Where a call finds its constants when the network has touched so many bytes since."""
    target = request.target
    if touched_bytes <= target.l2_bytes * request.threads:
        return "warm"
    return "l3" if touched_bytes <= target.l3_bytes else "cold"
