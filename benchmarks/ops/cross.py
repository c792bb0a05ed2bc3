"""Every case compiled for another machine: does each program build there?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from time import monotonic

import numpy as np

import ansorpy as ap
from ansorpy.codegen.cuda.build import CudaCode, build_cuda
from ansorpy.errors import AnsorpyError, CodegenError, NoValidProgram, ScheduleError
from ansorpy.ir.loops import Program
from ansorpy.ir.task import Task
from ansorpy.rules.structure import StructureSampler
from ansorpy.schedule.lower import lower
from ansorpy.target import Target
from benchmarks.ops.case import Case

__all__ = ["compile_all", "compile_for_gpu"]

_ROWS, _TRIED = 64, 8
"""Programs drawn of a structure, and of those that satisfy its constraints how many are tried."""


def compile_all(
    cases: Iterable[Case], target: str, threads: int, seed: int, say: Callable[[str], None]
) -> dict[str, str]:
    """The reason of each case that does not compile for *target*, by name.

    Nothing is timed: for a CPU each is compiled as it is predicted fastest, and where this
    machine can run the target's code the result is checked as well.  For a GPU, whose programs
    nothing predicts yet, each is compiled as it is drawn first.
    """
    failures: dict[str, str] = {}
    made_for = ap.Target.parse(target)
    for case in cases:
        start = monotonic()
        try:
            if made_for.kind == "cuda":
                outcome = _taken(compile_for_gpu(case, made_for, seed))
            else:
                ap.tune(case.tensors(), effort="none", target=made_for, threads=threads, seed=seed)
                outcome = "ok"
        except AnsorpyError as error:
            failures[case.name] = outcome = error.message
        say(f"{case.name}: {monotonic() - start:.1f} s, {outcome}")
    return failures


def compile_for_gpu(case: Case, target: Target, seed: int) -> CudaCode:
    """The first program drawn of *case* that fits on *target*, as a cubin.

    Raises:
        AnsorpyError: None is found, or it does not compile.
    """
    reason = "no row satisfies the constraints"
    for program in _drawn(case, target, np.random.default_rng(seed)):
        try:
            return build_cuda(program, target, symbol="kernel")
        except CodegenError as error:
            reason = error.message
    raise NoValidProgram(f"none of the programs drawn can be compiled: {reason}")


def _drawn(case: Case, target: Target, rng: np.random.Generator) -> Iterator[Program]:
    """Random programs of *case*, sketch after sketch."""
    sampler = StructureSampler(Task(case.dag, target, 1))
    for structure in sampler.draw(len(sampler.sketches), rng):
        table = structure.sample(_ROWS, rng)
        for row in table[structure.valid(table)][:_TRIED]:
            try:
                yield lower(structure.bind(row), "kernel").run
            except ScheduleError:
                continue


def _taken(code: CudaCode) -> str:
    """What the kernels of *code* take, in a few words."""
    each = [
        f"{launch.threads} threads, {r.registers} registers, {launch.shared_bytes} bytes shared"
        + (f", {r.spilled_bytes} bytes spilled" if r.spilled_bytes else "")
        for launch, r in zip(code.plan.launches, code.resources, strict=True)
    ]
    return f"ok: {'; '.join(each)}"
