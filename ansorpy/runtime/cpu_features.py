"""Check, in the library itself, that the CPU has the features the code was generated for.

The check is ``cpuid`` emitted as LLVM IR; it turns an illegal instruction into an error code.  It
covers x86 only, where libraries move between machines with and without AVX-512; on other
architectures :func:`emit_cpu_check` emits a check that always succeeds.
Bits: Intel SDM volume 2, CPUID; AMD APM volume 3, appendix E.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from ansorpy.codegen.llvm.emit.text import FunctionText
from ansorpy.target import Target

__all__ = ["CHECK", "emit_cpu_check", "is_x86", "missing_features", "required_features"]

CHECK = "@cpu_is_able"
"""Name of the emitted function, ``i1 ()``."""

# LLVM feature name -> (leaf, subleaf, register, bit).  Only features that tensor code may use are
# listed: a virtual machine that hides, say, the AES instructions must not be rejected.
_EAX, _EBX, _ECX, _EDX = range(4)
_EXTENDED = 0x80000001
_BITS = {
    "sse3": (1, 0, _ECX, 0), "ssse3": (1, 0, _ECX, 9), "fma": (1, 0, _ECX, 12),
    "sse4.1": (1, 0, _ECX, 19), "sse4.2": (1, 0, _ECX, 20), "movbe": (1, 0, _ECX, 22),
    "popcnt": (1, 0, _ECX, 23), "avx": (1, 0, _ECX, 28), "f16c": (1, 0, _ECX, 29),
    "bmi": (7, 0, _EBX, 3), "avx2": (7, 0, _EBX, 5), "bmi2": (7, 0, _EBX, 8),
    "avx512f": (7, 0, _EBX, 16), "avx512dq": (7, 0, _EBX, 17), "avx512ifma": (7, 0, _EBX, 21),
    "avx512er": (7, 0, _EBX, 27), "avx512cd": (7, 0, _EBX, 28), "avx512bw": (7, 0, _EBX, 30),
    "avx512vl": (7, 0, _EBX, 31), "avx512vbmi": (7, 0, _ECX, 1), "avx512vbmi2": (7, 0, _ECX, 6),
    "gfni": (7, 0, _ECX, 8), "avx512vnni": (7, 0, _ECX, 11), "avx512bitalg": (7, 0, _ECX, 12),
    "avx512vpopcntdq": (7, 0, _ECX, 14), "amx-bf16": (7, 0, _EDX, 22),
    "avx512fp16": (7, 0, _EDX, 23), "amx-tile": (7, 0, _EDX, 24), "amx-int8": (7, 0, _EDX, 25),
    "avxvnni": (7, 1, _EAX, 4), "avx512bf16": (7, 1, _EAX, 5),
    "lzcnt": (_EXTENDED, 0, _ECX, 5), "sse4a": (_EXTENDED, 0, _ECX, 6),
    "xop": (_EXTENDED, 0, _ECX, 11), "fma4": (_EXTENDED, 0, _ECX, 16),
}  # fmt: skip

# Register state the OS must save, as XCR0 bits: SSE and AVX; those plus opmask and ZMM; AMX tiles.
_YMM, _ZMM, _TILES = 0x6, 0xE6, 0x60000
_OSXSAVE = (1, 0, _ECX, 27)

_CPUID = (
    'call { i32, i32, i32, i32 } asm sideeffect "cpuid", '
    '"={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"'
)
_XGETBV = (
    'call { i32, i32 } asm sideeffect "xgetbv", '
    '"={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}"(i32 0)'
)


def is_x86(target: Target) -> bool:
    """Return whether *target* is x86, the only architecture whose CPU features are checked."""
    return target.triple.split("-")[0] in ("x86_64", "i686", "i386")


def required_features(target: Target) -> tuple[str, ...]:
    """Features of *target* that its code may use and that :func:`emit_cpu_check` checks."""
    if not is_x86(target):
        return ()
    return tuple(name for name in _BITS if name in target.feature_set)


def missing_features(required: Collection[str]) -> list[str]:
    """Return those of *required* that this machine lacks, for error messages."""
    present = Target.host().feature_set
    return [name for name in required if name not in present]


def emit_cpu_check(features: Collection[str]) -> str:
    """Emit ``i1 CHECK()``, which returns true if the CPU and the OS support *features*.

    The function uses general-purpose registers only, so it runs on any x86-64.
    """
    text = FunctionText(f"internal i1 {CHECK}()")
    wanted = [_BITS[name] for name in features]
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
        highest = _register(text, _cpuid(text, leaf & 0x80000000, 0), _EAX)
        flags.append(text.define(f"icmp uge i32 {highest}, {leaf}"))
        if subleaf:
            highest = _register(text, _cpuid(text, leaf, 0), _EAX)
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
