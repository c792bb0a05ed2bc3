"""A C program packed as one object: its functions as JSON, then the library compiled from them.

Code that stores, sends and compares CPU object code can thus handle C as well.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache

from pydantic import TypeAdapter, ValidationError

from ansorpy.codegen.c.emit import CSource
from ansorpy.codegen.c.style import Style
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.errors import ForeignFile

__all__ = ["CFunctions", "is_packed", "packed", "unpacked"]

_MARK = b"ansorpy-c-1\n"
_LENGTH_BYTES = 8


@dataclass(frozen=True)
class CFunctions:
    """The functions of one program; a file of several programs defines their ``helpers`` once."""

    symbol: str
    helpers: tuple[str, ...]
    functions: str
    style: Style


def packed(source: CSource, library: bytes, build_s: float) -> ObjectCode:
    """Pack *source* and the shared *library* compiled from it, empty if there was no compiler."""
    unit = CFunctions(source.symbol, source.helpers, source.functions, source.style)
    text = _functions().dump_json(unit)
    whole = _MARK + len(text).to_bytes(_LENGTH_BYTES, "little") + text + library
    digest = hashlib.blake2b(whole, digest_size=16).hexdigest()
    storage = source.storage
    return ObjectCode(
        source.symbol, whole, storage.shared_bytes, storage.thread_bytes, build_s, digest
    )


def is_packed(code: bytes) -> bool:
    """Whether *code* is a program in C."""
    return code.startswith(_MARK)


def unpacked(code: bytes) -> tuple[CFunctions, bytes]:
    """Unpack the result of :func:`packed`: the functions, and the shared library or no bytes.

    Raises:
        ForeignFile: *code* is not a packed C program, or is damaged.
    """
    start = len(_MARK) + _LENGTH_BYTES
    end = start + int.from_bytes(code[len(_MARK) : start], "little")
    if not is_packed(code) or end > len(code):
        raise ForeignFile("not a program in C")
    try:
        return _functions().validate_json(code[start:end]), code[end:]
    except ValidationError as error:
        raise ForeignFile(f"not a program in C: {error.errors()[0]['msg']}") from None


@cache
def _functions() -> TypeAdapter[CFunctions]:
    return TypeAdapter(CFunctions)
