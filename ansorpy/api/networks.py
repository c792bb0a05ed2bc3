"""Networks in Python: :func:`compile` one, or several under one budget."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from math import sqrt
from pathlib import Path
from typing import Any, TypeAlias, Unpack

import onnx
from numpy.typing import ArrayLike

from ansorpy.api.alternatives import decide, fastest, timed_regions
from ansorpy.api.arguments import (
    CompileArguments,
    NetworkArguments,
    SearchArguments,
    SizeArguments,
    demand_by_name,
)
from ansorpy.api.assemble import model_of
from ansorpy.api.display.shown import Shown, shown
from ansorpy.api.events import Planned, Tuned
from ansorpy.api.memory_limit import choose_within
from ansorpy.api.project import Project, open_project
from ansorpy.api.request import Request
from ansorpy.api.sized.program import chosen_for_all
from ansorpy.api.sized.task_group import TaskGroup
from ansorpy.api.sized.timer import SHARE, Timer
from ansorpy.api.tuner import Chosen, Tuner, open_tuner
from ansorpy.errors import UsageError
from ansorpy.ir.task import Task
from ansorpy.measure.machines import LOCAL
from ansorpy.options import those, with_arguments
from ansorpy.profiler import Activity, profiled
from ansorpy.quantities import bytes_of, is_real, latency_of
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.size_bounds import AnyBound
from ansorpy.size_ranges import AnySize
from ansorpy.tasks.objective import TunedNetwork
from ansorpy.tasks.objectives import OBJECTIVES
from ansorpy.tasks.objectives.latency_bounds import LatencyBounds
from ansorpy.tasks.outcome import Tuning

__all__ = [
    "Finished", "NetworkSpec", "Networks", "compile", "compile_many", "open_networks",
    "tune_networks",
]  # fmt: skip

AnyModel: TypeAlias = str | Path | onnx.ModelProto | Any
"""A network: an ONNX model, or a module or exported program of torch, which may be missing here."""

_TORCH = "ansorpy.frontend.torch.exported"
"""The module that reads networks of torch, which is imported only for these."""


@dataclass(frozen=True)
class NetworkSpec:
    """A network to compile with others, and the latency it should achieve.

    Args:
        model: A path or a loaded model.
        weight: Importance relative to the other networks.
        latency_bound: Latency that is fast enough, in seconds or as ``"5ms"``, for objective
            ``"latency_bounds"``.
        baseline: Latency that its speed-up refers to, likewise, for objective ``"geomean"``.
        shapes: As in :func:`ansorpy.compile`, like ``dims`` to ``memory``.
        name: Its name in messages; default: the file's name without ``.onnx``.

    Raises:
        UsageError: *model* is neither, a number is not positive, or what ``dims`` and its like
            take by name is no mapping.
    """

    model: str | Path | onnx.ModelProto
    weight: float = 1.0
    latency_bound: float | str | None = None
    baseline: float | str | None = None
    shapes: Mapping[str, Sequence[AnySize]] | None = None
    dims: Mapping[str, AnySize] | None = None
    alias: Mapping[str, str] | None = None
    constants: Mapping[str, ArrayLike] | None = None
    bounds: Mapping[str, AnyBound] | None = None
    memory: int | str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, str | Path | onnx.ModelProto):
            hint = "give an ONNX model, as a path or loaded; compile also takes a torch module"
            if isinstance(self.model, bytes):
                hint = "onnx.load_from_string makes a model of bytes"
            raise UsageError(f"{reprlib.repr(self.model)} is not a network", hint=hint)
        demand_by_name(vars(self))
        figures = {"weight": self.weight}
        for figure in ("latency_bound", "baseline"):
            if (given := getattr(self, figure)) is not None:
                figures[figure] = latency_of(given)
        for figure, value in figures.items():
            if not is_real(value) or not float(value) > 0:  # nan is not
                raise UsageError(f"{figure} must be a positive number, got {value!r}")
            object.__setattr__(self, figure, float(value))
        if not isinstance(self.name, str | None):
            raise UsageError(f"name must be text, got {self.name!r}")


@dataclass(frozen=True)
class Finished:
    """A partitioned network, and a program for each of its workloads, in order."""

    project: Project
    chosen: Sequence[Chosen]


@dataclass(frozen=True)
class Networks:
    """The networks that are tuned together, and the latency that each should achieve."""

    projects: Sequence[Project]
    specs: Sequence[NetworkSpec]

    @cached_property
    def tasks(self) -> dict[str, Task]:
        """The distinct tasks by key, network by network, in each network's order."""
        found: dict[str, Task] = {}
        for project in self.projects:
            for task in project.all_tasks:
                found.setdefault(task.key, task)
        return found

    @property
    def tuned(self) -> tuple[TunedNetwork, ...]:
        """The networks as the objective sees them: calls of :attr:`tasks`, weights and bounds."""
        numbers = {key: number for number, key in enumerate(self.tasks)}

        def numbered(calls: Mapping[str, float]) -> Mapping[int, float]:
            return {numbers[key]: count for key, count in calls.items()}

        return tuple(
            TunedNetwork(
                self._row(project.common),
                weight=float(spec.weight),
                bound_s=None if spec.latency_bound is None else float(spec.latency_bound),
                baseline_s=None if spec.baseline is None else float(spec.baseline),
                name=project.name,
                regions=tuple(region.spread(numbered) for region in project.regions),
            )
            for project, spec in zip(self.projects, self.specs, strict=True)
        )

    def _row(self, calls: Mapping[str, float]) -> tuple[float, ...]:
        return tuple(float(calls.get(key, 0)) for key in self.tasks)

    @property
    def weights(self) -> dict[str, float]:
        """Task key -> calls in all networks, multiplied by each network's weight.

        A task that only some alternatives of a region call counts as often as in the one that
        calls it most.
        """
        sums = dict.fromkeys(self.tasks, 0.0)
        for project, spec in zip(self.projects, self.specs, strict=True):
            for key, calls in project.most_calls.items():
                sums[key] += spec.weight * calls
        return sums

    @property
    def task_weights(self) -> dict[Task, float]:
        """:attr:`weights` by task."""
        weights = self.weights
        return {task: weights[key] for key, task in self.tasks.items()}

    def cut(self, decided: Callable[[Project], Project]) -> Networks:
        """The same networks, each with its regions partitioned by *decided*."""
        return replace(self, projects=[decided(project) for project in self.projects])


