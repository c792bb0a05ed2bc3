"""The code generator for NVIDIA GPUs: CUDA C compiled by NVRTC, with a launch plan."""

from __future__ import annotations

from collections.abc import Mapping

from ansorpy.codegen.backends import TextForm
from ansorpy.codegen.cuda.device.build import build_cuda
from ansorpy.codegen.cuda.device.nvrtc import ptx
from ansorpy.codegen.cuda.emit.program import emit_cuda
from ansorpy.codegen.cuda.launch.packed import packed
from ansorpy.codegen.cuda.passes.run_on_host import for_host
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.ir.expr import Function
from ansorpy.ir.loops import Program
from ansorpy.target import Target

__all__ = ["CudaGenerator"]


class CudaGenerator:
    """Compiles loop programs with NVRTC (:class:`ansorpy.codegen.backends.CodeGenerator`).

    The CPU of this machine packs the constants.  Prefetching is not needed: while some threads wait
    for memory, others run.
    """

    @property
    def forms(self) -> Mapping[str, TextForm]:
        return {"cuda": TextForm(".cu", _source), "ptx": TextForm(".ptx", _ptx)}

    def build(
        self, program: Program, target: Target, *, symbol: str, prefetch: bool = False
    ) -> ObjectCode:
        return packed(build_cuda(program, target, symbol=symbol), symbol)

    def workspace_bytes(self, program: Program, target: Target, threads: int) -> int:
        return emit_cuda(program, target, "kernel").plan.workspace_bytes

    def for_constants(self, program: Program, target: Target) -> tuple[Program, Target]:
        return for_host(program), Target.host()

    def dots(self, target: Target) -> frozenset[Function]:
        return frozenset()


def _source(program: Program, target: Target, symbol: str, prefetch: bool) -> str:
    return emit_cuda(program, target, symbol).text


def _ptx(program: Program, target: Target, symbol: str, prefetch: bool) -> str:
    return ptx(_source(program, target, symbol, prefetch), target)
