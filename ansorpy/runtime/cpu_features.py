"""The CPU features that a library's code needs, and those that this machine lacks.

They are those of x86 only, where libraries move between machines with and without AVX-512.
Bits: Intel SDM volume 2, CPUID; AMD APM volume 3, appendix E.
"""

from __future__ import annotations

from collections.abc import Collection

from ansorpy.target import Target

__all__ = [
    "EAX", "EBX", "ECX", "EDX", "FEATURE_BITS", "is_x86", "missing_features", "required_features",
]  # fmt: skip

# LLVM feature name -> (leaf, subleaf, register, bit).  Only features that tensor code may use are
# listed: a virtual machine that hides, say, the AES instructions must not be rejected.
EAX, EBX, ECX, EDX = range(4)
_EXTENDED = 0x80000001
FEATURE_BITS = {
    "sse3": (1, 0, ECX, 0), "ssse3": (1, 0, ECX, 9), "fma": (1, 0, ECX, 12),
    "sse4.1": (1, 0, ECX, 19), "sse4.2": (1, 0, ECX, 20), "movbe": (1, 0, ECX, 22),
    "popcnt": (1, 0, ECX, 23), "avx": (1, 0, ECX, 28), "f16c": (1, 0, ECX, 29),
    "bmi": (7, 0, EBX, 3), "avx2": (7, 0, EBX, 5), "bmi2": (7, 0, EBX, 8),
    "avx512f": (7, 0, EBX, 16), "avx512dq": (7, 0, EBX, 17), "avx512ifma": (7, 0, EBX, 21),
    "avx512er": (7, 0, EBX, 27), "avx512cd": (7, 0, EBX, 28), "avx512bw": (7, 0, EBX, 30),
    "avx512vl": (7, 0, EBX, 31), "avx512vbmi": (7, 0, ECX, 1), "avx512vbmi2": (7, 0, ECX, 6),
    "gfni": (7, 0, ECX, 8), "avx512vnni": (7, 0, ECX, 11), "avx512bitalg": (7, 0, ECX, 12),
    "avx512vpopcntdq": (7, 0, ECX, 14), "amx-bf16": (7, 0, EDX, 22),
    "avx512fp16": (7, 0, EDX, 23), "amx-tile": (7, 0, EDX, 24), "amx-int8": (7, 0, EDX, 25),
    "avxvnni": (7, 1, EAX, 4), "avx512bf16": (7, 1, EAX, 5), "avxifma": (7, 1, EAX, 23),
    "avxneconvert": (7, 1, EDX, 5), "egpr": (7, 1, EDX, 21),  # APX, all of it
    "lzcnt": (_EXTENDED, 0, ECX, 5), "sse4a": (_EXTENDED, 0, ECX, 6),
    "xop": (_EXTENDED, 0, ECX, 11), "fma4": (_EXTENDED, 0, ECX, 16),
}  # fmt: skip


def is_x86(target: Target) -> bool:
    """Return whether *target* is x86, the only architecture whose CPU features are checked."""
    return target.triple.split("-")[0] in ("x86_64", "i686", "i386")


def required_features(target: Target) -> tuple[str, ...]:
    """Features of *target* that its code may use and that libraries check for."""
    if not is_x86(target):
        return ()
    return tuple(name for name in FEATURE_BITS if name in target.feature_set)


def missing_features(required: Collection[str]) -> list[str]:
    """Return those of *required* that this machine lacks, for error messages."""
    present = Target.host().feature_set
    return [name for name in required if name not in present]
