"""Rename the global symbols of an object file, so that objects of several programs can be linked
together: the same task has the same name in all of them."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from ansorpy.codegen.llvm.objects.elf import (
    PLACE,
    SYMTAB,
    Section,
    Symbol,
    sections_of,
    symbols_of,
)

__all__ = ["defined", "renamed_symbols"]


def defined(image: bytes) -> list[str]:
    """The names of the global symbols that the object *image* defines."""
    return [symbol.name.decode() for symbol in _globals(image)[0] if symbol.section]


def renamed_symbols(image: bytes, names: Mapping[str, str]) -> bytes:
    """The object *image* with other *names* for some global symbols, defined in it or not."""
    made = bytearray(image)
    symbols, table = _globals(image)
    strings = bytearray(image[table.offset : table.offset + table.size])
    for symbol in symbols:
        name = names.get(symbol.name.decode())
        if name is not None:
            struct.pack_into("<I", made, symbol.at, len(strings))
            strings += name.encode() + b"\0"
    struct.pack_into("<QQ", made, table.at + PLACE, len(made), len(strings))  # behind all else
    return bytes(made + strings)


def _globals(image: bytes) -> tuple[list[Symbol], Section]:
    """The global symbols, and the section of the names."""
    sections = sections_of(image)
    table = next(section for section in sections if section.kind == SYMTAB)
    names = sections[table.link]
    return list(symbols_of(image, table, names))[table.info :], names
