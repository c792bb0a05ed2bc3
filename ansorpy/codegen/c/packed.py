"""A C program packed as object code: its functions, then the library compiled from them."""

from __future__ import annotations

from ansorpy.codegen.c.emit import CFunctions, CSource
from ansorpy.codegen.object_code import ObjectCode
from ansorpy.codegen.packed import Packing

__all__ = ["PACKING", "packed"]

PACKING = Packing("a program in C", b"ansorpy-c-1\n", CFunctions)


def packed(source: CSource, library: bytes, build_s: float) -> ObjectCode:
    """Pack *source* and the shared *library* compiled from it, empty if there was no compiler."""
    whole, digest = PACKING.pack(source, library)
    storage = source.storage
    return ObjectCode(
        source.symbol, whole, storage.shared_bytes, storage.thread_bytes, build_s, digest
    )
