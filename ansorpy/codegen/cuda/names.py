"""CUDA C identifiers for variables and buffers, close to their own names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ansorpy.ir.expr import Var
from ansorpy.ir.loops import Buffer

__all__ = ["Names", "identifier"]

# Words of C++ and CUDA, and functions that generated code calls.
_RESERVED = """
alignas alignof and asm auto bool break case catch char class const continue default delete do
double else enum explicit export extern false float for friend goto if inline int long mutable
namespace new not operator or private protected public register return short signed sizeof
static struct switch template this throw true try typedef typename union unsigned using virtual
void volatile while xor
blockDim blockIdx gridDim threadIdx warpSize
abs ceil copysign cos erf exp fabs floor fma fmod log max min norm pow rint rsqrt sin sqrt tanh
ceilf cosf erff expf fabsf floorf fmaf logf powf rintf rsqrtf sinf sqrtf tanhf
bfloat16 bits_of commit_copies commit_products copy_async divides_all dot_bf16 dot_s8s8 dot_u8s8
fence_registers fence_shared float16 float_div float_mod floor_div floor_mod load_matrices
matrix_at maximum minimum odd opposed packed quotient rest scaled set_bits settled shared_memory
swizzled to_bfloat16 to_float to_float16 to_int to_long to_odd to_unsigned_long unpacked vec Vec
wait_copies wait_products word main
"""
_WORDS = frozenset(_RESERVED.split())
_FAMILIES = ("ldmatrix_", "mma_", "wgmma_")
"""Prefixes of the names of functions that wrap one instruction."""


def identifier(name: str) -> str:
    """Make *name* a C identifier; of several fused loops, use the first and the last.

    >>> identifier("i.0@j.0@"), identifier("C.local"), identifier("2nd"), identifier("float")
    ('i_0_j_0', 'C_local', '_2nd', 'float_')
    >>> identifier("n.1@h.1@w.1@co.1@"), identifier("i0@i1@i2@i3.0@.1_2")
    ('n_to_co_1', 'i0_to_i3_0_1_2')
    """
    parts = [part for part in name.split("@") if part]
    axes = [part.split(".")[0] for part in parts if not part.startswith(".")]
    if len(axes) > 2:
        split = parts[len(axes) - 1 :]
        name = f"{axes[0]}_to_{''.join(split)}"
    word = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "v"
    if word[0].isdigit():
        word = f"_{word}"
    # Names starting with two underscores, or one and a capital, are reserved.
    return f"{word}_" if word in _WORDS or word.startswith(_FAMILIES) else word


class Names:
    """The names in use, by block: names used in a closed block are free again."""

    def __init__(self) -> None:
        self._of: dict[Var | Buffer, str] = {}
        self._taken: set[str] = set()
        self._blocks: list[list[str]] = [[]]

    @contextmanager
    def block(self) -> Iterator[None]:
        """Names given inside end with the block."""
        self._blocks.append([])
        yield
        self._taken -= set(self._blocks.pop())

    def give(self, thing: Var | Buffer) -> str:
        """Give *thing* a name that differs from all names visible here."""
        self._of[thing] = found = self.fresh(thing.name)
        return found

    def fresh(self, wanted: str) -> str:
        """A name similar to *wanted* that is not in use here."""
        word = identifier(wanted)
        found, number = word, 0
        while found in self._taken:
            number += 1
            found = f"{word}_{number}"
        self._taken.add(found)
        self._blocks[-1].append(found)
        return found

    def of(self, thing: Var | Buffer) -> str:
        """The name that *thing* was given."""
        return self._of[thing]
