"""Loop scopes, which hold hoisted index arithmetic and the known contents of memory.

A scope is a loop body or a branch.  Pure index arithmetic is emitted into the prelude of the
outermost scope that has its operands, which is loop-invariant code motion by construction; equal
text is emitted once per prelude.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ansorpy.codegen.llvm.emit.text import Value
from ansorpy.ir.loops import Buffer

__all__ = ["LoadCache", "BlockScope"]

_Held = dict[tuple[int, str], tuple[int, Value]]  # (byte offset, type) -> (bytes, value)


class LoadCache:
    """Cache of values known to be in memory, so that a repeated load needs no instruction.

    Addresses of one buffer with different base pointers may alias.  Distinct buffers do not alias,
    except a result that overlaps an operand; there, no element of the operand is read after the
    result's element is stored.
    """

    def __init__(self) -> None:
        self._held: dict[Buffer, dict[str, _Held]] = {}

    def get(self, buffer: Buffer, base: str, offset: int, type_: str) -> Value | None:
        hit = self._held.get(buffer, {}).get(base, {}).get((offset, type_))
        return hit[1] if hit else None

    def loaded(self, buffer: Buffer, base: str, offset: int, size: int, value: Value) -> None:
        held = self._held.setdefault(buffer, {}).setdefault(base, {})
        held[offset, value.type] = (size, value)

    def stored(self, buffer: Buffer, base: str, offset: int, size: int, value: Value) -> None:
        """Record a store of *value*, and forget all values it may overwrite."""
        held = self._held.get(buffer, {}).get(base, {})
        kept = {
            key: entry
            for key, entry in held.items()
            if key[0] + entry[0] <= offset or offset + size <= key[0]
        }
        kept[offset, value.type] = (size, value)
        self._held[buffer] = {base: kept}

    def clear(self) -> None:
        self._held.clear()

    def forget(self, buffer: Buffer) -> None:
        self._held.pop(buffer, None)


@dataclass(slots=True)
class BlockScope:
    """One loop body or branch while its code is being written."""

    prelude: list[str]
    pure: dict[str, str] = field(default_factory=dict)
    loads: LoadCache = field(default_factory=LoadCache)
    written: set[Buffer] = field(default_factory=set)
