"""Read a library's metadata, and what it needs, without running its code: a minimal ELF reader.

Loading a library runs its constructors, so a foreign file must be rejected before that.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ansorpy.errors import ForeignFile

__all__ = ["CONSTANTS", "Needs", "constants_in", "find_metadata", "machine_of", "needs_of"]

CONSTANTS = ".lrodata"
"""Name of the section of a library's constants, which linkers keep apart from all others; on
x86-64, it may be large."""

_SUFFIX = b"_metadata"
_ELF = b"\x7fELF\x02\x01"
"""A 64-bit little-endian file."""
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC, _NOBITS, _DYNSYM, _VERNEED = 6, 8, 11, 0x6FFFFFFE
_ENTRY = struct.Struct("<qQ")
_NEEDED = 1
_NEED = struct.Struct("<HHIII")
_VERSION = struct.Struct("<IHHII")
_MAX_BYTES = 16 << 20


@dataclass(frozen=True)
class _Section:
    name: int
    kind: int
    address: int
    offset: int
    size: int
    link: int


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
    if data[:6] != _ELF:
        return 0, 0
    sections = _sections(data)
    names = sections[_HEADER.unpack_from(data, 0)[13]].offset
    wanted = CONSTANTS.encode() + b"\0"
    for section in sections:
        start = names + section.name
        if data[start : start + len(wanted)] == wanted:
            return section.offset, section.size
    return 0, 0


def machine_of(path: Path) -> int:
    """The machine number in the header of the ELF file *path* (``e_machine``)."""
    with path.open("rb") as file:
        _, _, machine, *_ = _HEADER.unpack(file.read(_HEADER.size))
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
            tuple(_named(data, _DYNAMIC, _needed)), frozenset(_named(data, _VERNEED, _versions))
        )


def _named(
    data: mmap.mmap, kind: int, places: Callable[[mmap.mmap, _Section], Iterator[int]]
) -> Iterator[str]:
    """The names at *places* of the sections of this *kind*."""
    sections = _sections(data)
    for section in sections:
        if section.kind == kind:
            names = sections[section.link].offset
            for place in places(data, section):
                start = names + place
                yield data[start : data.find(b"\0", start)].decode()


def _needed(data: mmap.mmap, section: _Section) -> Iterator[int]:
    """The names, as offsets, of the libraries in *section*."""
    for at in range(section.offset, section.offset + section.size, _ENTRY.size):
        tag, name = _ENTRY.unpack_from(data, at)
        if tag == _NEEDED:
            yield name


def _versions(data: mmap.mmap, section: _Section) -> Iterator[int]:
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
    if data[:6] != _ELF:
        raise ValueError("not a 64-bit little-endian ELF file")
    sections = _sections(data)
    for section in sections:
        if section.kind == _DYNSYM and section.link < len(sections):
            for value, size in _metadata_symbols(data, section, sections[section.link]):
                return _content(data, sections, value, size)
    return None


def _sections(data: mmap.mmap) -> list[_Section]:
    fields = _HEADER.unpack_from(data, 0)
    table, entry_bytes, count = fields[6], fields[11], fields[12]
    return [_section(data, table + k * entry_bytes) for k in range(count)]


def _section(data: mmap.mmap, at: int) -> _Section:
    name, kind, _, address, offset, size, link, *_ = _SECTION.unpack_from(data, at)
    return _Section(name, kind, address, offset, size, link)


def _metadata_symbols(
    data: mmap.mmap, symbols: _Section, names: _Section
) -> Iterator[tuple[int, int]]:
    for at in range(symbols.offset, symbols.offset + symbols.size, _SYMBOL.size):
        name, _, _, where, value, size = _SYMBOL.unpack_from(data, at)
        start = names.offset + name
        end = data.find(b"\0", start)
        if where and data[start:end].endswith(_SUFFIX) and 0 < size <= _MAX_BYTES:
            yield value, size


def _content(data: mmap.mmap, sections: list[_Section], value: int, size: int) -> bytes | None:
    for section in sections:
        inside = section.address and section.address <= value < section.address + section.size
        if inside and section.kind != _NOBITS:
            start = section.offset + value - section.address
            return bytes(data[start : start + size]).rstrip(b"\0")
    return None
