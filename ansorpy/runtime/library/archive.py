"""Write a static library: an archive in the format of GNU ar, with an index of its symbols."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from ansorpy.errors import UsageError

__all__ = ["write_archive"]

_MAGIC = b"!<arch>\n"
_HEADER_BYTES = 60
_SIZE_DIGITS = 10


def write_archive(path: Path, members: Mapping[Path, Sequence[str]]) -> None:
    """Write *path* of the files *members*, each with the symbols that it defines.

    Equal members make equal archives: times and owners are 0.

    Raises:
        UsageError: A member has more bytes than its header can say.
    """
    symbols = [symbol for names in members.values() for symbol in names]
    text = b"".join(symbol.encode() + b"\0" for symbol in symbols)
    index_bytes = 4 + 4 * len(symbols) + len(text)
    at, places = len(_MAGIC) + _HEADER_BYTES + index_bytes + index_bytes % 2, []
    for member, names in members.items():
        places += [at] * len(names)
        size = member.stat().st_size
        if size >= 10**_SIZE_DIGITS:
            raise UsageError(
                f"{path.name} cannot hold the {size / 1e9:.1f} GB of {member.name}: the files in "
                "an archive have less than 10 GB",
                hint="write a shared library (.so) or an object (.o)",
            )
        at += _HEADER_BYTES + size + size % 2
    with path.open("wb") as file:
        file.write(_MAGIC)
        _write_header(file, "/", index_bytes)
        file.write(struct.pack(f">{1 + len(places)}I", len(places), *places) + text)
        file.write(b"\n" * (index_bytes % 2))
        for member in members:
            size = member.stat().st_size
            _write_header(file, f"{member.name}/", size)
            with member.open("rb") as content:
                shutil.copyfileobj(content, file)
            file.write(b"\n" * (size % 2))


def _write_header(file: BinaryIO, name: str, size: int) -> None:
    file.write(f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{size:<{_SIZE_DIGITS}}`\n".encode())
