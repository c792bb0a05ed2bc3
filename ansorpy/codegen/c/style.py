"""Options of the emitted C: word size, threads, vector extensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ansorpy.codegen.clike.writer import IndexTypes

__all__ = ["Style"]


@dataclass(frozen=True)
class Style:
    """Properties of the machine and the compiler that C is generated for.

    Args:
        word_bits: Width of index arithmetic wherever bounds prove that it suffices.
        threads: ``openmp`` divides parallel loops among a team; ``none`` makes them serial.
        vectors: Vector loops use the vector extensions of GCC and Clang; otherwise they are plain
            C11 loops.
    """

    word_bits: Literal[32, 64] = 64
    threads: Literal["none", "openmp"] = "none"
    vectors: bool = False

    @property
    def indices(self) -> IndexTypes:
        """The types of index arithmetic."""
        return IndexTypes(f"int{self.word_bits}_t", (1 << self.word_bits - 1) - 1, "int64_t", "")
