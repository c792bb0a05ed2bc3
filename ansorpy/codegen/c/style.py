"""What kind of C is emitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ansorpy.codegen.clike.writer import IndexTypes

__all__ = ["Style"]


@dataclass(frozen=True)
class Style:
    """Properties of the machine and compiler that generated C is for.

    Args:
        word_bits: Index arithmetic is done in this width where bounds prove that it suffices.
        threads: ``openmp`` divides parallel loops among a team; ``none`` makes them serial.
        vectors: Vector loops use the vector extensions of GCC and Clang; else they are C11 loops.
    """

    word_bits: Literal[32, 64] = 64
    threads: Literal["none", "openmp"] = "none"
    vectors: bool = False

    @property
    def indices(self) -> IndexTypes:
        """The types of index arithmetic."""
        return IndexTypes(f"int{self.word_bits}_t", (1 << self.word_bits - 1) - 1, "int64_t", "")
