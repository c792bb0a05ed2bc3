"""Build a cubin from a loop program: emit CUDA C, compile it, check its resource needs."""

from __future__ import annotations

import time
from dataclasses import dataclass

from ansorpy.codegen.cuda.device.nvrtc import compile_source
from ansorpy.codegen.cuda.emit.program import emit_cuda
from ansorpy.codegen.cuda.launch.plan import LaunchPlan
from ansorpy.codegen.cuda.launch.resources import (
    KernelResources,
    check_launch,
    check_resources,
    parse_report,
)
from ansorpy.ir.loops import Program
from ansorpy.target import Target

__all__ = ["CudaCode", "build_cuda"]


@dataclass(frozen=True)
class CudaCode:
    """A cubin, and how its kernels are launched.

    ``resources`` holds the compiler's reports about the kernels of ``plan.launches``, in order.
    """

    source: str
    cubin: bytes
    plan: LaunchPlan
    resources: tuple[KernelResources, ...]
    build_s: float


def build_cuda(program: Program, target: Target, *, symbol: str) -> CudaCode:
    """Compile *program* for *target*, which need not be on this machine.

    Raises:
        CodegenError: The program has no kernel, needs more resources than the target has, or the
            compiler rejects it.
        MissingDependency: This machine has no NVRTC, or its NVRTC does not support the target.
    """
    start = time.perf_counter()
    source = emit_cuda(program, target, symbol)
    for launch in source.plan.launches:
        check_launch(launch, target)
    cubin, report = compile_source(source.text, target)
    resources = parse_report(report, source.plan)
    if any(taken.spilled_bytes for taken in resources):
        # The register estimate was too low; fewer blocks with more registers each beat spilling.
        alone = emit_cuda(program, target, symbol, several=False)
        if alone.text != source.text:
            source, (cubin, report) = alone, compile_source(alone.text, target)
            resources = parse_report(report, source.plan)
    reported = {taken.kernel: taken for taken in resources}
    for launch in source.plan.launches:
        if launch.kernel in reported:
            check_resources(launch, reported[launch.kernel], target)
    return CudaCode(source.text, cubin, source.plan, resources, time.perf_counter() - start)
