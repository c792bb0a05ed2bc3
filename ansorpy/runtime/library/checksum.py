"""Checksums of a library, in a few bytes behind its ELF file, which loaders ignore.

A library that was cut short or changed in transit is refused instead of run.  This is no protection
from somebody who changes a library on purpose: a library is code (docs/concepts/trust.md).
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ansorpy.errors import ForeignFile
from ansorpy.runtime.library.elf import constants_in

__all__ = ["LARGE_BYTES", "SEAL_BYTES", "CheckedLibrary", "changed", "check", "seal"]

_MAGIC = b"ansorpy-checked\0"
_SEAL = struct.Struct("<16s32sQQ32s")
"""The magic, digest, offset and bytes of the constants, and a digest of everything else."""

SEAL_BYTES = _SEAL.size
LARGE_BYTES = 16 << 20
"""Constants from this size on are checked when the library is first used, not when it is loaded."""


def seal(path: Path) -> None:
    """Append the checksums of the library *path*."""
    with path.open("r+b") as file:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
            offset, size = constants_in(data)
            if size < LARGE_BYTES:
                offset = size = 0
            constants = hashlib.sha256(view[offset : offset + size]).digest()
            beginning = _MAGIC, constants, offset, size
            rest = _rest(view, beginning)
        file.seek(0, 2)
        file.write(_SEAL.pack(*beginning, rest))


@dataclass(frozen=True)
class CheckedLibrary:
    """A library that is as it was written; ``constants`` checks its large constants, if any."""

    constants: Callable[[], None] | None


def check(path: Path) -> CheckedLibrary | None:
    """Check the library *path*, except for large constants; None if it has no checksums.

    Raises:
        ForeignFile: It cannot be read, or is not as it was written.
    """
    data = _mapped(path)
    with memoryview(data) as view:
        if len(view) < SEAL_BYTES or bytes(view[-SEAL_BYTES:][: len(_MAGIC)]) != _MAGIC:
            return None
        *beginning, rest = _SEAL.unpack(view[-SEAL_BYTES:])
        _, digest, offset, size = beginning
        if _rest(view[:-SEAL_BYTES], (_MAGIC, digest, offset, size)) != rest:
            raise changed(path)

    def check_constants() -> None:
        # The file that was loaded, even if it has been replaced since.
        with memoryview(data) as view:
            if hashlib.sha256(view[offset : offset + size]).digest() != digest:
                raise changed(path)

    return CheckedLibrary(check_constants if size else None)


def _rest(view: memoryview, beginning: tuple[bytes, bytes, int, int]) -> bytes:
    """Digest of all bytes of *view* but the constants, and of the *beginning* of the checksums."""
    _, _, offset, size = beginning
    content = hashlib.sha256(view[:offset])
    content.update(view[offset + size :])
    content.update(_SEAL.pack(*beginning, b""))
    return content.digest()


def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise ForeignFile.unreadable(path, error) from None
    except ValueError:
        raise ForeignFile(
            f"cannot read {path}: it is not a shared library but empty",
            hint="copy it again, or make it again",
        ) from None


def changed(path: Path) -> ForeignFile:
    """The refusal of a library that is not as it was written."""
    return ForeignFile(
        f"{path} is incomplete, or was changed after it was made",
        hint="copy it again, or make it again; programs like strip change a library, too",
    )
