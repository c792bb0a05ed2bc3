"""Rates and capacities of a GPU, for the analytic model."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansorpy.target import Target

__all__ = ["GpuMachine"]

_HALF_RATE = (70, 72, 75, 80)
"""Architectures with 64 single-precision lanes per multiprocessor (CUDA C++ Programming Guide,
throughput of arithmetic instructions)."""


@dataclass(frozen=True)
class GpuMachine:
    """Rates of one chip; "per cycle" means per cycle of one multiprocessor.

    The defaults are those of an H100 (NVIDIA, "H100 Tensor Core GPU Architecture").
    """

    processors: int = 132
    clock_hz: float = 1.7e9
    warp: int = 32
    schedulers: float = 4.0
    """Each scheduler issues one instruction of one of its warps per cycle."""
    products_per_cycle: float = 128.0
    """Fused multiply-adds of single-precision floats."""
    l2_bytes_per_s: float = 1e13
    """An H200 reached 8.2 TB/s in a product bound by tensor cores, two thirds of its peak."""
    dram_bytes_per_s: float = 3.3e12
    l2_bytes: float = 50 * 2.0**20
    launch_s: float = 1.5e-6
    memory_latency: float = 700.0
    l2_latency: float = 300.0
    barrier_latency: float = 40.0
    step_latency: float = 35.0
    """Cycles from a load of shared memory to the sum that needs it."""
    tensor_bits_per_cycle: float = 16 * 1024.0
    """Multiply-adds of ``mma.sync`` per cycle, times the bits of an operand."""
    wgmma_bits_per_cycle: float = 32 * 1024.0
    """The same for ``wgmma``."""
    tensor_latency: float = 33.0
    wgmma_latency: float = 128.0
    """Cycles from a warpgroup's last ``wgmma`` to the end of the wait for it."""
    threads: float = 2048.0
    blocks: float = 32.0
    shared_bytes: float = 228 * 1024.0
    block_overhead_bytes: float = 1024.0
    """Shared memory that the system reserves per block."""
    registers: float = 65536.0
    thread_registers: float = 255.0

    @property
    def l2_bytes_per_cycle(self) -> float:
        """One multiprocessor's share of the L2 cache's bandwidth."""
        return self.l2_bytes_per_s / self.processors / self.clock_hz

    @staticmethod
    def of(target: Target) -> GpuMachine:
        """The machine of *target*, with defaults for values that the target does not specify."""
        number = re.match(r"sm_(\d+)", target.cpu)
        return GpuMachine(
            products_per_cycle=64.0 if number and int(number[1]) in _HALF_RATE else 128.0,
            processors=target.cores, l2_bytes=float(target.l2_bytes), warp=target.warp_size,
            threads=float(target.max_threads_per_sm), blocks=float(target.max_blocks_per_sm),
            shared_bytes=float(target.shared_per_sm_bytes),
            registers=float(target.registers_per_block),
            thread_registers=float(target.vector_registers),
        )  # fmt: skip
