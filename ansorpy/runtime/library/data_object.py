"""Write bytes directly into a 64-bit little-endian object file, under one symbol.

An assembler's ``.incbin`` would need the bytes in a separate file first, and would write an equally
large object to the system's temporary folder.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from ansorpy.codegen.llvm.objects.elf import HEADER, SECTION, SYMBOL, SYMTAB
from ansorpy.ir.strides import ALIGNMENT_BYTES
from ansorpy.runtime.library.elf import CONSTANTS
from ansorpy.target import Target

__all__ = ["has_large_sections", "write_data_object"]

_PROGBITS, _STRTAB = 1, 3
_ALLOC, _LARGE = 2, 0x10000000
_X86_64 = 62
"""The number, in headers, of the machine whose sections may be large."""
_GLOBAL_OBJECT, _HIDDEN = 0x11, 2
_DATA, _SYMBOLS, _NAMES, _SECTION_NAMES, _COUNT = 1, 2, 3, 4, 6


def has_large_sections(target: Target) -> bool:
    """Whether linkers for *target* put large sections where they do not part code and its data."""
    return target.triple.startswith("x86_64")


def write_data_object(
    path: Path, like: bytes, symbol: str, pieces: Iterable[bytes | memoryview]
) -> None:
    """Write the object *path*: *pieces*, concatenated, under the hidden *symbol*.

    The data is read-only and starts on a cache line.

    Args:
        like: Any object for the same machine; its header supplies the machine-specific fields.
    """
    ident, _, machine, version, _, _, _, flags, *_ = HEADER.unpack_from(like)
    with path.open("wb") as file:
        file.write(bytes(ALIGNMENT_BYTES))
        for piece in pieces:
            file.write(piece)
        size = file.tell() - ALIGNMENT_BYTES
        kind = _ALLOC | (_LARGE if machine == _X86_64 else 0)
        table = _write_tables(file, symbol, size, kind)
        entries = HEADER.size, 0, 0, SECTION.size, _COUNT, _SECTION_NAMES
        file.seek(0)
        file.write(HEADER.pack(ident, 1, machine, version, 0, 0, table, flags, *entries))


def _write_tables(file: BinaryIO, symbol: str, size: int, kind: int) -> int:
    """Write symbol, name and section tables after the data; returns the section table's offset.

    *kind*: Flags of the section with the data.
    """
    section_names = [b"", CONSTANTS.encode(), b".symtab", b".strtab"]
    section_names += [b".shstrtab", b".note.GNU-stack"]
    own = SYMBOL.pack(1, _GLOBAL_OBJECT, _HIDDEN, _DATA, 0, size)
    symbols = bytes(SYMBOL.size) + own  # the first one is always empty
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
        (names[_SYMBOLS], SYMTAB, 0, 0, *places[0], _NAMES, 1, 8, SYMBOL.size),
        (names[_NAMES], _STRTAB, 0, 0, *places[1], 0, 0, 1, 0),
        (names[_SECTION_NAMES], _STRTAB, 0, 0, *places[2], 0, 0, 1, 0),
        (names[_COUNT - 1], _PROGBITS, 0, 0, table, 0, 0, 0, 1, 0),
    )
    file.write(b"".join(SECTION.pack(*row) for row in rows))
    return table
