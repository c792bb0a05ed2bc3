"""Load a library written by :func:`ansorpy.runtime.export.export` into this process."""

from __future__ import annotations

import ctypes
import os
import shutil
import weakref
from _ctypes import dlclose
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ansorpy.errors import ForeignFile, MissingDependency
from ansorpy.runtime.executable import Code, Executable
from ansorpy.runtime.library.checksum import CheckedLibrary, changed, check
from ansorpy.runtime.library.elf import find_metadata, machine_of
from ansorpy.runtime.library.metadata import Metadata, read_metadata

__all__ = ["Library", "open_library", "read_library"]

_THIS = Path("/proc/self/exe")
"""The running executable, whose ELF header gives the machine number of this process."""

_OPENMP = ("libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so")
"""OpenMP runtimes, which libraries of C programs use."""


@dataclass(frozen=True)
class Library:
    """A loaded library: its metadata and its functions.

    ``check`` raises :class:`ForeignFile` if its large constants were changed; None if it has none.
    """

    metadata: Metadata
    executable: Executable
    check: Callable[[], None] | None


def read_library(path: Path) -> tuple[Metadata, bytes, CheckedLibrary | None]:
    """The metadata of the library *path*, its text, and its checksums, without running any of it.

    A library that somebody compiled from C has no checksums, and its metadata names no machine.

    Raises:
        ForeignFile: The file is not an ansorpy library, is incomplete or changed, or has another
            version of the interface.
    """
    checked, text = check(path), find_metadata(path)
    metadata = read_metadata(text, str(path))
    if checked is None and metadata.target.triple:
        raise changed(path)
    return metadata, text, checked


def open_library(path: Path) -> Library:
    """Load the library *path*.

    Raises:
        ForeignFile: The file is not an ansorpy library, is incomplete or changed, or has another
            version of the interface.
        MissingDependency: It was built for another architecture.
    """
    metadata, text, checked = read_library(path)
    if machine_of(path) != machine_of(_THIS):
        arch = metadata.target.triple.split("-")[0] or "another processor"
        raise MissingDependency(
            f"{path} was built for {arch}, which this machine cannot run",
            hint="load it there, or compile the network for this machine: without --target",
        )
    library = _opened(path, metadata, text)
    if checked is not None:
        _unload_when_unused(library)
    init, plan, run = (
        _address(library, f"{metadata.name}_{part}", path) for part in ("init", "plan", "run")
    )
    counted = tuple(metadata.named_dims[name] for name in metadata.counted)
    code = Code(str(path), init, plan, run, library, metadata.target.required, counted)
    ports = metadata.input_ports, metadata.output_ports
    executable = Executable(code, *ports, metadata.port_aliases)
    return Library(metadata, executable, None if checked is None else checked.constants)


def _opened(path: Path, metadata: Metadata, text: bytes) -> ctypes.CDLL:
    """Load the library with the file's current contents.

    The dynamic loader reuses a library it has already loaded under this name, even when the file
    was replaced since; in that case a copy under another name is loaded.

    Raises:
        ForeignFile: The file was replaced after *text* was read from it.
    """
    library = _load(path.absolute())
    if _says(library, metadata, text):
        return library
    dlclose(library._handle)
    with TemporaryDirectory(prefix="ansorpy-") as folder:
        library = _load(Path(shutil.copy(path, folder)))
    if _says(library, metadata, text):
        return library
    dlclose(library._handle)
    raise changed(path)


def _says(library: ctypes.CDLL, metadata: Metadata, text: bytes) -> bool:
    """Whether *text* is the metadata of *library*."""
    held = _find(library, f"{metadata.name}_metadata")
    return held is not None and ctypes.string_at(held) == text


def _unload_when_unused(library: ctypes.CDLL) -> None:
    """Unload *library*, which ansorpy made, once nothing refers to it any more.

    Those that somebody compiled from C stay: an OpenMP runtime that is linked into them may have
    threads that never end.
    """
    for name in _OPENMP:
        with suppress(OSError):
            # Opened once more and never closed, a runtime that is loaded stays, with its threads.
            ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    weakref.finalize(library, dlclose, library._handle).atexit = False


def _load(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise ForeignFile(f"{path} cannot be loaded: {error}") from error


def _address(library: ctypes.CDLL, symbol: str, path: Path) -> int:
    address = _find(library, symbol)
    if address is None:
        raise ForeignFile(f"{path} lacks the function {symbol}")
    return address


def _find(library: ctypes.CDLL, symbol: str) -> int | None:
    """The address of *symbol*; None if *library* has none."""
    try:
        return ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
    except AttributeError:
        return None
