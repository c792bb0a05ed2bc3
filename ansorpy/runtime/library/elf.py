"""Read a library's metadata, and what it needs, without running its code: a minimal ELF reader.

Loading a library runs its constructors, so a foreign file must be rejected before that.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ansorpy.codegen.llvm.objects.elf import HEADER, MAGIC, Section, sections_of, symbols_of
from ansorpy.errors import ForeignFile

__all__ = [
    "CONSTANTS", "Needs", "constants_in", "find_metadata", "machine_of", "needs_of", "soname_of",
]  # fmt: skip

CONSTANTS = ".lrodata"
"""Name of the section of a library's constants, which linkers keep apart from all others; on
x86-64, it may be large."""

_SUFFIX = b"_metadata"
_DYNAMIC, _NOBITS, _DYNSYM, _VERNEED = 6, 8, 11, 0x6FFFFFFE
_ENTRY = struct.Struct("<qQ")
_NEEDED, _SONAME = 1, 14
_NEED = struct.Struct("<HHIII")
_VERSION = struct.Struct("<IHHII")
_MAX_BYTES = 16 << 20


def find_metadata(path: Path) -> bytes:
    """Return the contents of the symbol of *path* whose name ends in ``_metadata``.

    Raises:
        ForeignFile: Unreadable, not a 64-bit shared library, or without such a symbol.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found = _search(data)
    except OSError as error:
        raise ForeignFile.unreadable(path, error) from None
    except (ValueError, OverflowError, IndexError, struct.error):
        raise ForeignFile(
            f"cannot read {path}: it is not a shared library, or it is incomplete",
            hint="copy it again, or make it again",
        ) from None
    if found is None:
        raise ForeignFile(
            f"{path} is not a library that ansorpy made",
            hint="make one with: ansorpy compile net.onnx -o net.so",
        )
    return found


def constants_in(data: mmap.mmap) -> tuple[int, int]:
    """Offset and bytes of the constants in the ELF file *data*; zeros without, or for 32 bits."""
    if data[: len(MAGIC)] != MAGIC:
        return 0, 0
    sections = sections_of(data)
    names = sections[HEADER.unpack_from(data, 0)[13]].offset
    wanted = CONSTANTS.encode() + b"\0"
    for section in sections:
        start = names + section.name
        if data[start : start + len(wanted)] == wanted:
            return section.offset, section.size
    return 0, 0


def machine_of(path: Path) -> int:
    """The machine number in the header of the ELF file *path* (``e_machine``)."""
    with path.open("rb") as file:
        _, _, machine, *_ = HEADER.unpack(file.read(HEADER.size))
    return int(machine)


@dataclass(frozen=True)
class Needs:
    """The shared libraries that a library is linked with, and the symbol versions that it needs."""

    libraries: tuple[str, ...]
    versions: frozenset[str]


def needs_of(path: Path) -> Needs:
    """What the shared library *path*, a 64-bit little-endian ELF file, needs to be loaded."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return Needs(
            tuple(_named(data, _DYNAMIC, partial(_tagged, _NEEDED))),
            frozenset(_named(data, _VERNEED, _versions)),
        )


def soname_of(path: Path) -> str | None:
    """The name under which programs linked with the shared library *path* look for it, if any."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return next(_named(data, _DYNAMIC, partial(_tagged, _SONAME)), None)


def _named(
    data: mmap.mmap, kind: int, places: Callable[[mmap.mmap, Section], Iterator[int]]
) -> Iterator[str]:
    """The names at *places* of the sections of this *kind*."""
    sections = sections_of(data)
    for section in sections:
        if section.kind == kind:
            names = sections[section.link].offset
            for place in places(data, section):
                start = names + place
                yield data[start : data.find(b"\0", start)].decode()


def _tagged(wanted: int, data: mmap.mmap, section: Section) -> Iterator[int]:
    """The names, as offsets, of the entries in *section* with the tag *wanted*."""
    for at in range(section.offset, section.offset + section.size, _ENTRY.size):
        tag, name = _ENTRY.unpack_from(data, at)
        if tag == wanted:
            yield name


def _versions(data: mmap.mmap, section: Section) -> Iterator[int]:
    """The names, as offsets, of the versions in *section*: a list for each library, linked by
    distances of which the last is 0."""
    at, step = section.offset, 1
    while step:
        _, count, _, first, step = _NEED.unpack_from(data, at)
        place = at + first
        for _ in range(count):
            _, _, _, name, following = _VERSION.unpack_from(data, place)
            yield name
            place += following
        at += step


def _search(data: mmap.mmap) -> bytes | None:
    if data[:4] != MAGIC[:4]:
        return None
    if data[: len(MAGIC)] != MAGIC:
        raise ValueError("not a 64-bit little-endian ELF file")
    sections = sections_of(data)
    for section in sections:
        if section.kind == _DYNSYM and section.link < len(sections):
            for symbol in symbols_of(data, section, sections[section.link]):
                is_named = symbol.section and symbol.name.endswith(_SUFFIX)
                if is_named and 0 < symbol.size <= _MAX_BYTES:
                    return _content(data, sections, symbol.value, symbol.size)
    return None


def _content(data: mmap.mmap, sections: list[Section], value: int, size: int) -> bytes | None:
    for section in sections:
        inside = section.address and section.address <= value < section.address + section.size
        if inside and section.kind != _NOBITS:
            start = section.offset + value - section.address
            return bytes(data[start : start + size]).rstrip(b"\0")
    return None
