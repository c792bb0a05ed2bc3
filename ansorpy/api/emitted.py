"""Export of programs that were chosen for a CPU in another form than machine code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ansorpy.api.assemble import plan_of
from ansorpy.api.project import Project
from ansorpy.api.sized.program import lowered_parts
from ansorpy.api.tuner import Chosen
from ansorpy.codegen.backends import codegen_of
from ansorpy.measure.build.builder import task_symbol
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.runtime.execution_plan import ExecutionPlan, Step
from ansorpy.runtime.library.forms import Form, Pack, form_of
from ansorpy.runtime.library.storage import stored
from ansorpy.target import Target
from ansorpy.targets.c import c_target

__all__ = ["emitted_plan", "emitted_target"]

_C, _LLVM = "c", "llvm"
"""Readable forms of code generators."""


def emitted_target(path: Path, target: Target, threads: int) -> Target:
    """The target of programs written to *path*: C if the name ends in ``.c``, else *target*.

    Raises:
        UsageError: Programs for *target* cannot be written as C.
    """
    is_c = _C in codegen_of(target).forms
    if form_of(path) is not Form.C or is_c:
        return target
    return c_target(target.with_threads(threads))


def emitted_plan(
    project: Project, chosen: Sequence[Chosen], path: Path, threads: int, pack: Pack | None
) -> ExecutionPlan:
    """The plan of the programs *chosen* for *project*, as they are written to *path*.

    Raises:
        UsageError: They cannot be written in the form that the name says.
        CodegenError: The C compiler of this machine, if there is one, refuses a program.
    """
    target = emitted_target(path, project.target, threads)
    if target is not project.target:
        project, chosen = replace(project, target=target), [_in_c(c, target) for c in chosen]
    plan = plan_of(project, chosen, threads)
    if form_of(path) not in (Form.LL, Form.ASM) or _LLVM not in codegen_of(target).forms:
        return plan
    listings = dict(listing for program in chosen for listing in _listings(program))
    return _listed(stored(plan, pack or Pack.AT_INIT, path.stem), listings)


def _in_c(chosen: Chosen, target: Target) -> Chosen:
    task = replace(chosen.task, target=target)
    lowered = lowered_parts(task.dag, chosen.states, chosen.ranges)
    built = build_lowered(lowered, target, task_symbol(task))
    return replace(chosen, task=task, built=built, median_s=None)


def _listings(chosen: Chosen) -> Iterator[tuple[str, bytes]]:
    """The symbols of a program's functions, and their LLVM IR."""
    task, built = chosen.task, chosen.built
    lowered = lowered_parts(task.dag, chosen.states, chosen.ranges)
    emit = codegen_of(task.target).forms[_LLVM].of
    prefetch = task.reuse_distance_bytes > 0
    yield (
        built.run.symbol, emit(lowered.run, task.target, built.run.symbol, prefetch).encode()
    )  # fmt: skip
    if built.bind is not None and lowered.bind is not None:
        symbol = built.bind.symbol
        yield symbol, emit(lowered.bind, task.target, symbol, False).encode()


def _listed(plan: ExecutionPlan, listings: Mapping[str, bytes]) -> ExecutionPlan:
    """*plan* with *listings* for machine code; what can be packed here has been."""

    def listed(steps: Sequence[Step]) -> tuple[Step, ...]:
        codes = [replace(step.code, code=listings[step.code.symbol]) for step in steps]
        return tuple(replace(s, code=code) for s, code in zip(steps, codes, strict=True))

    return replace(plan, steps=listed(plan.steps), packs=listed(plan.packs))
