"""Rename the global symbols of an object file, so that objects of several programs can be linked
together: the same task has the same name in all of them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from ansorpy.errors import UsageError

__all__ = ["defined", "renamed"]

_ELF = b"\x7fELF\x02\x01"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMTAB = 2


def defined(image: bytes) -> list[str]:
    """The names of the global symbols that the object *image* defines."""
    return [name for _, name, where in _globals(image) if where]


def renamed(image: bytes, names: Mapping[str, str]) -> bytes:
    """The object *image* with other *names* for some global symbols, defined in it or not."""
    made = bytearray(image)
    _, table, at_table = _tables(image)
    strings = bytearray(image[table[4] : table[4] + table[5]])
    for at, name, _ in _globals(image):
        if name in names:
            struct.pack_into("<I", made, at, len(strings))
            strings += names[name].encode() + b"\0"
    fields = list(table)
    fields[4], fields[5] = len(made), len(strings)  # behind all else
    _SECTION.pack_into(made, at_table, *fields)
    return bytes(made + strings)


def _globals(image: bytes) -> Iterator[tuple[int, str, int]]:
    """The place of each global symbol's entry, its name, and the section that defines it."""
    symbols, names, _ = _tables(image)
    offset, size, first = symbols[4], symbols[5], symbols[7]
    for at in range(offset + first * _SYMBOL.size, offset + size, _SYMBOL.size):
        name, _, _, where, _, _ = _SYMBOL.unpack_from(image, at)
        start = names[4] + name
        yield at, image[start : image.index(b"\0", start)].decode(), where


def _tables(image: bytes) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The section headers of the symbols and of their names, and where the latter stands."""
    if image[:6] != _ELF:
        raise UsageError(
            "static libraries and objects are made for 64-bit little-endian machines with ELF",
            hint="write C with --target c",
        )
    fields = _HEADER.unpack_from(image, 0)
    table, each, count = fields[6], fields[11], fields[12]
    sections = [_SECTION.unpack_from(image, table + k * each) for k in range(count)]
    symbols = next(section for section in sections if section[1] == _SYMTAB)
    return symbols, sections[symbols[6]], table + symbols[6] * each
