"""The numbers of a machine that the closed-form model reads."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.target import Target

__all__ = ["MachineModel"]


@dataclass(frozen=True)
class MachineModel:
    """Rates of one core unless said otherwise; bandwidths in bytes a cycle.

    The defaults were measured on a Zen 4 core with AVX-512 (116 GFLOP/s, DRAM 27 GB/s shared by
    all cores, libgomp fork-join 0.6 µs hot and 6 µs after a pause); what a :class:`Target` knows
    replaces them.
    """

    cores: int = 2
    clock_hz: float = 3.6e9
    vector_bits: int = 512
    vector_registers: int = 32
    vector_ops_per_cycle: float = 1.0
    narrow_ops_per_cycle: float = 2.0
    """Of vectors half as wide or narrower, and of scalars."""
    loads_per_cycle: float = 2.0
    stores_per_cycle: float = 0.5
    gathered_per_cycle: float = 1.0
    issue_per_cycle: float = 5.0
    fma_latency: float = 4.0
    store_forward_latency: float = 11.0
    line_bytes: float = 64.0
    l1_bytes: float = 32 * 1024
    l2_bytes: float = 1024 * 1024
    l3_bytes: float = 32 * 1024 * 1024
    l2_bandwidth: float = 32.0
    l3_bandwidth: float = 14.0
    dram_bytes_per_s: float = 27e9
    """Of the whole machine."""
    fork_join_s: float = 3e-6
    code_instructions: float = 4000.0
    """Instructions of one unrolled body that the instruction cache holds."""

    @staticmethod
    def of(target: Target) -> MachineModel:
        """The model of *target*: its vectors, registers, caches and cores; the rest as default."""
        default = MachineModel()
        return MachineModel(
            cores=target.cores,
            vector_bits=target.vector_bits,
            vector_registers=target.vector_registers,
            vector_ops_per_cycle=1.0 if target.vector_bits >= 512 else 2.0,
            stores_per_cycle=default.stores_per_cycle if target.vector_bits >= 512 else 1.0,
            line_bytes=float(target.cache_line_bytes),
            l1_bytes=float(target.l1_bytes),
            l2_bytes=float(target.l2_bytes),
            l3_bytes=float(target.l3_bytes or target.l2_bytes * target.cores),
        )