def open_networks(specs: Sequence[NetworkSpec], request: Request) -> Networks:
    """Read the networks of *specs*, and partition them into tasks.

    Raises:
        UsageError: A latency bound or baseline is not used by the objective, a dynamic dimension
            has no size, a name is unknown, or the memory limit is too low.
        ForeignFile, UnsupportedModel: A file is not an ONNX model, or cannot be compiled.
    """
    _demand_use(specs, request)
    projects = []
    with profiled(Activity.OPEN):
        for spec in specs:
            sizes = those(SizeArguments, vars(spec))
            found = open_project(
                spec.model, request, needs_workers=_needs_workers(request), **sizes
            )
            found = found.fit(None if spec.memory is None else bytes_of(spec.memory))
            projects.append(replace(found, name=spec.name or found.name))
    return Networks(projects, specs)


def _needs_workers(request: Request) -> bool:
    """Whether programs will be measured or predicted in workers on this machine."""
    return request.workers == LOCAL and (request.budget is not None or not request.db.exists())


def _demand_use(specs: Sequence[NetworkSpec], request: Request) -> None:
    """Raise :class:`UsageError` for bounds and baselines that the objective ignores or lacks."""
    objective = OBJECTIVES.one(request.parts.choices["objective"])
    given = {
        "bound_s": ("latency bound", "latency_bounds", [spec.latency_bound for spec in specs]),
        "baseline_s": ("baseline", "geomean", [spec.baseline for spec in specs]),
    }
    for field, (figure, needs, values) in given.items():
        if any(value is not None for value in values) and field not in objective.reads:
            raise UsageError(
                f"a {figure} is given, which the objective does not consider",
                hint=f"leave it out, or choose --objective {needs} (objective= in Python)",
            )
    if isinstance(objective, LatencyBounds) and all(spec.latency_bound is None for spec in specs):
        raise UsageError(
            "the objective latency_bounds needs a bound",
            hint="give one: --latency-bound 5ms (latency_bound= in Python)",
        )


def tune_networks(networks: Networks, request: Request) -> list[Finished]:
    """Measure programs of the networks' tasks according to *request*; choose one for each task.

    ``request.listener`` receives :class:`~ansorpy.api.events.Planned`, then the search's progress,
    then :class:`~ansorpy.api.events.Tuned`.

    Raises:
        NoValidProgram: No trial of some task gave a correct program.
        KeyboardInterrupt: The user stopped the search; its results so far are in the database.
    """
    with open_tuner(request) as tuner:
        weights = networks.task_weights
        request.listener(Planned(networks.projects, request, tuner.plan(weights)))
        tuner.tune(
            weights,
            networks.tuned,
            lambda tuning: _report(networks, tuner, tuning),
            share=1 - SHARE if any(project.is_sized for project in networks.projects) else 1.0,
        )
        chosen = networks.cut(lambda project: decide(tuner, project))
        timer = Timer.of(tuner, len(weights))
        return [_finished(timer, project) for project in chosen.projects]


