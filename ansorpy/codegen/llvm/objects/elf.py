"""The sections and symbols of 64-bit little-endian ELF files."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import mmap

__all__ = [
    "HEADER", "MAGIC", "PLACE", "SECTION", "SYMBOL", "SYMTAB", "Section", "Symbol", "sections_of",
    "symbols_of",
]  # fmt: skip

Image: TypeAlias = "bytes | mmap.mmap"

MAGIC = b"\x7fELF\x02\x01"
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SYMTAB = 2
"""The kind of a section with all symbols of an object."""
PLACE = 24
"""Where a section's header has its offset and size, two words of 64 bits."""
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")


@dataclass(frozen=True)
class Section:
    """A section; *at* is where its header stands, *link* and *info* depend on its *kind*."""

    at: int
    name: int
    kind: int
    address: int
    offset: int
    size: int
    link: int
    info: int


@dataclass(frozen=True)
class Symbol:
    """A symbol, whose entry stands *at*; *section* is 0 if it is not defined here."""

    at: int
    name: bytes
    info: int
    section: int
    value: int
    size: int


def sections_of(image: Image) -> list[Section]:
    """All sections, by their numbers."""
    fields = HEADER.unpack_from(image, 0)
    table, each, count = fields[6], fields[11], fields[12]
    found = []
    for at in range(table, table + count * each, each):
        name, kind, _, address, offset, size, link, info, _, _ = SECTION.unpack_from(image, at)
        found.append(Section(at, name, kind, address, offset, size, link, info))
    return found


def symbols_of(image: Image, table: Section, names: Section) -> Iterator[Symbol]:
    """The symbols in the section *table*, whose names are in the section *names*."""
    for at in range(table.offset, table.offset + table.size, SYMBOL.size):
        name, info, _, section, value, size = SYMBOL.unpack_from(image, at)
        start = names.offset + name
        yield Symbol(at, image[start : image.find(b"\0", start)], info, section, value, size)
