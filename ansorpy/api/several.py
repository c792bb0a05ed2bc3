"""Tuning several networks together: tasks that they share are tuned once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Unpack

import onnx

from ansorpy.api.assemble import model_of
from ansorpy.api.deciding import decide
from ansorpy.api.fitting import choose_within
from ansorpy.api.parts import PartOptions, Parts
from ansorpy.api.project import Project, open_project
from ansorpy.api.request import Request, as_seed, as_target
from ansorpy.api.session import Chosen, Session, open_session
from ansorpy.errors import UsageError
from ansorpy.ir.task import Precision, Task
from ansorpy.measure.workers import LOCAL
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.target import Target
from ansorpy.tasks.budget import Effort
from ansorpy.tasks.objective import Goal, Objective
from ansorpy.tasks.objectives import OBJECTIVES
from ansorpy.tasks.plan import Plan
from ansorpy.tasks.tune import Tuning
from ansorpy.tasks.ways import Either

__all__ = [
    "Aim", "Finished", "Several", "WantedNetwork", "compile_many", "objective_for", "uninterrupted",
]  # fmt: skip


@dataclass(frozen=True)
class Aim:
    """What a network should achieve; see :class:`~ansorpy.tasks.objective.Goal`."""

    weight: float = 1.0
    bound_s: float | None = None
    baseline_s: float | None = None


def objective_for(choice: str | Objective, aims: Sequence[Aim]) -> Objective:
    """Return the chosen objective, which must use every figure that *aims* give.

    Raises:
        UsageError: An unknown name, or a bound or baseline that the objective does not use.
    """
    objective = OBJECTIVES.one(choice)
    for figure, needs in (("bound", "latency_bounds"), ("baseline", "geomean")):
        given = any(getattr(aim, f"{figure}_s") is not None for aim in aims)
        if given and f"{figure}_s" not in objective.reads:
            raise UsageError(
                f"a {figure} makes no difference to this objective",
                hint=f"leave it out, or take objective {needs}",
            )
    return objective


@dataclass(frozen=True)
class Finished:
    """A network with its partition decided, and a program for each of its tasks, in order."""

    project: Project
    chosen: Sequence[Chosen]


@dataclass(frozen=True)
class Several:
    """Networks with their aims, and the objective of a run over all of their tasks."""

    projects: Sequence[Project]
    aims: Sequence[Aim]
    objective: str | Objective = "weighted_sum"

    @cached_property
    def tasks(self) -> dict[str, Task]:
        """The distinct tasks by key, network by network, each in its own order."""
        found: dict[str, Task] = {}
        for project in self.projects:
            for task in project.all_tasks:
                found.setdefault(task.key, task)
        return found

    @property
    def goals(self) -> tuple[Goal, ...]:
        """What the objective sees: each network's calls of :attr:`tasks`, weight and bounds."""
        return tuple(
            Goal(
                self._row(project.common),
                weight=float(aim.weight),
                bound_s=None if aim.bound_s is None else float(aim.bound_s),
                baseline_s=None if aim.baseline_s is None else float(aim.baseline_s),
                name=project.name,
                eithers=tuple(
                    Either(tuple(self._row(way) for way in region.ways.values()))
                    for region in project.regions
                ),
            )
            for project, aim in zip(self.projects, self.aims, strict=True)
        )

    def _row(self, calls: Mapping[str, int]) -> tuple[float, ...]:
        return tuple(float(calls.get(key, 0)) for key in self.tasks)

    @property
    def weights(self) -> dict[str, float]:
        """Task key -> calls in all networks, each multiplied by the network's weight.

        A task that only some ways of a region call counts as in the way that calls it most.
        """
        sums = dict.fromkeys(self.tasks, 0.0)
        for project, aim in zip(self.projects, self.aims, strict=True):
            for key, calls in project.most_calls.items():
                sums[key] += aim.weight * calls
        return sums

    @property
    def _task_weights(self) -> dict[Task, float]:
        return {task: self.weights[key] for key, task in self.tasks.items()}

    def plan(self, session: Session) -> Plan | None:
        """What :meth:`tune` is going to do; None when it would measure nothing."""
        return session.plan(self._task_weights, network=True)

    def tune(self, session: Session) -> Tuning | None:
        """Measure until the session's budget is spent; None when it allows no measuring."""
        alone = len(self.projects) == 1 and tuple(self.aims) == (Aim(),)
        goals = () if alone and not self.projects[0].regions else self.goals
        return session.tune(self._task_weights, network=True, goals=goals, objective=self.objective)

    def decided(self, session: Session) -> Several:
        """The same networks, with each region cut in its fastest way."""
        return replace(self, projects=[decide(session, project) for project in self.projects])

    def choose(self, session: Session) -> list[Finished]:
        """The networks as finally partitioned, with a program for each of their tasks."""
        return [Finished(p, choose_within(session, p)) for p in self.decided(session).projects]

    def compiled(self, request: Request) -> list[CompiledModel]:
        """Tune as *request* says, and assemble a model from each network's best programs.

        Raises:
            KeyboardInterrupt: The user stopped the search; its results so far are recorded.
        """
        with open_session(request) as session:
            uninterrupted(self.tune(session))
            finished = self.choose(session)
        return [model_of(done.project, done.chosen, request.threads) for done in finished]


