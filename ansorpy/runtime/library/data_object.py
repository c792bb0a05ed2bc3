"""Write bytes directly into an object file, under one symbol.

An assembler's ``.incbin`` would need the bytes in a separate file first, and would write an equally
large object to the system's temporary folder.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ansorpy.ir.strides import ALIGNMENT_BYTES
from ansorpy.runtime.library.elf import CONSTANTS
from ansorpy.target import Target

__all__ = ["has_large_sections", "write_data_object"]

_PROGBITS, _SYMTAB, _STRTAB = 1, 2, 3
_ALLOC, _LARGE = 2, 0x10000000
_X86_64 = 62
"""The number, in headers, of the machine whose sections may be large."""
_GLOBAL_OBJECT, _HIDDEN = 0x11, 2
_DATA, _SYMBOLS, _NAMES, _SECTION_NAMES, _COUNT = 1, 2, 3, 4, 6


def has_large_sections(target: Target) -> bool:
    """Whether linkers for *target* put large sections where they do not part code and its data."""
    return target.triple.startswith("x86_64")


@dataclass(frozen=True)
class _Format:
    """Word layout of an object file; 32-bit and 64-bit formats differ."""

    order: str
    is_wide: bool

    @property
    def header(self) -> struct.Struct:
        return struct.Struct(f"{self.order}16sHHI{self._word * 3}IHHHHHH")

    @property
    def section(self) -> struct.Struct:
        return struct.Struct(f"{self.order}II{self._word * 4}II{self._word * 2}")

    def symbol(self, name: int, value: int, size: int, info: int, other: int, where: int) -> bytes:
        if self.is_wide:
            return struct.pack(f"{self.order}IBBHQQ", name, info, other, where, value, size)
        return struct.pack(f"{self.order}IIIBBH", name, value, size, info, other, where)

    @property
    def _word(self) -> str:
        return "Q" if self.is_wide else "I"


def write_data_object(
    path: Path, like: bytes, symbol: str, pieces: Iterable[bytes | memoryview]
) -> None:
    """Write the object *path*: *pieces*, concatenated, under the hidden *symbol*.

    The data is read-only and starts on a cache line.

    Args:
        like: Any object for the same machine; its header supplies the machine-specific fields.
    """
    form = _Format("<" if like[5] == 1 else ">", like[4] == 2)
    ident, _, machine, version, _, _, _, flags, *_ = form.header.unpack_from(like)
    with path.open("wb") as file:
        file.write(bytes(ALIGNMENT_BYTES))
        for piece in pieces:
            file.write(piece)
        size = file.tell() - ALIGNMENT_BYTES
        kind = _ALLOC | (_LARGE if machine == _X86_64 else 0)
        table = _write_tables(file, form, symbol, size, kind)
        entries = form.header.size, 0, 0, form.section.size, _COUNT, _SECTION_NAMES
        file.seek(0)
        file.write(form.header.pack(ident, 1, machine, version, 0, 0, table, flags, *entries))


def _write_tables(file: BinaryIO, form: _Format, symbol: str, size: int, kind: int) -> int:
    """Write symbol, name and section tables after the data; returns the section table's offset.

    *kind*: Flags of the section with the data.
    """
    section_names = [b"", CONSTANTS.encode(), b".symtab", b".strtab"]
    section_names += [b".shstrtab", b".note.GNU-stack"]
    blank = form.symbol(0, 0, 0, 0, 0, 0)
    symbols = blank + form.symbol(1, 0, size, _GLOBAL_OBJECT, _HIDDEN, _DATA)
    contents = (symbols, b"\0" + symbol.encode() + b"\0", b"\0".join(section_names) + b"\0")
    places = []
    for content in contents:
        file.write(bytes(-file.tell() % 8))
        places.append((file.tell(), len(content)))
        file.write(content)
    file.write(bytes(-file.tell() % 8))
    table = file.tell()
    names = [sum(len(n) + 1 for n in section_names[:k]) for k in range(_COUNT)]
    # Fields: name, type, flags, address, offset, size, link, info, alignment, entry size.
    rows = (
        (0,) * 10,
        (names[_DATA], _PROGBITS, kind, 0, ALIGNMENT_BYTES, size, 0, 0, ALIGNMENT_BYTES, 0),
        (names[_SYMBOLS], _SYMTAB, 0, 0, *places[0], _NAMES, 1, 8, len(blank)),
        (names[_NAMES], _STRTAB, 0, 0, *places[1], 0, 0, 1, 0),
        (names[_SECTION_NAMES], _STRTAB, 0, 0, *places[2], 0, 0, 1, 0),
        (names[_COUNT - 1], _PROGBITS, 0, 0, table, 0, 0, 0, 1, 0),
    )
    file.write(b"".join(form.section.pack(*row) for row in rows))
    return table
