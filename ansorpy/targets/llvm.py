"""CPUs that LLVM generates code for: this machine, named ones, and those of any LLVM triple.

The host's cache sizes come from ``/sys``, its CPU name and features from LLVM, which is loaded only
when needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

from ansorpy.config import available_cores, default_threads
from ansorpy.errors import UsageError
from ansorpy.target import KIB, MIB, Target

__all__ = ["Cpus", "host_caches", "signed", "vectors_of"]


class Cpus:
    """CPUs, with code by LLVM (:class:`ansorpy.target.TargetKind`)."""

    @property
    def names(self) -> tuple[str, ...]:
        return ("host", *_NAMED, "an LLVM triple")

    def parse(self, text: str) -> Target | None:
        if text == "host":
            return _host()
        if text in _NAMED:
            return _NAMED[text]
        if re.fullmatch(r"[a-z0-9_.]+(-[a-z0-9_.]+){1,3}", text) and _is_llvm_triple(text):
            return _from_triple(text)
        return None

    def runs_on_host(self, target: Target) -> bool:
        host = _host()
        if target.triple.split("-")[0] != host.triple.split("-")[0]:
            return False
        implied = target.cpu in ("x86-64", "generic", host.cpu) or bool(target.features)
        return implied and target.feature_set <= host.feature_set

    def require_device(self, target: Target) -> None:
        """Nothing: there are cores, though they may be others than *target*'s."""

    def gpus(self, target: Target) -> tuple[int, ...]:
        return ()

    def threads(self, asked: int | None, target: Target) -> int:
        return default_threads() if asked is None else asked

    def with_threads(self, target: Target, threads: int) -> Target:
        return replace(target, cores=threads)

    def family(self, triple: str, vector_bits: str) -> str:
        return f"{triple.split('-')[0]} with {vector_bits}-bit vectors"


_X86 = "x86_64-unknown-linux-gnu"
_ARM = "aarch64-unknown-linux-gnu"
_RISCV = "riscv64-unknown-linux-gnu"

# What 64-bit RISC-V Linux distributions require; the vector extension (V) is added to it.
_RV64GC = ("a", "c", "d", "f", "m", "zicsr", "zifencei")

# The x86-64 psABI's micro-architecture levels, in LLVM's feature names.
_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
_ZEN5 = (
    *_V4, "avx512bf16", "avx512bitalg", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni",
    "avx512vpopcntdq", "avxvnni", "gfni", "sse4a",
)  # fmt: skip


# Code does without it, as libraries cannot check for it: CPUID has a version of AVX10, not bits.
_UNCHECKED = "avx10.2"


def signed(names: Iterable[str]) -> str:
    """LLVM's feature string: *names* with the sign of use, or of doing without."""
    signs = ((name, "-" if name.startswith(_UNCHECKED) else "+") for name in sorted(names))
    return ",".join(f"{sign}{name}" for name, sign in signs)


def vectors_of(arch: str, features: set[str]) -> tuple[int, int]:
    """(bits, registers) of the widest vectors that *features* of *arch* offer."""
    if "avx512f" in features and "avx512vl" in features:
        return 512, 32
    if "avx" in features:
        return 256, 16
    if arch in ("aarch64", "arm64"):
        return 128, 32
    if arch.startswith("riscv"):
        # V guarantees 128 bits; without it LLVM splits vectors into its 32 scalar registers.
        return 128, 32
    return 128, 16


def _cpu(
    name: str, triple: str, cpu: str, features: Iterable[str], l1: int, l2: int, l3: int
) -> Target:
    """Four cores with these features, and these bytes of caches."""
    bits, registers = vectors_of(triple.split("-")[0], set(features))
    return Target(name, triple, cpu, signed(features), 4, bits, registers, l1, l2, l3)


_NAMED: dict[str, Target] = {
    target.name: target
    for target in (
        _cpu("x86-64-v2", _X86, "x86-64-v2", _V2, 32 * KIB, 256 * KIB, 8 * MIB),
        _cpu("x86-64-v3", _X86, "x86-64-v3", _V3, 32 * KIB, 256 * KIB, 8 * MIB),
        _cpu("x86-64-v4", _X86, "x86-64-v4", _V4, 32 * KIB, 1 * MIB, 16 * MIB),
        _cpu("znver5", _X86, "znver5", _ZEN5, 48 * KIB, 1 * MIB, 32 * MIB),
        _cpu("cortex-a76", _ARM, "cortex-a76", ("dotprod",), 64 * KIB, 512 * KIB, 2 * MIB),
        _cpu("rv64gcv", _RISCV, "generic-rv64", (*_RV64GC, "v"), 32 * KIB, 512 * KIB, 2 * MIB),
    )
}


@cache
def _host() -> Target:
    from llvmlite import binding as llvm

    features = {name for name, present in llvm.get_host_cpu_features().items() if present}
    triple = llvm.get_process_triple()
    bits, registers = vectors_of(triple.split("-")[0], features)
    caches = host_caches()
    return Target(
        name="host",
        triple=triple,
        cpu=llvm.get_host_cpu_name(),
        features=signed(features),
        cores=available_cores(),
        vector_bits=bits,
        vector_registers=registers,
        l1_bytes=caches.get(1, 32 * KIB),
        l2_bytes=caches.get(2, 512 * KIB),
        l3_bytes=caches.get(3, 0),
        cache_line_bytes=_host_line_bytes(),
    )


def host_caches(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> dict[int, int]:
    """Level -> bytes of the data (or unified) caches of the first core; empty when unknown."""
    sizes = {}
    for folder in sorted(root.glob("index*")):
        try:
            kind = (folder / "type").read_text().strip()
            level = int((folder / "level").read_text())
            size = (folder / "size").read_text().strip()
        except (OSError, ValueError):
            continue
        if kind != "Instruction":
            sizes[level] = _cache_bytes(size)
    return sizes


def _cache_bytes(text: str) -> int:
    scale = {"K": KIB, "M": MIB}.get(text[-1:], 1)
    return int(text.rstrip("KM")) * scale


def _host_line_bytes() -> int:
    line = Path("/sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size")
    try:
        return int(line.read_text())
    except (OSError, ValueError):
        return 64


def _is_llvm_triple(text: str) -> bool:
    """True when this LLVM can generate code for *text*."""
    from llvmlite import binding as llvm

    llvm.initialize_all_targets()
    try:
        llvm.Target.from_triple(text)
    except RuntimeError:
        return False
    return True


# CPU and features to assume when only the triple is given.
_BASELINE: dict[str, tuple[str, tuple[str, ...]]] = {
    "x86_64": ("x86-64", ()),
    "riscv64": ("generic-rv64", _RV64GC),
    # In every engine since 2021; without it each vector would be split into scalars.
    "wasm32": ("generic", ("simd128",)),
    "wasm64": ("generic", ("simd128",)),
}


def _from_triple(triple: str) -> Target:
    """A generic CPU of an architecture: baseline features, ordinary caches."""
    arch = triple.split("-")[0]
    if arch.startswith("nvptx"):
        raise UsageError(
            f"{triple} is not generated through LLVM",
            hint="use --target cuda or sm_NN (target= in Python)",
        )
    cpu, names = _BASELINE.get(arch, ("generic", ()))
    return _cpu(triple, triple, cpu, names, 32 * KIB, 512 * KIB, 4 * MIB)
