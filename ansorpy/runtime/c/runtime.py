"""The runtime of C programs: compile and run them here, export them as C files or a library."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansorpy.codegen.c.compiler import find_compiler
from ansorpy.codegen.c.generator import style_of
from ansorpy.codegen.c.loader import flags_of, load
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.errors import AnsorpyError, MissingDependency, UsageError
from ansorpy.runtime.backends import TimedCalls, TracedCalls
from ansorpy.runtime.c.source import c_source, is_apart
from ansorpy.runtime.constants import make_pool
from ansorpy.runtime.describe import metadata_of
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.footprint import Footprint
from ansorpy.runtime.header import write_header
from ansorpy.runtime.library.checksum import seal
from ansorpy.runtime.library.forms import Form, Pack, constants_file, form_of, stem_of
from ansorpy.runtime.library.linker import library_name
from ansorpy.runtime.library.metadata import Metadata
from ansorpy.runtime.model import Operands, Runs
from ansorpy.runtime.native import Entry, traced_entry
from ansorpy.target import Target
from ansorpy.writable import demand_writable, replacing

__all__ = ["CRuntime"]


class CRuntime:
    """C for any machine (:class:`ansorpy.runtime.backends.Runtime`)."""

    packs_at_init = False
    operands = Operands()

    def load(self, plan: ExecutionPlan, pool: NDArray[np.uint8], name: str) -> Runs:
        return _entry(plan, pool, name).executable

    def timed(self, plan: ExecutionPlan, pool: NDArray[np.uint8]) -> TimedCalls:
        return _entry(plan, pool, "timed", is_timed=True).timed_calls

    def traced(self, plan: ExecutionPlan, pool: NDArray[np.uint8]) -> TracedCalls:
        here, imports, library = _linked(plan)
        return traced_entry(here, pool, (), imports, library)

    def footprint(self, plan: ExecutionPlan) -> Footprint:
        return plan.footprint

    def kernels(self, code: ObjectCode, sizes: Sequence[int]) -> int:
        return 0

    def refusal(self, target: Target, name: str) -> AnsorpyError:
        return MissingDependency(
            f"{name} is a C program, and this machine has no C compiler",
            hint="install gcc or clang, set CC, or export it to a name that ends in .c",
        )

    def require_export(self, path: Path, target: Target) -> None:
        match form_of(path):
            case Form.C:
                demand_writable(constants_file(path))
            case Form.SO:
                find_compiler()
            case _:
                raise UsageError(
                    f"programs in C cannot be written as {path.name}",
                    hint="let the name end in .c, or in .so for a shared library",
                )

    def export(self, plan: ExecutionPlan, path: Path, pack: Pack | None) -> Metadata:
        """Write *path*: C source, with large constants in a file beside it, if the name ends in
        ``.c``; else a shared library."""
        name = library_name(path)
        packed = make_pool(plan, name)
        is_source = form_of(path) is Form.C
        triple = "" if is_source else Target.host().triple
        with replacing(path) as made:
            source = made.with_name(f"{stem_of(path)}{Form.C.suffix}")
            metadata = _write(plan, name, packed, source, triple)
            if not is_source:
                write_header(metadata, source)
                find_compiler().link(source, made, flags_of(style_of(plan.target)))
                seal(made)
            elif is_apart(packed):
                os.replace(constants_file(source), constants_file(path))
        return metadata


def _write(
    plan: ExecutionPlan, name: str, pool: NDArray[np.uint8], source: Path, triple: str
) -> Metadata:
    """Write the C file *source*, and its constants if they are large."""
    constants = hashlib.sha256(pool.data).digest()
    metadata = metadata_of(plan, name, c_source(plan, name, pool, source), constants, triple)
    if is_apart(pool):
        constants_file(source).write_bytes(pool.data)
    text = c_source(plan, name, pool, source, metadata.model_dump_json())
    source.write_text(text, encoding="utf-8")
    return metadata


def _entry(
    plan: ExecutionPlan, pool: NDArray[np.uint8], name: str, *, is_timed: bool = False
) -> Entry:
    """The calls of *plan* with entry functions that LLVM compiles for this machine."""
    here, imports, library = _linked(plan)
    return Entry(here, pool, name, imports=imports, owner=library, is_timed=is_timed)


def _linked(plan: ExecutionPlan) -> tuple[ExecutionPlan, dict[str, int], object]:
    """*plan* for this machine, the addresses of its calls, compiled from C, and their library."""
    codes = plan.objects
    library = load(codes)
    imports = {code.symbol: library.address(code.symbol) for code in codes}
    return replace(plan, target=Target.host()), imports, library
