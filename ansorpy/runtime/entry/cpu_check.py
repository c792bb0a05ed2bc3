"""Check, in the library itself, that the CPU has the features the code was generated for.

The check is ``cpuid`` emitted as LLVM IR; it turns an illegal instruction into an error code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from ansorpy.codegen.llvm.emit.text import FunctionText
from ansorpy.runtime.cpu_features import EAX, ECX, FEATURE_BITS

__all__ = ["CHECK", "emit_cpu_check"]

CHECK = "@cpu_is_able"
"""Name of the emitted function, ``i1 ()``."""

# Register state the OS must save, as XCR0 bits: SSE and AVX; those plus opmask and ZMM; AMX tiles;
# the further general-purpose registers of APX.
_YMM, _ZMM, _TILES, _EGPR = 0x6, 0xE6, 0x60000, 0x80000
_OSXSAVE = (1, 0, ECX, 27)

_CPUID = (
    'call { i32, i32, i32, i32 } asm sideeffect "cpuid", '
    '"={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"'
)
_XGETBV = (
    'call { i32, i32 } asm sideeffect "xgetbv", '
    '"={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}"(i32 0)'
)


def emit_cpu_check(features: Collection[str]) -> str:
    """Emit ``i1 CHECK()``, which returns true if the CPU and the OS support *features*.

    The function uses general-purpose registers only, so it runs on any x86-64.
    """
    text = FunctionText(f"internal i1 {CHECK}()")
    wanted = [FEATURE_BITS[name] for name in features]
    saved = _saved_state(features)
    if saved:
        wanted.append(_OSXSAVE)
    flags = _leaf_flags(text, wanted)
    if not saved:
        text.emit(f"ret i1 {_all(text, flags)}")
        return text.render()
    text.branch_if(_all(text, flags), "saved", "no")
    text.start_block("saved")
    low = text.define(f"extractvalue {{ i32, i32 }} {text.define(_XGETBV)}, 0")
    text.emit(f"ret i1 {_has(text, low, saved)}")
    text.start_block("no")
    text.emit("ret i1 false")
    return text.render()


def _saved_state(features: Collection[str]) -> int:
    mask = 0
    for name in features:
        if name.startswith("avx512"):
            mask |= _ZMM
        elif name.startswith("amx"):
            mask |= _TILES
        elif name == "egpr":
            mask |= _EGPR
        elif name.startswith("avx") or name in ("fma", "f16c", "xop", "fma4"):
            mask |= _YMM
    return mask


def _leaf_flags(text: FunctionText, wanted: Collection[tuple[int, int, int, int]]) -> list[str]:
    """Emit flags per leaf: the leaf exists, and its registers have all the wanted bits set."""
    masks: dict[tuple[int, int], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for leaf, subleaf, register, bit in wanted:
        masks[leaf, subleaf][register] |= 1 << bit
    flags = []
    for (leaf, subleaf), registers in masks.items():
        highest = _register(text, _cpuid(text, leaf & 0x80000000, 0), EAX)
        flags.append(text.define(f"icmp uge i32 {highest}, {leaf}"))
        if subleaf:
            highest = _register(text, _cpuid(text, leaf, 0), EAX)
            flags.append(text.define(f"icmp uge i32 {highest}, {subleaf}"))
        answer = _cpuid(text, leaf, subleaf)
        flags += [_has(text, _register(text, answer, r), m) for r, m in registers.items()]
    return flags


def _cpuid(text: FunctionText, leaf: int, subleaf: int) -> str:
    return text.define(f"{_CPUID}(i32 {leaf}, i32 {subleaf})")


def _register(text: FunctionText, answer: str, register: int) -> str:
    return text.define(f"extractvalue {{ i32, i32, i32, i32 }} {answer}, {register}")


def _has(text: FunctionText, value: str, mask: int) -> str:
    return text.define(f"icmp eq i32 {text.define(f'and i32 {value}, {mask}')}, {mask}")


def _all(text: FunctionText, flags: Collection[str]) -> str:
    result = "true"
    for flag in flags:
        result = text.define(f"and i1 {result}, {flag}")
    return result