def uninterrupted(tuning: Tuning | None) -> None:
    """Raise ``KeyboardInterrupt`` when the user stopped the run."""
    if tuning is not None and tuning.interrupted:
        raise KeyboardInterrupt


@dataclass(frozen=True)
class WantedNetwork:
    """A network for :func:`compile_many`, and what it should achieve.

    Args:
        model: A path or a loaded model.
        weight: Importance relative to the others.
        bound: Latency in seconds that is fast enough, for objective ``"latency_bounds"``.
        baseline: Latency in seconds that its speed-up refers to, for objective ``"geomean"``.
        memory, shapes, dims: As :func:`ansorpy.compile` takes them.
    """

    model: str | Path | onnx.ModelProto
    weight: float = 1.0
    bound: float | None = None
    baseline: float | None = None
    memory: int | None = None
    shapes: Mapping[str, Sequence[int]] | None = None
    dims: Mapping[str, int] | None = None


def compile_many(
    networks: Sequence[WantedNetwork | str | Path | onnx.ModelProto],
    *,
    objective: str | Objective = "weighted_sum",
    effort: Effort = "quick",
    trials: int | None = None,
    trials_per_task: int | None = None,
    time_limit: float | None = None,
    target: Target | str | None = None,
    threads: int | None = None,
    precision: Precision = "default",
    db: str | Path | None = None,
    workers: str = LOCAL,
    seed: int | None = None,
    **parts: Unpack[PartOptions],
) -> list[CompiledModel]:
    """Compile several ONNX networks with one budget; tasks they share are tuned once.

    Args:
        objective: The function of all networks' latencies that the search minimizes:
            ``"weighted_sum"``, ``"latency_bounds"`` (networks within their bound get no more, and
            the search ends when all are), ``"geomean"`` (of the speed-ups), ``"early_stop"``
            (tasks that stopped improving get no more trials), or an objective of your own.
        effort, trials, trials_per_task, time_limit, target, threads, precision, db, workers, seed,
        parts: As :func:`ansorpy.compile` takes them; limits apply to all networks together.

    Raises:
        UsageError: No network, an unknown objective, or as :func:`ansorpy.compile` raises it.
        UnsupportedModel, ForeignFile, NoValidProgram: As :func:`ansorpy.compile` raises them.

    Paper: OSDI'20 §6.
    """
    if not networks:
        raise UsageError("there is no network to compile")
    wanted = [n if isinstance(n, WantedNetwork) else WantedNetwork(n) for n in networks]
    aims = [Aim(n.weight, n.bound, n.baseline) for n in wanted]
    chosen_objective = objective_for(objective, aims)
    request = Request(
        effort=effort,
        trials=trials,
        trials_per_task=trials_per_task,
        time_limit_s=time_limit,
        target=(made_for := as_target(target)),
        threads=made_for.threads(threads),
        precision=precision,
        db=None if db is None else Path(db),
        workers=workers,
        parts=Parts.of(parts),
        seed=as_seed(seed),
    )
    projects = [
        open_project(n.model, request, shapes=n.shapes, dims=n.dims).fit(n.memory) for n in wanted
    ]
    return Several(projects, aims, chosen_objective).compiled(request)
