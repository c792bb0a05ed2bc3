"""The runtime of CPU code from LLVM, linked in memory by its JIT or into shared libraries."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansorpy.codegen.llvm.objects.jit import load
from ansorpy.codegen.llvm.threads.team import needs_team, team_object
from ansorpy.codegen.llvm.threads.traced import Recorder
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.errors import AnsorpyError, MissingDependency, UsageError
from ansorpy.runtime.backends import TimedCalls, TracedCalls
from ansorpy.runtime.cpu_features import missing_features, required_features
from ansorpy.runtime.describe import metadata_of
from ansorpy.runtime.entry.module import Constants, EntrySource, baseline, build_entry, emit_entry
from ansorpy.runtime.executable import Code, Executable
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.library.data_object import write_data_object
from ansorpy.runtime.library.linker import Link, find_linker, library_name, linking, refuse_size
from ansorpy.runtime.library.metadata import Metadata
from ansorpy.runtime.model import Operands
from ansorpy.target import Target

__all__ = ["Entry", "NativeRuntime", "traced_entry"]

_MOST_EVENTS = 1 << 20
"""That a trace keeps: 40 MB."""


class NativeRuntime:
    """Machine code of CPUs (:class:`ansorpy.runtime.backends.Runtime`)."""

    operands = Operands()

    def load(self, plan: ExecutionPlan, pool: NDArray[np.uint8], name: str) -> Executable:
        return Entry(plan, pool, name, _codes(plan)).executable

    def timed(self, plan: ExecutionPlan, pool: NDArray[np.uint8]) -> TimedCalls:
        return Entry(plan, pool, "timed", _codes(plan), is_timed=True).timed_calls

    def traced(self, plan: ExecutionPlan, pool: NDArray[np.uint8]) -> TracedCalls:
        return traced_entry(plan, pool, _codes(plan), {})

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
        if path.suffix == ".c":
            raise UsageError(
                f"code for {target.name} cannot be written as C to {path.name}",
                hint="compile with target c, or name a library",
            )
        find_linker(target)

    def export(self, plan: ExecutionPlan, path: Path, pool: NDArray[np.uint8] | None) -> Metadata:
        with linking(library_name(path), path, find_linker(plan.target)) as link:
            return _export(plan, link, pool)


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
        required = required_features(plan.target)
        source = EntrySource(
            plan, name, Constants.GIVEN, features=required, is_timed=is_timed, is_traced=is_traced
        )
        parts = ["init", "plan", "run", "pool", *(["stamps"] if is_timed else [])]
        symbols = [f"{name}_{part}" for part in parts]
        self._library = load(
            [build_entry(source), *codes], symbols=symbols, imports=imports,
            labels={step.code.symbol: step.name for step in reversed(plan.steps) if step.name},
        )  # fmt: skip
        init, plan_, run, where = (self._library.address(symbol) for symbol in symbols[:4])
        ctypes.c_void_p.from_address(where).value = pool.ctypes.data
        owners = (self._library, pool, owner)
        code = Code(name, init, plan_, run, owners, required, tuple(plan.counted))
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


def _export(plan: ExecutionPlan, link: Link, pool: NDArray[np.uint8] | None) -> Metadata:
    """Build the library of *plan*; returns its metadata."""
    digest, constants = _constants(plan, link, pool)
    kind = Constants.ORIGINAL if pool is None else Constants.PACKED
    required = required_features(plan.target)
    source = EntrySource(plan, link.name, kind, features=required)
    metadata = metadata_of(plan, link.name, emit_entry(source), digest, plan.target.triple)
    source = replace(source, metadata=metadata.model_dump_json())
    codes = [code.code for code in plan.objects]
    files = [link.write(f"task{k}.o", code) for k, code in enumerate(codes)]
    files += [link.write("entry.o", build_entry(source)), *constants]
    has_threads = any(needs_team(code) for code in codes)
    if has_threads:
        team = team_object(baseline(plan.target), ends_with_library=True)
        files.append(link.write("team.o", team))
    link.link(files, needs=("-pthread",) if has_threads else ())
    return metadata


def _constants(
    plan: ExecutionPlan, link: Link, pool: NDArray[np.uint8] | None
) -> tuple[bytes, list[Path]]:
    """Return a digest of the constants and the object file that holds them, if any."""
    size = plan.pool_bytes if pool is not None else _original_bytes(plan)
    refuse_size(size)
    content = hashlib.sha256()
    if not size:
        return content.digest(), []
    path, like = link.folder / "constants.o", plan.objects[0].code
    pieces = _observed(_pieces(plan) if pool is None else (pool.data,), content.update)
    # Original constants need writable memory: packing keeps its intermediate results among them.
    name = f"{link.name}_raw_data" if pool is None else f"{link.name}_pool_data"
    write_data_object(path, like, name, pieces, is_written=pool is None)
    return content.digest(), [path]


def _observed(
    pieces: Iterable[bytes | memoryview], observe: Callable[[bytes | memoryview], None]
) -> Iterator[bytes | memoryview]:
    """Yield *pieces*, passing each one to *observe* first."""
    for piece in pieces:
        observe(piece)
        yield piece


def _original_bytes(plan: ExecutionPlan) -> int:
    return plan.raw_bytes + sum(array.nbytes for _, array in plan.direct)


def _pieces(plan: ExecutionPlan) -> Iterable[bytes]:
    """The original constants in the entry's order: region ``RAW``, then those read as they are."""
    position = 0
    for offset, array in sorted(plan.raw, key=lambda item: item[0]):
        yield bytes(offset - position)
        yield array.tobytes()
        position = offset + array.nbytes
    yield bytes(plan.raw_bytes - position)
    for _, array in plan.direct:
        yield array.tobytes()
        yield bytes(-array.nbytes % 64)
