"""A network prepared for search: imported, optimised and partitioned into tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Unpack

import onnx

from ansorpy.api.arguments import SizeArguments
from ansorpy.api.request import Request, require_memory
from ansorpy.api.sized.task_group import TaskGroup
from ansorpy.codegen.backends import codegen_of
from ansorpy.errors import UsageError
from ansorpy.frontend.onnx import Imported, load_with_ranges
from ansorpy.graph.aliases import capacities_in, with_aliases
from ansorpy.graph.alternatives import Alternatives
from ansorpy.graph.cuts import Cuts, cuts_of
from ansorpy.graph.network import Network, Workload
from ansorpy.graph.ops import Computed
from ansorpy.graph.passes.without_routines import without_routines
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Function
from ansorpy.ir.extents import least, most
from ansorpy.ir.symbols import Dim
from ansorpy.ir.task import Task
from ansorpy.measure.workers.started import start_server
from ansorpy.options import completed
from ansorpy.quantities import bytes_text
from ansorpy.size_bounds import Bound, known_bounds
from ansorpy.size_ranges import SizeRange
from ansorpy.target import Target

__all__ = ["Project", "imported", "memory_hint", "open_project"]

_LOG = logging.getLogger(__name__)

_NEAR, _FAR = 2, 4
"""Multiples of the last-level cache.  Up to the first, some data from the previous use is still
cached; the second is enough to keep algorithms with far larger constants from looking faster than
they are."""


_MANY_NODES = 32
"""A network of so many nodes has enough tasks for several processes."""


@dataclass(frozen=True)
class Project:
    """A network, and what its workloads are as tasks.

    Args:
        cuts: The network, and its regions that are not decided yet.
        group_of: Returns the tasks of a workload, the same ones for workloads with the same key.
        memory: The maximum size of the model in bytes; None for no limit.
        bounds: Those of tensors that hold sizes, by name.
    """

    name: str
    cuts: Cuts
    group_of: Callable[[Workload], TaskGroup]
    target: Target
    memory: int | None = None
    bounds: Mapping[str, Bound] = field(default_factory=dict)

    @property
    def network(self) -> Network:
        """The network, with each region cut by default."""
        return self.cuts.network

    @cached_property
    def groups(self) -> tuple[TaskGroup, ...]:
        """The tasks of each workload of the network, in their order."""
        return tuple(map(self.group_of, self.network.workloads()))

    @property
    def is_sized(self) -> bool:
        """Whether it runs at several sizes."""
        return any(group.dag.dims for group in self.groups)

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The distinct tasks of the network's workloads, in their order."""
        return _distinct(self.groups)

    @cached_property
    def weights(self) -> dict[str, float]:
        """Task key -> calls in the network, shared by the tasks of a workload."""
        return self._by_task({w.key: w.weight for w in self.network.workloads()})

    @cached_property
    def packs(self) -> dict[str, float]:
        """Task key -> distinct sets of constants among its calls, shared like them."""
        found: dict[str, float] = {}
        for group, workload in zip(self.groups, self.network.workloads(), strict=True):
            for task in group.tasks:
                found[task.key] = found.get(task.key, 0.0) + workload.packs / len(group.tasks)
        return found

    @cached_property
    def regions(self) -> tuple[Alternatives[str], ...]:
        """The regions that can be partitioned in several ways; empty once they are decided.

        Their alternatives count calls by task key.
        """
        return tuple(region.spread(self._by_task) for region in self.cuts.regions)

    @cached_property
    def all_tasks(self) -> tuple[Task, ...]:
        """The network's tasks, then those that only other ways to partition it need."""
        others = map(self.group_of, self.cuts.others.values())
        return _distinct((*self.groups, *others))

    @cached_property
    def common(self) -> dict[str, float]:
        """Task key -> calls in the network that do not depend on the partition of its regions."""
        calls = {workload.key: workload.weight for workload in self.network.workloads()}
        for region in self.cuts.regions:
            for key, count in region.options[0].calls.items():
                calls[key] -= round(count)
        return self._by_task({key: count for key, count in calls.items() if count})

    @cached_property
    def most_calls(self) -> dict[str, float]:
        """Task key -> maximum number of calls over all ways to partition the regions."""
        calls = dict(self.common)
        for region in self.regions:
            for key, count in region.most_calls.items():
                calls[key] = calls.get(key, 0) + count
        return calls

    def _by_task(self, calls: Mapping[str, float]) -> dict[str, float]:
        """Calls by task key, from calls by the keys of workloads."""
        workloads = self.cuts.workloads
        found: dict[str, float] = {}
        for key, count in calls.items():
            group = self.group_of(workloads[key])
            for task, share in group.weights(self._seconds(len(group.tasks))).items():
                found[task.key] = found.get(task.key, 0.0) + count * share
        return found

    def _seconds(self, sizes: int) -> tuple[float, ...]:
        """The least seconds of a run at each of so many sizes that stand for all.

        The tasks of all workloads are in the order of their sizes: where one has fewer, each stands
        for several of the others'.
        """
        return tuple(
            sum(calls * least[(n + 1) * len(least) // sizes - 1] for calls, least in self._least)
            for n in range(sizes)
        )

    @cached_property
    def _least(self) -> list[tuple[float, tuple[float, ...]]]:
        """For each workload, its calls, and the least seconds of one at each of its sizes."""
        pairs = zip(self.network.workloads(), self.groups, strict=True)
        return [(workload.weight, group.least) for workload, group in pairs]

    def decided(self, options: Sequence[int]) -> Project:
        """The project with alternative number ``options[n]`` taken in :attr:`regions` ``[n]``."""
        return replace(self, cuts=self.cuts.decided(options))

    @property
    def constant_bytes(self) -> int:
        """Size of all constants, each counted once."""
        return _constant_bytes(self.network)

    @property
    def memory_bytes(self) -> int:
        """Minimum memory of one context at the largest sizes: arena and constants."""
        return _memory_bytes(self.network)

    @property
    def touched_bytes(self) -> int:
        """Bytes that one run reads and writes: constants, inputs, outputs and the arena."""
        shared = {alias.input for alias in self.network.aliases}
        inputs = (t for number, t in enumerate(self.network.inputs) if number not in shared)
        ends = (*inputs, *self.network.outputs)
        return self.memory_bytes + sum(most(t.bytes) for t in ends)

    def fit(self, memory: int | None) -> Project:
        """The same project, limited to *memory* bytes.

        Raises:
            UsageError: The project needs more, whatever programs are chosen.
        """
        if memory is None:
            return replace(self, memory=None)
        found = replace(self, cuts=self.cuts.within(_memory_bytes, memory))
        if found.memory_bytes > memory:
            raise UsageError(
                f"the model needs {bytes_text(found.memory_bytes)} "
                f"(including {bytes_text(found.constant_bytes)} of constants), "
                f"more than the {bytes_text(memory)} allowed",
                hint=memory_hint(found.memory_bytes),
            )
        return replace(found, memory=memory)


def _distinct(groups: Iterable[TaskGroup]) -> tuple[Task, ...]:
    return tuple({task.key: task for group in groups for task in group.tasks}.values())


def _constant_bytes(network: Network) -> int:
    arrays = {id(a): a.nbytes for call in network.calls for a in call.constants.values()}
    return sum(arrays.values())


def _memory_bytes(network: Network) -> int:
    return most(network.arena.bytes) + _constant_bytes(network)


def memory_hint(bytes_needed: int) -> str:
    """Advice for too little memory, for the command line and for Python."""
    return f"allow {-(-bytes_needed >> 20)} MiB or more with --memory (memory= in Python)"


def imported(
    model: str | Path | onnx.ModelProto, target: Target, **sizes: Unpack[SizeArguments]
) -> Imported:
    """The graph of *model* as programs for *target* compute it; raises as :func:`open_project`."""
    given = completed(SizeArguments, sizes)
    alias = given.pop("alias") or {}
    found = load_with_ranges(model, **given)
    if alias and target.capability:
        raise UsageError(
            f"outputs cannot share the memory of inputs in programs for {target.name}",
            hint="compile without alias",
        )
    graph = with_aliases(found.graph, alias)
    return replace(found, graph=without_routines(graph) if target.capability else graph)


def open_project(
    model: str | Path | onnx.ModelProto,
    request: Request,
    *,
    needs_workers: bool = False,
    **sizes: Unpack[SizeArguments],
) -> Project:
    """Import *model* and partition it into tasks.

    *sizes* are what its file leaves open (:class:`~ansorpy.api.arguments.SizeArguments`).
    If the caller *needs_workers* next, those of a large network start while it is optimised.

    Raises:
        ForeignFile: The file is not an ONNX model.
        UnsupportedModel: Some operators cannot be compiled; its table lists all of them.
        UsageError: A dynamic dimension has no size, a name is unknown, an output does not continue
            the input whose memory it should share, or the tensors exceed this machine's memory.
    """
    name = model.graph.name if isinstance(model, onnx.ModelProto) else Path(model).stem
    found = imported(model, request.target, **sizes)
    graph = found.graph
    if needs_workers and len(graph.nodes) >= _MANY_NODES:
        start_server()
    routines = [node.op.label for node in graph.nodes if isinstance(node.op, Computed)]
    routines += [str(o.counts.dim) for o in graph.outputs if o.counts is not None]
    if routines and request.target.capability:
        raise UsageError(
            f"{name} sorts, or counts sizes ({', '.join(sorted(set(routines)))}), which programs "
            f"for {request.target.name} cannot",
            hint="compile it for a CPU",
        )
    if not graph.nodes:
        _LOG.warning(
            "%s has nothing to compute: its outputs are constant, empty, or inputs as they are",
            name,
        )
    ends = (*graph.inputs, *(output.value for output in graph.outputs))
    bound = most if request.target.capability else least  # GPUs hold the largest sizes
    require_memory(name, sum(bound(graph.types[value].bytes) for value in ends))
    # Instructions for unsigned by signed bytes serve all dot products; those for signed do not.
    byte_dots = Function.DOT_U8S8 in codegen_of(request.target).dots(request.target)
    cuts = cuts_of(graph, _own_caches(request), byte_dots=byte_dots)
    if cuts.network.controls and request.target.capability:
        raise UsageError(
            f"programs for {request.target.name} have no loops and branches over kernels",
            hint="compile for a CPU, or give constant conditions and numbers of iterations",
        )
    ranges = {**found.ranges, **capacities_in(graph)}
    bounds = known_bounds(sizes.get("bounds"))
    return Project(name, cuts, _GroupMaker(request, ranges), request.target, bounds=bounds)


class _GroupMaker:
    """Makes the tasks of each workload, once for each key."""

    def __init__(self, request: Request, ranges: Mapping[Dim, SizeRange]) -> None:
        self._request = request
        self._ranges = ranges
        self._made: dict[str, TaskGroup] = {}

    def __call__(self, workload: Workload) -> TaskGroup:
        if workload.key not in self._made:
            self._made[workload.key] = self._make(workload)
        return self._made[workload.key]

    def _make(self, workload: Workload) -> TaskGroup:
        request = self._request
        between = _between(workload, request)

        def task_of(dag: ComputeDAG, suffix: str) -> Task:
            name = workload.name + suffix
            return Task(dag, request.target, request.threads, request.precision, between, name)

        return TaskGroup.of(workload.dag, task_of, self._ranges)


def _own_caches(request: Request) -> int:
    """Total bytes of the second-level caches of the cores that run the network."""
    return request.target.l2_bytes * request.threads


def _between(workload: Workload, request: Request) -> int:
    """Bytes that the network touches between two calls of *workload*, without its constants.

    The number is rounded to eighths of the last-level cache, so that networks of similar size share
    records; sizes far beyond that cache are all treated alike.
    """
    own_caches = _own_caches(request)
    last = max(request.target.l3_bytes, own_caches)
    if workload.touched_bytes <= own_caches:
        return 0
    if workload.touched_bytes > _NEAR * last:
        return _FAR * last
    unit = max(1, last // 8)
    others = workload.touched_bytes - sum(most(op.bytes) for op in workload.dag.constant_ops)
    return unit * max(1, round(others / unit))
