"""Link exported programs with whatever compiler driver the machine has; only exports need one."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ansorpy.codegen.compiler_driver import Driver, find_driver, to_linker
from ansorpy.errors import UsageError
from ansorpy.runtime.library.checksum import seal
from ansorpy.runtime.library.data_object import has_large_sections
from ansorpy.runtime.library.forms import stem_of
from ansorpy.target import Target
from ansorpy.writable import replacing

__all__ = [
    "FUNCTIONS", "MAX_BYTES", "Link", "Linker", "find_linker", "library_name", "linking",
    "refuse_size",
]  # fmt: skip

FUNCTIONS = ("init", "plan", "run", "metadata")
"""Functions and data a library exports; each symbol is prefixed with the library name and ``_``."""

MAX_BYTES = (1 << 31) - (64 << 20)
"""Largest size of one library's constants where code addresses all data within 2 GiB."""

_OF_LIBC = re.compile(r"sem|mtx|cnd|res|(pthread|posix)_\w+")
"""Names with which libc has functions ``<name>_init``, as libraries do."""


class Linker(Driver):
    """A compiler driver that assembles and links."""

    def compile_c(self, source: Path, output: Path) -> None:
        """Compile the C file *source* to the object *output*.

        Raises:
            CodegenError: The compiler failed; the message is the compiler's own.
        """
        options = ["-std=gnu11", "-O1", "-fPIC", "-c"]
        self.run([*options, str(source), "-o", str(output)], f"compile {source.name}")

    def merge(self, output: Path, files: Sequence[Path]) -> None:
        """Link the objects *files* to one object, *output*.

        Raises:
            CodegenError: The linker failed; the message is the linker's own.
        """
        command = ["-r", "-nostdlib", *map(str, files), "-o", str(output)]
        self.run(command, f"merge the objects of {output.name}")

    def shared_library(
        self, output: Path, files: Sequence[Path], exports: Path, *, needs: Sequence[str] = ()
    ) -> None:
        """Link *files* (objects, assembly, libraries) to *output*, under whose name it is loaded.

        Args:
            exports: A version script, which names the visible symbols.
            needs: Libraries, as linker options.

        Raises:
            CodegenError: The linker failed; the message is the linker's own.
        """
        options = to_linker(
            "-soname", output.name, "-z", "noexecstack", "--version-script", str(exports),
            "-z", "defs", "--as-needed",
        )  # fmt: skip
        whole = ["-shared", *options, *map(str, files), "-lm", *needs, "-o", str(output)]
        self.run(whole, f"link {output.name}")


def find_linker(target: Target) -> Linker:
    """The compiler driver for *target*; raises as :func:`find_driver` does."""
    arch = target.triple.split("-")[0]
    return Linker(find_driver(f"linking a library for {arch}", target).command)


def library_name(path: Path) -> str:
    """Symbol prefix of library *path*: its stem as a C identifier that libc does not use so."""
    name = re.sub(r"\W", "_", stem_of(path), flags=re.ASCII)
    is_taken = keyword.iskeyword(name) or _OF_LIBC.fullmatch(name)
    return f"net_{name}" if not name.strip("_") or name[0].isdigit() or is_taken else name


@dataclass(frozen=True)
class Link:
    """The library *name*, which is being made at *path*; its object files are put beside it."""

    name: str
    path: Path
    linker: Linker

    @property
    def folder(self) -> Path:
        return self.path.parent

    def link(self, files: Sequence[Path], *, needs: Sequence[str] = ()) -> None:
        """Link *files*; *needs*: libraries, as linker options."""
        names = " ".join(f"{self.name}_{function};" for function in FUNCTIONS)
        exports = self.folder / "exports.map"
        exports.write_text(f"{{ global: {names} local: *; }};\n", encoding="ascii")
        self.linker.shared_library(self.path, files, exports, needs=needs)


@contextmanager
def linking(name: str, path: Path, linker: Linker) -> Iterator[Link]:
    """Make library *name*; it is moved to *path* when the context exits without an error."""
    with replacing(path) as made:
        yield Link(name, made, linker)
        seal(made)


def refuse_size(size: int, target: Target) -> None:
    """Raise :class:`UsageError` if a library for *target* cannot hold *size* bytes of constants."""
    if size > MAX_BYTES and not has_large_sections(target):
        raise UsageError(
            f"the constants take {size / 2**30:.2f} GiB; a library for {target.name} holds up to "
            "2 GiB",
            hint="make one for an x86-64 CPU, which holds any size, or run the network without a "
            "library, where its programs can run: ansorpy run, or ansorpy.compile in Python",
        )
