"""Export of programs that were chosen for a CPU in another form than machine code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ansorpy.api.assemble import plan_of
from ansorpy.api.project import Project
from ansorpy.api.sized.program import lowered_parts
from ansorpy.api.tuner import Chosen
from ansorpy.codegen.backends import codegen_of
from ansorpy.measure.build.builder import task_symbol
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.library.forms import Form, form_of
from ansorpy.target import Target
from ansorpy.targets.c import c_target

__all__ = ["default_form", "emitted_plan", "emitted_target"]

_C = "c"
"""A readable form of some code generators."""


def default_form(target: Target) -> Form:
    """The form of programs for *target* where the user names none: C, or a shared library."""
    return Form.C if _is_c(target) else Form.SO


def emitted_target(path: Path, target: Target, threads: int) -> Target:
    """The target of programs written to *path*: C if the name ends in ``.c``, else *target*.

    Raises:
        UsageError: Programs for *target* cannot be written as C.
    """
    if form_of(path) is not Form.C or _is_c(target):
        return target
    return c_target(target.with_threads(threads))


def _is_c(target: Target) -> bool:
    return _C in codegen_of(target).forms


def emitted_plan(
    project: Project, chosen: Sequence[Chosen], path: Path, threads: int
) -> ExecutionPlan:
    """The plan of the programs *chosen* for *project*, as they are written to *path*.

    Raises:
        UsageError: They cannot be written as C.
        CodegenError: The C compiler of this machine, if there is one, refuses a program.
    """
    target = emitted_target(path, project.target, threads)
    if target is not project.target:
        project, chosen = replace(project, target=target), [_in_c(c, target) for c in chosen]
    return plan_of(project, chosen, threads)


def _in_c(chosen: Chosen, target: Target) -> Chosen:
    task = replace(chosen.task, target=target)
    lowered = lowered_parts(task.dag, chosen.states, chosen.ranges)
    built = build_lowered(lowered, target, task_symbol(task))
    return replace(chosen, task=task, built=built, median_s=None)
