"""A C program packed as object code: its functions, then the library compiled from them."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.codegen.c.emit import CSource
from ansorpy.codegen.c.style import Style
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.codegen.packed import Packing

__all__ = ["PACKING", "CFunctions", "packed"]


@dataclass(frozen=True)
class CFunctions:
    """The functions of one program; a file of several programs defines their ``helpers`` once."""

    symbol: str
    helpers: tuple[str, ...]
    functions: str
    style: Style


PACKING = Packing("a program in C", b"ansorpy-c-1\n", CFunctions)


def packed(source: CSource, library: bytes, build_s: float) -> ObjectCode:
    """Pack *source* and the shared *library* compiled from it, empty if there was no compiler."""
    unit = CFunctions(source.symbol, source.helpers, source.functions, source.style)
    whole, digest = PACKING.pack(unit, library)
    storage = source.storage
    return ObjectCode(
        source.symbol, whole, storage.shared_bytes, storage.thread_bytes, build_s, digest
    )
