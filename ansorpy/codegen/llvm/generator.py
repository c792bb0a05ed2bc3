"""The code generator for CPUs: object code from LLVM."""

from __future__ import annotations

from collections.abc import Mapping

from ansorpy.codegen.backends import TextForm
from ansorpy.codegen.llvm.emit.dots import has_instruction
from ansorpy.codegen.llvm.emit.program import emit_llvm, emit_module
from ansorpy.codegen.llvm.objects.build import assembly, build
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.ir.dots import DOTS
from ansorpy.ir.expr import Function
from ansorpy.ir.extents import most
from ansorpy.ir.loops import Program
from ansorpy.target import Target

__all__ = ["LlvmGenerator"]


class LlvmGenerator:
    """Compiles loop programs with LLVM (:class:`ansorpy.codegen.backends.CodeGenerator`)."""

    @property
    def forms(self) -> Mapping[str, TextForm]:
        return {"llvm": TextForm(".ll", _ir), "asm": TextForm(".s", _assembly)}

    def build(
        self, program: Program, target: Target, *, symbol: str, prefetch: bool = False
    ) -> ObjectCode:
        return build(program, target, symbol=symbol, prefetch=prefetch)

    def workspace_bytes(self, program: Program, target: Target, threads: int) -> int:
        _, storage = emit_module(program, target, "kernel", prefetch=False)
        return most(storage.workspace_bytes(threads))

    def for_constants(self, program: Program, target: Target) -> tuple[Program, Target]:
        return program, target

    def dots(self, target: Target) -> frozenset[Function]:
        return frozenset(fn for fn in DOTS if has_instruction(fn, target))


def _ir(program: Program, target: Target, symbol: str, prefetch: bool) -> str:
    return emit_llvm(program, target, symbol, prefetch=prefetch)


def _assembly(program: Program, target: Target, symbol: str, prefetch: bool) -> str:
    return assembly(_ir(program, target, symbol, prefetch), target)
