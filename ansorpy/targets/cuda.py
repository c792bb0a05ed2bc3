"""NVIDIA GPUs: those of this machine, and architectures that may be elsewhere.

The devices of this machine are found by cupy, which is loaded only when needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ansorpy.config import DEVICE
from ansorpy.errors import MissingDependency, UsageError
from ansorpy.target import KIB, Target

__all__ = ["Gpus", "cuda_devices", "device_target"]


class Gpus:
    """GPUs, with code by NVRTC (:class:`ansorpy.target.TargetKind`)."""

    @property
    def names(self) -> tuple[str, ...]:
        return "cuda", "sm_NN"

    def parse(self, text: str) -> Target | None:
        if text == "cuda":
            return _device(DEVICE.get() or 0)
        architecture = re.fullmatch(r"sm_(\d{2,3})[af]?", text)
        if architecture is None:
            return None
        if int(architecture[1]) < min(_CHIPS):
            raise UsageError(f"{text} is too old", hint=f"programs are for {_OLDEST} and later")
        return _of_architecture(text, int(architecture[1]))

    def runs_on_host(self, target: Target) -> bool:
        return bool(target.gpus())

    def require_device(self, target: Target) -> None:
        cuda_devices()

    def gpus(self, target: Target) -> tuple[int, ...]:
        try:
            found = cuda_devices()
        except MissingDependency:
            return ()
        able = [n for n, gpu in enumerate(found) if _runs_on(target, gpu)]
        asked = DEVICE.get()
        if asked is not None:
            return (asked,) if asked in able else ()
        return tuple(n for n in able if found[n] == found[able[0]])

    def threads(self, asked: int | None, target: Target) -> int:
        if asked not in (None, 1):
            raise UsageError(f"{asked} threads make no difference to a GPU", hint="leave them out")
        return 1

    def with_threads(self, target: Target, threads: int) -> Target:
        return target

    def family(self, triple: str, vector_bits: str) -> str:
        return "cuda"


def _runs_on(target: Target, gpu: Target) -> bool:
    """Whether *gpu* runs this code; later chips of a generation do too (``sm_80``: 8.x)."""
    if target.features not in ("", gpu.features):
        return False
    mine, its = target.capability, gpu.capability
    same = mine == its or (mine // 10 == its // 10 and mine < its and target.cpu[-1].isdigit())
    return same and target.max_shared_optin_bytes <= gpu.max_shared_optin_bytes


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
_OLDEST = f"sm_{min(_CHIPS)}"
_WITH_OWN = (90,)
"""Architectures with instructions of their own that rules use (PTX ISA, ``wgmma``)."""

_MAX_VTHREAD = 8
"""TVM's default."""


def _of_architecture(name: str, capability: int) -> Target:
    """The largest GPU of a compute capability; if unlisted, of the newest one before it.

    Devices that are too old for programs have the limits of the oldest one listed.
    """
    chip = _CHIPS[max((known for known in _CHIPS if known <= capability), default=min(_CHIPS))]
    # Volta and Turing give a block all shared memory; later chips reserve 1 KiB of it.
    kept = 0 if capability < 80 else KIB
    shared = chip.shared_kib * KIB
    return Target(
        name=name,
        triple="",
        cpu=name,
        features="",
        cores=chip.sms,
        vector_bits=128,
        vector_registers=255,
        l1_bytes=chip.l1_kib * KIB,
        l2_bytes=chip.l2_kib * KIB,
        l3_bytes=0,
        cache_line_bytes=128,
        backend="cuda",
        capability=capability,
        max_threads_per_block=1024,
        max_shared_bytes=48 * KIB,
        warp_size=32,
        max_vthread=_MAX_VTHREAD,
        max_shared_optin_bytes=shared - kept,
        registers_per_block=1 << 16,
        shared_per_sm_bytes=shared,
        max_threads_per_sm=chip.threads,
        max_blocks_per_sm=chip.blocks,
    )


@cache
def cuda_devices() -> tuple[Target, ...]:
    """The CUDA devices of this machine, at least one."""
    try:
        from cupy.cuda import runtime
    except ImportError as error:
        raise MissingDependency(
            f"CUDA devices are found through cupy, which is not installed ({error})",
            hint="pip install 'ansorpy[cuda]', or name an architecture: --target sm_90 "
            "(target= in Python)",
        ) from error
    try:
        count = max(1, runtime.getDeviceCount())
        found = [runtime.getDeviceProperties(number) for number in range(count)]
    except runtime.CUDARuntimeError as error:
        raise MissingDependency(
            f"this machine has no CUDA device that can be used ({error})",
            hint="name the architecture to compile for one elsewhere: --target sm_90 "
            "(target= in Python)",
        ) from error
    return tuple(device_target(properties) for properties in found)


def _device(number: int) -> Target:
    if number >= len(cuda_devices()):
        raise MissingDependency(
            f"there is no GPU {number}: CUDA counts {len(cuda_devices())} here",
            hint=f"set {DEVICE.name} to a smaller number, or not at all",
        )
    found = cuda_devices()[number]
    if found.capability < min(_CHIPS):
        raise MissingDependency(
            f"GPU {number} of this machine ({found.features}) is older than {_OLDEST}",
            hint=f"set {DEVICE.name} to the number of a newer one, or name an architecture: "
            "--target sm_90 (target= in Python)",
        )
    return found


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
