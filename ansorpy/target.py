"""Target machines: cores, vectors, registers, caches; for CUDA, the limits of one SM.

``Target.parse("host" | "x86-64-v3" | "x86-64-v4" | "cortex-a76" | "rv64gcv" | "cuda" | "sm_90")``,
or an LLVM triple.  ``cuda`` is the GPU of this machine, ``sm_90`` one that may be elsewhere.
The host's cache sizes come from ``/sys``, its CPU name and features from LLVM, and those of its
GPU from cupy; each library is loaded only when needed.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ansorpy.config import DEVICE, available_cores
from ansorpy.errors import MissingDependency, UsageError
from ansorpy.rates import Rates

__all__ = [
    "Target", "cuda_devices", "device_target", "family_of", "host_caches", "machine_name",
    "vectors_of",
]  # fmt: skip

KIB = 1 << 10
MIB = 1 << 20


@dataclass(frozen=True)
class Target:
    """A machine to generate code for; targets with equal fields are the same machine.

    Args:
        name: What the user asked for: ``"host"``, ``"x86-64-v3"``, ``"sm_90"``, or the triple.
        triple: LLVM triple; empty for CUDA.
        cpu: LLVM CPU name (``"znver5"``), or the CUDA architecture (``"sm_90"``; ``"sm_90a"`` with
            the instructions of that architecture alone).
        features: LLVM feature string (``"+avx2,+fma"``); sorted; empty when ``cpu`` implies them.
            For a CUDA device of this machine: its name, which keeps its timings apart from others'.
        cores: Physical execution units: CPU cores, or SMs.
        vector_bits: Width of one vector register.
        vector_registers: Vector registers one thread can address (CUDA: its 32-bit registers).
        l1_bytes: First-level data cache of one core (CUDA: shared memory and L1 of one SM).
        l2_bytes: Second-level cache of one core (CUDA: the whole chip's).
        l3_bytes: Last-level cache shared by all cores; 0 when there is none, as on CUDA.
        max_threads_per_block: 0 on a CPU, like all fields below except ``rates``.
        max_shared_bytes: Shared memory of a block without opting in to more.
        warp_size: Threads that execute together.
        max_vthread: Most virtual threads a schedule may use per thread (TVM: 8).
        max_shared_optin_bytes: Shared memory of a block whose kernel opts in.
        registers_per_block: 32-bit registers available to the threads of one block.
        shared_per_sm_bytes: Shared memory that the blocks resident on one SM divide.
        max_threads_per_sm: Threads that may be resident on one SM.
        max_blocks_per_sm: Blocks that may be resident on one SM.
        rates: Measured rates; ``None`` when not measured.  They are no part of the target's
            identity and are ignored when targets are compared.
    """

    name: str
    triple: str
    cpu: str
    features: str
    cores: int
    vector_bits: int
    vector_registers: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    cache_line_bytes: int = 64
    kind: Literal["cpu", "cuda"] = "cpu"
    max_threads_per_block: int = 0
    max_shared_bytes: int = 0
    warp_size: int = 0
    max_vthread: int = 0
    max_shared_optin_bytes: int = 0
    registers_per_block: int = 0
    shared_per_sm_bytes: int = 0
    max_threads_per_sm: int = 0
    max_blocks_per_sm: int = 0
    rates: Rates | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def host() -> Target:
        """The machine this process runs on.  Loads LLVM on the first call."""
        return _host()

    @staticmethod
    def parse(text: str) -> Target:
        """The target that *text* names.

        Raises:
            UsageError: Neither a known name, nor ``sm_NN``, nor an LLVM triple.
            MissingDependency: ``cuda``, and this machine has no CUDA device or no cupy.
        """
        if text == "host":
            return Target.host()
        if text == "cuda":
            return _device(DEVICE.get() or 0)
        if text in _NAMED:
            return _NAMED[text]
        architecture = re.fullmatch(r"sm_(\d{2,3})[af]?", text)
        if architecture and int(architecture[1]) >= min(_CHIPS):
            return _of_architecture(text, int(architecture[1]))
        if re.fullmatch(r"[a-z0-9_.]+(-[a-z0-9_.]+){1,3}", text) and _is_llvm_triple(text):
            return _from_triple(text)
        known = ", ".join(["host", *_NAMED, "cuda", "sm_NN"])
        raise UsageError(f"unknown target {text!r}", hint=f"use one of {known}, or an LLVM triple")

    def lanes(self, dtype_bits: int) -> int:
        """Vector lanes of *dtype_bits* bits in one vector register; at least 1."""
        return max(1, self.vector_bits // dtype_bits)

    @property
    def capability(self) -> int:
        """A GPU's architecture as a number (90 for ``sm_90``); 0 for a CPU."""
        return int(self.cpu[3:].rstrip("af")) if self.kind == "cuda" else 0

    @property
    def key(self) -> str:
        """Identifies the machine: equal exactly when generated code and timings may be shared.

        It names the host by its CPU and features, not by the word ``host``, so that a record made
        on one machine is never taken for another's.
        """
        return "|".join((self.kind, self.triple, self.cpu, self.features, str(self.vector_bits)))

    @property
    def family(self) -> str:
        """The kind of machine; programs are expected to rank alike on machines of one kind."""
        return family_of(self.key)

    def runs_on_host(self) -> bool:
        """True when code for this target can run, and so be timed, on this machine."""
        if self.kind == "cuda":
            return bool(self.gpus())
        host = Target.host()
        if self.triple.split("-")[0] != host.triple.split("-")[0]:
            return False
        implied = self.cpu in ("x86-64", "generic", host.cpu) or bool(self.features)
        return implied and self.feature_set <= host.feature_set

    def gpus(self) -> tuple[int, ...]:
        """Numbers of this machine's GPUs that can run code for this target, all of one kind."""
        try:
            found = cuda_devices()
        except MissingDependency:
            return ()
        able = [gpu for gpu in found if self._runs_on(gpu)]
        asked = DEVICE.get()
        like = tuple(n for n, gpu in enumerate(found) if gpu in able[:1])
        return like if asked is None else tuple(n for n in like if n == asked)

    def _runs_on(self, gpu: Target) -> bool:
        """Whether *gpu* runs this code; later chips of a generation do too (``sm_80``: 8.x)."""
        if self.features not in ("", gpu.features):
            return False
        mine, its = self.capability, gpu.capability
        same = mine == its or (mine // 10 == its // 10 and mine < its and self.cpu[-1].isdigit())
        return same and self.max_shared_optin_bytes <= gpu.max_shared_optin_bytes

    @property
    def feature_set(self) -> frozenset[str]:
        """The names in ``features``, without their signs."""
        return frozenset(name.lstrip("+") for name in self.features.split(",") if name)


def family_of(key: str) -> str:
    """:attr:`Target.family` of the target with this *key*.

    >>> family_of(Target.parse("x86-64-v3").key), family_of(Target.parse("sm_90").key)
    ('x86_64 with 256-bit vectors', 'cuda')
    """
    kind, triple, *_, bits = key.split("|")
    return kind if kind != "cpu" else f"{triple.split('-')[0]} with {bits}-bit vectors"


def machine_name() -> str:
    """The CPU's name as the operating system reports it."""
    try:
        with open("/proc/cpuinfo") as file:
            names = [
                line.split(":", 1)[1].strip() for line in file if line.startswith("model name")
            ]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


_X86 = "x86_64-unknown-linux-gnu"
_ARM = "aarch64-unknown-linux-gnu"
_RISCV = "riscv64-unknown-linux-gnu"

# What 64-bit RISC-V Linux distributions require; the vector extension (V) is added to it.
_RV64GC = ("a", "c", "d", "f", "m", "zicsr", "zifencei")

# The x86-64 psABI's micro-architecture levels, in LLVM's feature names.
_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")


def _features(names: Iterable[str]) -> str:
    return ",".join(f"+{name}" for name in sorted(names))


_NAMED: dict[str, Target] = {
    target.name: target
    for target in (
        Target(
            "x86-64-v2", _X86, "x86-64-v2", _features(_V2), 4, 128, 16, 32 * KIB, 256 * KIB, 8 * MIB
        ),
        Target(
            "x86-64-v3", _X86, "x86-64-v3", _features(_V3), 4, 256, 16, 32 * KIB, 256 * KIB, 8 * MIB
        ),
        Target(
            "x86-64-v4", _X86, "x86-64-v4", _features(_V4), 4, 512, 32, 32 * KIB, 1 * MIB, 16 * MIB
        ),
        Target(
            "cortex-a76", _ARM, "cortex-a76", "+dotprod", 4, 128, 32, 64 * KIB, 512 * KIB, 2 * MIB
        ),
        Target(
            "rv64gcv", _RISCV, "generic-rv64", _features((*_RV64GC, "v")), 4, 128, 32, 32 * KIB,
            512 * KIB, 2 * MIB,
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class _Chip:
    """What differs between GPUs: SMs, KiB of L1 plus shared memory, KiB of L2, limits."""

    sms: int
    l1_kib: int
    l2_kib: int
    shared_kib: int
    threads: int = 2048
    blocks: int = 32


# The largest chip of each compute capability (CUDA C++ Programming Guide, "Technical
# Specifications per Compute Capability"; SMs and L2 from NVIDIA's architecture papers).
_CHIPS = {
    70: _Chip(80, 128, 6 << 10, 96),
    72: _Chip(8, 128, 512, 96),
    75: _Chip(72, 96, 6 << 10, 64, 1024, 16),
    80: _Chip(108, 192, 40 << 10, 164),
    86: _Chip(84, 128, 6 << 10, 100, 1536, 16),
    87: _Chip(16, 192, 4 << 10, 164, 1536, 16),
    89: _Chip(142, 128, 96 << 10, 100, 1536, 24),
    90: _Chip(132, 256, 50 << 10, 228),
    100: _Chip(148, 256, 126 << 10, 228),
    103: _Chip(160, 256, 126 << 10, 228),
    120: _Chip(188, 128, 128 << 10, 100, 1536, 24),
    121: _Chip(48, 128, 24 << 10, 100, 1536, 24),
}
_WITH_OWN = (90,)
"""Architectures with instructions of their own that rules use (PTX ISA, ``wgmma``)."""

_MAX_VTHREAD = 8
"""TVM's default."""


def _of_architecture(name: str, capability: int) -> Target:
    """The largest GPU of a compute capability; if unlisted, of the newest one before it."""
    chip = _CHIPS[max(known for known in _CHIPS if known <= capability)]
    # Volta and Turing give a block all shared memory; later chips reserve 1 KiB of it.
    kept = 0 if capability < 80 else KIB
    shared = chip.shared_kib * KIB
    return Target(
        name, "", name, "", chip.sms, 128, 255, chip.l1_kib * KIB, chip.l2_kib * KIB, 0, 128,
        "cuda", 1024, 48 * KIB, 32, _MAX_VTHREAD, shared - kept, 1 << 16, shared, chip.threads,
        chip.blocks,
    )  # fmt: skip


@cache
def cuda_devices() -> tuple[Target, ...]:
    """The CUDA devices of this machine, at least one."""
    try:
        from cupy.cuda import runtime
    except ImportError as error:
        raise MissingDependency(
            f"CUDA devices are found through cupy, which is not installed ({error})",
            hint="pip install 'ansorpy[cuda]', or name an architecture: --target sm_90",
        ) from error
    try:
        count = max(1, runtime.getDeviceCount())
        found = [runtime.getDeviceProperties(number) for number in range(count)]
    except runtime.CUDARuntimeError as error:
        raise MissingDependency(
            f"this machine has no CUDA device that can be used ({error})",
            hint="name the architecture to compile for one elsewhere: --target sm_90",
        ) from error
    return tuple(device_target(properties) for properties in found)


def _device(number: int) -> Target:
    if number >= len(cuda_devices()):
        raise MissingDependency(
            f"there is no GPU {number}: CUDA counts {len(cuda_devices())} here",
            hint=f"set {DEVICE.name} to a smaller number, or not at all",
        )
    return cuda_devices()[number]


def device_target(found: Mapping[str, Any]) -> Target:
    """The target for a device with the CUDA properties *found*."""
    capability = found["major"] * 10 + found["minor"]
    # Some instructions exist on one architecture only; later ones do not run them.
    own = "a" if capability in _WITH_OWN else ""
    known = _of_architecture(f"sm_{capability}{own}", capability)
    return replace(
        known,
        name="cuda",
        features=found["name"].decode(),
        cores=found["multiProcessorCount"],
        l2_bytes=found["l2CacheSize"],
        max_threads_per_block=found["maxThreadsPerBlock"],
        max_shared_bytes=found["sharedMemPerBlock"],
        warp_size=found["warpSize"],
        max_shared_optin_bytes=found["sharedMemPerBlockOptin"],
        registers_per_block=found["regsPerBlock"],
        shared_per_sm_bytes=found["sharedMemPerMultiprocessor"],
        max_threads_per_sm=found["maxThreadsPerMultiProcessor"],
        max_blocks_per_sm=found["maxBlocksPerMultiProcessor"],
    )


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
        features=_features(features),
        cores=available_cores(),
        vector_bits=bits,
        vector_registers=registers,
        l1_bytes=caches.get(1, 32 * KIB),
        l2_bytes=caches.get(2, 512 * KIB),
        l3_bytes=caches.get(3, 0),
        cache_line_bytes=_host_line_bytes(),
    )


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
            f"{triple} is not generated through LLVM", hint="use --target cuda or sm_NN"
        )
    cpu, names = _BASELINE.get(arch, ("generic", ()))
    bits, registers = vectors_of(arch, set(names))
    features = _features(names)
    return Target(triple, triple, cpu, features, 4, bits, registers, 32 * KIB, 512 * KIB, 4 * MIB)
