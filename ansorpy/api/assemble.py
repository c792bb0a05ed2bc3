"""Turn chosen programs into a :class:`Kernel` or a :class:`CompiledModel` for the caller."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.api.project import Project
from ansorpy.api.sized.program import lowered_parts
from ansorpy.api.tuner import Chosen
from ansorpy.ir.loops import Program
from ansorpy.measure.build.listed import listed
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.kernel import Kernel
from ansorpy.runtime.planner import plan_network
from ansorpy.runtime.schedules import schedule_text

__all__ = ["kernel_of", "kernels_median_s", "model_of", "plan_of", "tasks_of"]


def kernel_of(chosen: Chosen) -> Kernel:
    """The kernel of one tuned operator."""
    task = chosen.task
    program = lowered_parts(task.dag, chosen.states, chosen.ranges).run
    return Kernel(
        _compiled(chosen, program), target=task.target, threads=task.threads, name=task.name
    )


def model_of(project: Project, chosen: Sequence[Chosen], threads: int) -> CompiledModel:
    """The model of a network; *chosen* has a program for each of its workloads, in order."""
    return CompiledModel(plan_of(project, chosen, threads), project.name)


def plan_of(project: Project, chosen: Sequence[Chosen], threads: int) -> ExecutionPlan:
    """The plan that :func:`model_of` loads, with its memory needs; constants are not packed yet."""
    return plan_network(
        project.network,
        tasks_of(project, chosen),
        target=project.target,
        threads=threads,
        median_s=kernels_median_s(project, chosen),
        bounds=project.bounds,
    )


def tasks_of(project: Project, chosen: Sequence[Chosen]) -> dict[str, CompiledTask]:
    """The code of each workload of *project* by its key."""
    workloads = project.network.workloads()
    return {w.key: _compiled(c) for w, c in zip(workloads, chosen, strict=True)}


def kernels_median_s(project: Project, chosen: Sequence[Chosen]) -> float | None:
    """Total seconds of all kernels, each multiplied by its calls; None if one was not timed."""
    total = 0.0
    for workload, program in zip(project.network.workloads(), chosen, strict=True):
        if program.median_s is None:
            return None
        total += workload.weight * program.median_s
    return total


def _compiled(chosen: Chosen, program: Program | None = None) -> CompiledTask:
    """The code of *chosen*, and for display the *program* that was compiled."""
    dag = chosen.task.dag
    # A program for all sizes is compiled from the definition itself.
    compiled_from = dag if dag.dims else chosen.state.definition
    built = listed(
        chosen.built, lambda: lowered_parts(dag, chosen.states, chosen.ranges), chosen.task.target,
        prefetch=chosen.task.reuse_distance_bytes > 0,
    )  # fmt: skip
    return CompiledTask.of(
        dag, built, compiled_from=compiled_from, program=program, median_s=chosen.median_s,
        schedule=schedule_text(chosen.states),
    )  # fmt: skip
