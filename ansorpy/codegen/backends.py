"""The interface of code generators, and the code generator of each backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ansorpy.codegen.object_code import ObjectCode
from ansorpy.ir.expr import Function
from ansorpy.ir.loops import Program
from ansorpy.registry import Registry
from ansorpy.target import Target

__all__ = ["CODEGEN", "CodeGenerator", "TextForm", "codegen_of"]


@dataclass(frozen=True)
class TextForm:
    """Generated code as readable text.

    Args:
        suffix: File name suffix of this form: ``".ll"``.
        of: Writes a program for a target as a function with the given name.  If the last argument
            is true, constants are prefetched, because they lie outside a core's own caches.
    """

    suffix: str
    of: Callable[[Program, Target, str, bool], str]


class CodeGenerator(Protocol):
    """Turns loop programs into code for the targets of one backend."""

    @property
    def forms(self) -> Mapping[str, TextForm]:
        """The readable forms of its code by name, beginning with the form that it emits itself."""

    def build(
        self, program: Program, target: Target, *, symbol: str, prefetch: bool = False
    ) -> ObjectCode:
        """Compile *program* for *target*, which need not be this machine.

        With *prefetch*, the code assumes that constants lie outside a core's own caches.

        Raises:
            CodegenError: The program uses what the target does not have, or the compiler rejects
                it.
            MissingDependency: The compiler is not installed.
        """

    def workspace_bytes(self, program: Program, target: Target, threads: int) -> int:
        """Bytes of workspace that the code of *program* needs at the largest sizes of a call, found
        without compiling it."""

    def for_constants(self, program: Program, target: Target) -> tuple[Program, Target]:
        """Adapt *program*, which packs constants once, to the machine that will run it.

        Returns the adapted program and the target to compile it for.
        """

    def dots(self, target: Target) -> frozenset[Function]:
        """The dot products of words that *target* computes with one instruction per vector."""


CODEGEN: Registry[CodeGenerator] = Registry(
    "code generator",
    {
        "llvm": "ansorpy.codegen.llvm.generator:LlvmGenerator",
        "cuda": "ansorpy.codegen.cuda.generator:CudaGenerator",
        "c": "ansorpy.codegen.c.generator:CGenerator",
    },
)
"""The code generator of each backend."""


def codegen_of(target: Target) -> CodeGenerator:
    """The code generator of *target*'s backend."""
    return CODEGEN.one(target.backend)
