"""Export of programs that were chosen for a CPU as C instead of machine code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ansorpy.api.project import Project
from ansorpy.api.sized.program import lowered_parts
from ansorpy.api.tuner import Chosen
from ansorpy.codegen.backends import codegen_of
from ansorpy.measure.build.builder import task_symbol
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.target import Target
from ansorpy.targets.c import c_target

__all__ = ["emitted_target", "in_c"]

_SOURCE = ".c"
_FORM = "c"


def emitted_target(path: Path, target: Target, threads: int) -> Target:
    """The target of programs written to *path*: C if the name ends in ``.c``, else *target*.

    Raises:
        UsageError: Programs for *target* cannot be written as C.
    """
    is_c = _FORM in codegen_of(target).forms
    if path.suffix != _SOURCE or is_c:
        return target
    return c_target(target.with_threads(threads))


def in_c(
    project: Project, chosen: Sequence[Chosen], target: Target
) -> tuple[Project, list[Chosen]]:
    """*project* and the programs *chosen* for it, as C for *target*.

    Raises:
        CodegenError: The C compiler of this machine, if there is one, refuses a program.
    """
    return replace(project, target=target), [_in_c(program, target) for program in chosen]


def _in_c(chosen: Chosen, target: Target) -> Chosen:
    task = replace(chosen.task, target=target)
    lowered = lowered_parts(task.dag, chosen.states, chosen.ranges)
    built = build_lowered(lowered, target, task_symbol(task))
    return replace(chosen, task=task, built=built, median_s=None)
