"""Link exported programs: the names, symbols and size limits that all backends share."""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ansorpy.errors import UsageError
from ansorpy.runtime.linker import Linker

__all__ = ["FUNCTIONS", "MAX_BYTES", "Link", "library_name", "linking", "refuse_size"]

FUNCTIONS = ("init", "context_bytes", "run", "metadata")
"""Functions and data a library exports; each symbol is prefixed with the library name and ``_``."""

MAX_BYTES = (1 << 31) - (64 << 20)
"""Largest size of one library's constants: its code addresses data within 2 GiB."""


def library_name(path: Path) -> str:
    """Symbol prefix of library *path*: its stem as a C identifier."""
    name = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
    return f"net_{name}" if not name or name[0].isdigit() or keyword.iskeyword(name) else name


@dataclass(frozen=True)
class Link:
    """The library *name* while it is being made; its object files are put in ``folder``."""

    name: str
    soname: str
    folder: Path
    linker: Linker

    def write(self, name: str, data: bytes) -> Path:
        """Write *data* to the file *name* of the folder; returns its path."""
        path = self.folder / name
        path.write_bytes(data)
        return path

    def link(self, files: Sequence[Path], *, needs: Sequence[str] = ()) -> None:
        """Link *files*; *needs*: libraries, as linker options."""
        names = " ".join(f"{self.name}_{function};" for function in FUNCTIONS)
        exports = self.write("exports.map", f"{{ global: {names} local: *; }};\n".encode())
        self.linker.shared_library(
            self.folder / self.soname, self.soname, files, exports=exports, needs=needs
        )


@contextmanager
def linking(name: str, path: Path, linker: Linker) -> Iterator[Link]:
    """Make library *name*; it is moved to *path* when the context exits without an error."""
    with TemporaryDirectory(prefix="ansorpy-", dir=path.parent) as folder:
        link = Link(name, path.name, Path(folder), linker)
        yield link
        os.replace(link.folder / link.soname, path)


def refuse_size(size: int) -> None:
    """Raise :class:`UsageError` if one library cannot hold *size* bytes of constants."""
    if size > MAX_BYTES:
        raise UsageError(f"the constants take {size / 2**30:.2f} GiB; a library holds up to 2 GiB")
