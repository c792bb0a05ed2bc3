"""The C code generator: C11, compiled on this machine if it has a compiler."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Literal

from ansorpy.codegen.backends import TextForm
from ansorpy.codegen.c.emit import CSource, emit_c
from ansorpy.codegen.c.loader import can_compile, shared_library
from ansorpy.codegen.c.packed import packed
from ansorpy.codegen.c.style import Style
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.ir.expr import Function
from ansorpy.ir.extents import most
from ansorpy.ir.loops import Program
from ansorpy.target import Target
from ansorpy.targets.c import SCALAR_BITS

__all__ = ["CGenerator", "style_of"]


class CGenerator:
    """Emits loop programs as C (:class:`ansorpy.codegen.backends.CodeGenerator`).

    The CPU of this machine packs the constants, so none are left for the target to pack.  C11
    cannot express prefetching.
    """

    @property
    def forms(self) -> Mapping[str, TextForm]:
        return {"c": TextForm(".c", _source)}

    def build(
        self, program: Program, target: Target, *, symbol: str, prefetch: bool = False
    ) -> ObjectCode:
        start = time.perf_counter()
        source = _emitted(program, target, symbol)
        # Without a compiler, the program can be exported but not run.
        library = shared_library(source) if can_compile(source.style) else b""
        return packed(source, library, time.perf_counter() - start)

    def workspace_bytes(self, program: Program, target: Target, threads: int) -> int:
        return most(_emitted(program, target, "kernel").storage.workspace_bytes(threads))

    def for_constants(self, program: Program, target: Target) -> tuple[Program, Target]:
        return program, Target.host()

    def dots(self, target: Target) -> frozenset[Function]:
        return frozenset()


def style_of(target: Target) -> Style:
    """The style of C for *target*: vectors if it has them, threads if it has several cores."""
    word: Literal[32, 64] = 32 if target.word_bits == 32 else 64
    threads: Literal["none", "openmp"] = "openmp" if target.cores > 1 else "none"
    return Style(word, threads, vectors=target.vector_bits > SCALAR_BITS)


def _emitted(program: Program, target: Target, symbol: str) -> CSource:
    return emit_c(program, target, symbol, style_of(target))


def _source(program: Program, target: Target, symbol: str, prefetch: bool) -> str:
    return _emitted(program, target, symbol).text
