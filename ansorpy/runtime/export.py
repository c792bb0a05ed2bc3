"""Export a plan as a shared library with a C header and an example; it depends on libc only."""

from __future__ import annotations

import hashlib
import keyword
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from ansorpy.codegen.llvm.team import needs_team, team_object
from ansorpy.errors import UsageError
from ansorpy.runtime.cpu import required_features
from ansorpy.runtime.dataobject import write_data_object
from ansorpy.runtime.describe import metadata_of
from ansorpy.runtime.entry import Constants, EntrySource, baseline, build_entry, emit_entry
from ansorpy.runtime.gpu.library import LIBRARIES, cuda_objects, cuda_source
from ansorpy.runtime.header import write_header
from ansorpy.runtime.in_memory import make_pool
from ansorpy.runtime.linker import Linker, find_linker
from ansorpy.runtime.metadata import Metadata
from ansorpy.runtime.plan import Plan
from ansorpy.target import Target

__all__ = ["FUNCTIONS", "MAX_BYTES", "export", "library_name"]

FUNCTIONS = ("init", "context_bytes", "run", "metadata")
"""Functions and data a library exports; each symbol is prefixed with the library name and ``_``."""

MAX_BYTES = (1 << 31) - (64 << 20)
"""Largest size of one library's constants: its code addresses data within 2 GiB."""


def export(plan: Plan, path: Path, *, pool: NDArray[np.uint8] | None = None) -> Path:
    """Write the library *path*, ``<stem>.h`` and ``<stem>_example.c``; returns *path*.

    Args:
        pool: The packed constants, to be stored ready to read.  Without it, the original constants
            are stored and ``init`` packs them.

    Raises:
        MissingDependency: There is no linker; the message says what to install.
        UsageError: The folder does not exist, or the constants exceed what one library can hold.
        CodegenError: The linker failed.
    """
    path = path.absolute()
    linker = check_exportable(path, plan.target)
    name = library_name(path)
    with TemporaryDirectory(prefix="ansorpy-", dir=path.parent) as folder:
        job = _Job(plan, name, path.name, Path(folder), linker)
        metadata = job.link_gpu(pool) if plan.target.kind == "cuda" else job.link(pool)
        os.replace(job.library, path)
    write_header(metadata, path)
    return path


def check_exportable(path: Path, target: Target) -> Linker:
    """Return the linker for the library *path*; call this before a long search to fail early.

    Raises:
        MissingDependency: There is no linker; the message says what to install.
        UsageError: The folder does not exist or cannot be written to.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UsageError(f"cannot write {path}: the folder {folder} does not exist")
    is_something_else = path.exists() and not path.is_file()  # a folder or a device
    if is_something_else or not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write {path}", hint="name a file in a folder you may write to")
    return find_linker(Target.host() if target.kind == "cuda" else target)


def library_name(path: Path) -> str:
    """Symbol prefix of library *path*: its stem as a C identifier."""
    name = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
    return f"net_{name}" if not name or name[0].isdigit() or keyword.iskeyword(name) else name


@dataclass(frozen=True)
class _Job:
    """The inputs and files of one link."""

    plan: Plan
    name: str
    soname: str
    folder: Path
    linker: Linker

    @property
    def library(self) -> Path:
        return self.folder / self.soname

    def link(self, pool: NDArray[np.uint8] | None) -> Metadata:
        """Build :attr:`library`; returns its metadata."""
        digest, constants = self._constants(pool)
        kind = Constants.ORIGINAL if pool is None else Constants.PACKED
        required = required_features(self.plan.target)
        source = EntrySource(self.plan, self.name, kind, features=required)
        metadata = metadata_of(self.plan, self.name, emit_entry(source), digest)
        source = replace(source, metadata=metadata.model_dump_json())
        codes = [code.code for code in self.plan.objects]
        files = [self._write(f"task{k}.o", code) for k, code in enumerate(codes)]
        files += [self._write("entry.o", build_entry(source)), *constants]
        has_threads = any(needs_team(code) for code in codes)
        if has_threads:
            team = team_object(baseline(self.plan.target), ends_with_library=True)
            files.append(self._write("team.o", team))
        self.linker.shared_library(
            self.library, self.soname, files, exports=self._exports(),
            needs=("-pthread",) if has_threads else (),
        )  # fmt: skip
        return metadata

    def link_gpu(self, pool: NDArray[np.uint8] | None) -> Metadata:
        """The same for a GPU: the constants are packed here, on this machine's CPU."""
        packed = make_pool(self.plan, self.name) if pool is None else pool
        _refuse_size(packed.nbytes)
        constants = hashlib.sha256(packed.data).digest()
        entry = cuda_source(self.plan, self.name, metadata="")
        metadata = metadata_of(self.plan, self.name, entry, constants)
        text = metadata.model_dump_json()
        files = cuda_objects(self.plan, self.name, text, packed, self.folder, self.linker)
        self.linker.shared_library(
            self.library, self.soname, files, exports=self._exports(), needs=LIBRARIES
        )
        return metadata

    def _write(self, name: str, data: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(data)
        return path

    def _constants(self, pool: NDArray[np.uint8] | None) -> tuple[bytes, list[Path]]:
        """Return a digest of the constants and the object file that holds them, if any."""
        size = self.plan.pool_bytes if pool is not None else _original_bytes(self.plan)
        _refuse_size(size)
        content = hashlib.sha256()
        if not size:
            return content.digest(), []
        path, like = self.folder / "constants.o", self.plan.objects[0].code
        pieces = _told(_pieces(self.plan) if pool is None else (pool.data,), content.update)
        # Original constants need writable memory: intermediate results of packing lie among them.
        name = f"{self.name}_raw_data" if pool is None else f"{self.name}_pool_data"
        write_data_object(path, like, name, pieces, is_written=pool is None)
        return content.digest(), [path]

    def _exports(self) -> Path:
        names = " ".join(f"{self.name}_{function};" for function in FUNCTIONS)
        return self._write("exports.map", f"{{ global: {names} local: *; }};\n".encode())


def _refuse_size(size: int) -> None:
    if size > MAX_BYTES:
        raise UsageError(f"the constants take {size / 2**30:.2f} GiB; a library holds up to 2 GiB")


def _told(
    pieces: Iterable[bytes | memoryview], hear: Callable[[bytes | memoryview], None]
) -> Iterator[bytes | memoryview]:
    """Yield *pieces*, passing each one to *hear* first."""
    for piece in pieces:
        hear(piece)
        yield piece


def _original_bytes(plan: Plan) -> int:
    return plan.raw_bytes + sum(array.nbytes for _, array in plan.direct)


def _pieces(plan: Plan) -> Iterable[bytes]:
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