def _finished(timer: Timer, project: Project) -> Finished:
    """The programs of *project*; a workload with dimensions gets one for all of their sizes.

    Each is timed at all sizes for a share of the time left that grows with the time of its calls,
    but more slowly: the choice for short ones matters, too, and takes as many timings.
    """
    known = {chosen.task.key: chosen for chosen in choose_within(timer.tuner, project)}
    found = {group: [known[task.key] for task in group.tasks] for group in project.groups}

    def seconds(group: TaskGroup) -> float:
        return sum(project.weights[one.task.key] * (one.median_s or 0.0) for one in found[group])

    def portion(group: TaskGroup) -> float:
        return sqrt(seconds(group))

    programs = {group: found[group][0] for group in project.groups if not group.dag.dims}
    sized = sorted((g for g in project.groups if g.dag.dims), key=seconds, reverse=True)
    for number, group in enumerate(sized):
        rest = sum(map(portion, sized[number:]))
        timer.allot(portion(group) / rest if rest else 1.0)
        programs[group] = chosen_for_all(timer, group, found[group])
    return Finished(project, [programs[group] for group in project.groups])


def _report(networks: Networks, tuner: Tuner, tuning: Tuning) -> None:
    fastest_ways = networks.cut(lambda project: fastest(project, tuner.recorded_s))
    found = [timed_regions(project, tuner.recorded_s) for project in networks.projects]
    tuner.request.listener(Tuned(tuning, tuner.database, fastest_ways.weights, found))


@with_arguments
def compile(
    model: AnyModel,
    example_inputs: Sequence[Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    latency_bound: float | str | None = None,
    progress: Shown = "auto",
    **arguments: Unpack[CompileArguments],
) -> CompiledModel:
    """Compile the network *model*, tuning its tasks first.

    Each trial is committed to the database as soon as it ends, so Ctrl-C loses none, and repeating
    the call continues the search.

    Args:
        model: An ONNX model, as a path or loaded; or a module or exported program of torch.
        example_inputs: What to call the module with, as ``torch.export.export`` does.
        dynamic_shapes: Which axes of these inputs may have other sizes, as
            ``torch.export.export`` takes it; ``dims`` may narrow their ranges.
        latency_bound: Latency that is fast enough, in seconds or as ``"5ms"``, for objective
            ``"latency_bounds"``.
        progress: How the search is shown: on a terminal or in a notebook (``"auto"``), elsewhere
            too (True), not at all (False); or a function that receives its events.
        **arguments

    Returns:
        The model, to call (``model(x)``, ``model.run(None, {"x": x})``) or to write: ``export``.

    Raises:
        ForeignFile: The file is not an ONNX model.
        UnsupportedModel: Some operators cannot be compiled; its table lists all of them.  Or
            ``torch.export`` refuses the module.
        UsageError: A dynamic dimension has no size, the memory limit is too low, or an argument
            is wrong.
        NoValidProgram: No trial of some task succeeded.
        KeyboardInterrupt: The user stopped the search.
    """
    network = those(NetworkArguments, arguments)
    demand_by_name(network)
    if _is_of_torch(model):
        found = import_module(_TORCH).network_of(model, example_inputs, dynamic_shapes)
        network["constants"] = {**found.constants, **(network.get("constants") or {})}
        dims, shapes = network.get("dims") or {}, network.get("shapes") or {}
        network["dims"] = found.dims(dims, shapes)
        model = found.model
        example_inputs = dynamic_shapes = None
    spec = NetworkSpec(model, latency_bound=latency_bound, **network)
    if example_inputs is not None or dynamic_shapes is not None:
        raise UsageError("an ONNX model needs no example inputs", hint="give sizes with dims=")
    [compiled] = compile_many([spec], progress=progress, **those(SearchArguments, arguments))
    return compiled


def _is_of_torch(model: AnyModel) -> bool:
    """Whether *model* is an object of torch, which need not be imported to know."""
    return any(kind.__module__.partition(".")[0] == "torch" for kind in type(model).__mro__)


@with_arguments
def compile_many(
    networks: Sequence[NetworkSpec | str | Path | onnx.ModelProto],
    *,
    progress: Shown = "auto",
    **arguments: Unpack[SearchArguments],
) -> list[CompiledModel]:
    """Compile several ONNX networks with one budget; tasks they share are tuned once.

    Args:
        networks: A path, a loaded model or a :class:`NetworkSpec` for each network.
        progress: As in :func:`ansorpy.compile`.
        **arguments

    Returns:
        A model for each network, in order.

    Raises:
        UsageError: There is no network, or as in :func:`ansorpy.compile`.
        UnsupportedModel, ForeignFile, NoValidProgram: As in :func:`ansorpy.compile`.
        KeyboardInterrupt: The user stopped the search.

    Paper: OSDI'20 §6.
    """
    if isinstance(networks, str | Path) or not isinstance(networks, Iterable):
        raise UsageError("networks are given by a list", hint="pass [network], or call compile")
    specs = [n if isinstance(n, NetworkSpec) else NetworkSpec(n) for n in networks]
    if not specs:
        raise UsageError("there is no network to compile")
    with shown(progress) as listener:
        request = Request.of(listener=listener, is_quiet=progress is False, **arguments)
        finished = tune_networks(open_networks(specs, request), request)
    with profiled(Activity.ASSEMBLE):
        return [model_of(done.project, done.chosen, request.threads) for done in finished]
