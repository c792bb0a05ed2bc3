"""Turn chosen programs into a :class:`Kernel` or a :class:`CompiledModel` for the caller."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.api.project import Project
from ansorpy.api.tuner import Chosen
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.execution_plan import CompiledTask, ExecutionPlan, plan_network
from ansorpy.runtime.kernel import Kernel
from ansorpy.runtime.schedules import schedule_text
from ansorpy.schedule.lowering.program import lower

__all__ = ["kernel_of", "kernels_median_s", "model_of", "plan_of"]


def kernel_of(chosen: Chosen) -> Kernel:
    """The kernel of one tuned operator."""
    task = chosen.task
    return Kernel(_compiled(chosen), target=task.target, threads=task.threads, name=task.name)


def model_of(project: Project, chosen: Sequence[Chosen], threads: int) -> CompiledModel:
    """The model of a network; *chosen* has a program for each of the project's tasks, in order."""
    return CompiledModel(plan_of(project, chosen, threads), project.name)


def plan_of(project: Project, chosen: Sequence[Chosen], threads: int) -> ExecutionPlan:
    """The plan that :func:`model_of` loads, with its memory needs; constants are not packed yet."""
    workloads = project.network.workloads()
    return plan_network(
        project.network,
        {w.key: _compiled(c) for w, c in zip(workloads, chosen, strict=True)},
        target=project.target,
        threads=threads,
        median_s=kernels_median_s(project, chosen),
    )


def kernels_median_s(project: Project, chosen: Sequence[Chosen]) -> float | None:
    """Total seconds of all kernels, each multiplied by its calls; None if one was not timed."""
    total = 0.0
    for program in chosen:
        if program.median_s is None:
            return None
        total += project.weights[program.task.key] * program.median_s
    return total


def _compiled(chosen: Chosen) -> CompiledTask:
    program = lower(chosen.state).run
    dag, compiled_from = chosen.task.dag, chosen.state.definition
    return CompiledTask.of(
        dag, chosen.built, compiled_from=compiled_from, program=program, median_s=chosen.median_s,
        schedule=schedule_text(chosen.state),
    )  # fmt: skip
