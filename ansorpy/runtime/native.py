"""The runtime of CPU code from LLVM, linked in memory by its JIT or into shared libraries."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansorpy.codegen.llvm.objects.build import compile_ir
from ansorpy.codegen.llvm.objects.elf import MAGIC
from ansorpy.codegen.llvm.objects.jit import load
from ansorpy.codegen.llvm.threads.traced import Recorder
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.errors import AnsorpyError, MissingDependency, UsageError
from ansorpy.runtime.backends import TimedCalls, TracedCalls
from ansorpy.runtime.cpu_features import missing_features, required_features
from ansorpy.runtime.entry.module import build_entry
from ansorpy.runtime.entry.source import EntrySource
from ansorpy.runtime.executable import Code, Executable
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.footprint import Footprint
from ansorpy.runtime.library.build import build_program
from ansorpy.runtime.library.forms import Form, Pack, constants_file, form_of
from ansorpy.runtime.library.linker import find_linker
from ansorpy.runtime.library.metadata import Metadata
from ansorpy.runtime.model import Operands
from ansorpy.target import Target
from ansorpy.writable import demand_writable

__all__ = ["Entry", "NativeRuntime", "traced_entry"]

_MOST_EVENTS = 1 << 20
"""That a trace keeps: 40 MB."""


class NativeRuntime:
    """Machine code of CPUs (:class:`ansorpy.runtime.backends.Runtime`)."""

    operands = Operands()
    packs_at_init = True

    def load(self, plan: ExecutionPlan, pool: NDArray[np.uint8], name: str) -> Executable:
        return Entry(plan, pool, name, _codes(plan)).executable

    def timed(self, plan: ExecutionPlan, pool: NDArray[np.uint8]) -> TimedCalls:
        return Entry(plan, pool, "timed", _codes(plan), is_timed=True).timed_calls

    def traced(self, plan: ExecutionPlan, pool: NDArray[np.uint8]) -> TracedCalls:
        return traced_entry(plan, pool, _codes(plan), {})

    def footprint(self, plan: ExecutionPlan) -> Footprint:
        return plan.footprint

    def kernels(self, code: ObjectCode, sizes: Sequence[int]) -> int:
        return 0

    def refusal(self, target: Target, name: str) -> AnsorpyError:
        lacking = ", ".join(missing_features(required_features(target)))
        return MissingDependency(
            f"{name} is for {target.name} ({target.triple}), which this machine cannot "
            f"run{': it lacks ' + lacking if lacking else ''}",
            hint="export it and run it there",
        )

    def require_export(self, path: Path, target: Target) -> None:
        empty = compile_ir(f'target triple = "{target.triple}"', target)
        if not empty.startswith(MAGIC):
            raise UsageError(
                f"{path.name} cannot be made for {target.name}: machine code of programs is for "
                "64-bit little-endian machines with ELF files",
                hint="write C, which is for all little-endian machines, with --target c "
                "(target= in Python), or c:word=32 for those of 32 bits and WebAssembly",
            )
        match form_of(path):
            case Form.C:
                raise UsageError(
                    f"code for {target.name} cannot be written as C to {path.name}",
                    hint="compile with target c, or name a library",
                )
            case Form.SO | Form.O:
                find_linker(target)
            case Form.LL | Form.ASM:
                demand_writable(constants_file(path))

    def export(self, plan: ExecutionPlan, path: Path, pack: Pack | None) -> Metadata:
        return build_program([plan], path, pack)


class Entry:
    """The code of a plan's calls, linked in this process with functions that run them in order.

    Args:
        plan: For a target that runs here.
        pool: Its packed constants.
        name: Prefix of the functions.
        codes: Object code of the calls.
        imports: Addresses of calls that are loaded already, by symbol.
        owner: Keeps the imported code loaded.
        is_timed: A run records the time that each call takes.
        is_traced: These are events as well; *imports* has the function that keeps them.
    """

    def __init__(
        self,
        plan: ExecutionPlan,
        pool: NDArray[np.uint8],
        name: str,
        codes: Sequence[bytes] = (),
        imports: Mapping[str, int] | None = None,
        owner: object = None,
        *,
        is_timed: bool = False,
        is_traced: bool = False,
    ) -> None:
        source = EntrySource(plan, name, is_timed=is_timed, is_traced=is_traced)
        parts = ["init", "plan", "run", "pool", *(["stamps"] if is_timed else [])]
        symbols = [f"{name}_{part}" for part in parts]
        self._library = load(
            [build_entry(source), *codes], symbols=symbols, imports=imports,
            labels={step.code.symbol: step.name for step in reversed(plan.steps) if step.name},
        )  # fmt: skip
        init, plan_, run, where = (self._library.address(symbol) for symbol in symbols[:4])
        ctypes.c_void_p.from_address(where).value = pool.ctypes.data
        owners = (self._library, pool, owner)
        code = Code(name, init, plan_, run, owners, source.features, tuple(plan.counted))
        self.executable = Executable(code, plan.inputs, plan.outputs, plan.aliases)
        self._stamps = 1 + len(plan.steps) if is_timed else 0
        self._name = name

    @property
    def timed_calls(self) -> TimedCalls:
        """The executable, and the times of the calls of its last run."""
        address = self._library.address(f"{self._name}_stamps")
        stamps = (ctypes.c_int64 * self._stamps).from_address(address)
        return TimedCalls(self.executable, np.ctypeslib.as_array(stamps)[1:])


def traced_entry(
    plan: ExecutionPlan,
    pool: NDArray[np.uint8],
    codes: Sequence[bytes],
    imports: Mapping[str, int],
    owner: object = None,
) -> TracedCalls:
    """Link *plan* so that runs record events; the arguments are those of :class:`Entry`."""
    recorder = Recorder(_MOST_EVENTS)
    entry = Entry(
        plan, pool, "traced", codes, {**imports, **recorder.imports}, (owner, recorder),
        is_timed=True, is_traced=True,
    )  # fmt: skip
    return TracedCalls(entry.executable, recorder)


def _codes(plan: ExecutionPlan) -> list[bytes]:
    return [code.code for code in plan.objects]
