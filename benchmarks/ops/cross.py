"""Compile every case for another machine, to check that each program builds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from time import monotonic

import numpy as np

import ansorpy as ap
from ansorpy.codegen.cuda.device.build import CudaCode, build_cuda
from ansorpy.errors import AnsorpyError, CodegenError, NoValidProgram, ScheduleError
from ansorpy.ir.loops import Program
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.lowering.program import lower
from ansorpy.target import Target
from benchmarks.ops.case import Case

__all__ = ["compile_all", "compile_for_gpu"]

_ROWS, _TRIED = 64, 8
"""Number of programs drawn per placed sketch, and number of valid ones that are tried."""


def compile_all(
    cases: Iterable[Case], target: str, threads: int, seed: int, say: Callable[[str], None]
) -> dict[str, str]:
    """Compile all cases for *target*; return the reason of each failure by case name.

    Nothing is timed.  For a CPU, the program predicted fastest is compiled, and its result is
    checked if this machine can run the target's code.  For a GPU, the first program drawn that
    compiles is taken, which is quicker.
    """
    failures: dict[str, str] = {}
    made_for = ap.Target.parse(target)
    for case in cases:
        start = monotonic()
        try:
            if made_for.backend == "cuda":
                outcome = _taken(compile_for_gpu(case, made_for, seed))
            else:
                ap.tune(case.tensors(), effort="none", target=made_for, threads=threads, seed=seed)
                outcome = "ok"
        except AnsorpyError as error:
            failures[case.name] = outcome = error.message
        say(f"{case.name}: {monotonic() - start:.1f} s, {outcome}")
    return failures


def compile_for_gpu(case: Case, target: Target, seed: int) -> CudaCode:
    """Compile the first program drawn of *case* that fits *target* to a cubin.

    Raises:
        AnsorpyError: No such program is found, or it does not compile.
    """
    reason = "no row satisfies the constraints"
    for program in _drawn(case, target, np.random.default_rng(seed)):
        try:
            return build_cuda(program, target, symbol="kernel")
        except CodegenError as error:
            reason = error.message
    raise NoValidProgram(f"none of the programs drawn can be compiled: {reason}")


def _drawn(case: Case, target: Target, rng: np.random.Generator) -> Iterator[Program]:
    """Yield random programs of *case*, sketch by sketch."""
    sampler = SketchSampler(Task(case.dag, target, 1))
    for sketch in sampler.draw(len(sampler.sketches), rng):
        table = sketch.sample(_ROWS, rng)
        for row in table[sketch.valid(table)][:_TRIED]:
            try:
                yield lower(sketch.resolve(row), "kernel").run
            except ScheduleError:
                continue


def _taken(code: CudaCode) -> str:
    """Summary of the resources that the kernels of *code* need."""
    each = [
        f"{launch.threads} threads, {r.registers} registers, {launch.shared_bytes} bytes shared"
        + (f", {r.spilled_bytes} bytes spilled" if r.spilled_bytes else "")
        for launch, r in zip(code.plan.launches, code.resources, strict=True)
    ]
    return f"ok: {'; '.join(each)}"
