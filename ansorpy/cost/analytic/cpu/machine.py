"""The machine parameters of the analytic model of CPUs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ansorpy.cost.analytic.cpu.cache_sets import SetCache
from ansorpy.rates import Rates
from ansorpy.target import Target

__all__ = ["MachineModel"]


@dataclass(frozen=True)
class MachineModel:
    """Rates and capacities, per core unless stated otherwise; bandwidths in bytes per cycle.

    The defaults describe a current x86 core with two vector units; those of the processor and the
    values of a :class:`Target` replace them.
    """

    clock_hz: float = 3.6e9
    vector_bits: int = 512
    vector_registers: int = 32
    vector_ops_per_cycle: float = 2.0
    narrow_ops_per_cycle: float = 2.0
    """For vectors of half the width or less, and for scalars."""
    loads_per_cycle: float = 1.7
    stores_per_cycle: float = 1.0
    gathered_per_cycle: float = 1.0
    issue_per_cycle: float = 6.0
    instructions_in_flight: float = 448.0
    """Entries of the reorder buffer: 320 on Zen 4, 448 on Zen 5, 512 on current Intel cores."""
    fma_latency: float = 4.0
    store_forward_latency: float = 11.0
    line_bytes: float = 64.0
    l1_bytes: float = 32 * 1024
    l2_bytes: float = 1024 * 1024
    l3_bytes: float = 32 * 1024 * 1024
    l1_way_bytes: int = 4096
    """Addresses this far apart share a set; one page, so indexing needs no address translation."""
    l2_ways: int = 16
    l2_bandwidth: float = 64.0
    l3_bandwidth: float = 20.0
    l3_bytes_per_s: float = math.inf
    """Total of all cores."""
    dram_core_bytes_per_s: float = 27e9
    dram_bytes_per_s: float = 27e9
    """Total of all cores."""
    fork_join_s: float = 3e-6
    """Measured: 0.3 µs when warm, some microseconds after a pause."""

    @property
    def data_caches(self) -> tuple[SetCache, SetCache, SetCache]:
        """The three cache levels; the last one hashes addresses to choose sets.

        Measured on Zen 5 with one core reading rows of 64 to 4096 bytes at pitches of 1 to 4 KB:
        if the lines go to 1, 2, 4 or 8 sets, the second level delivers 0.34, 0.48, 0.69 or 0.95 of
        its bandwidth, the third level 0.17, 0.33, 0.57 or 0.84.
        """
        return (
            SetCache(self.l1_bytes, self.l1_way_bytes, 8.0, 3.0),
            SetCache(self.l2_bytes, int(self.l2_bytes) // self.l2_ways, 6.5),
            SetCache(self.l3_bytes),
        )

    @staticmethod
    def of(target: Target) -> MachineModel:
        """The model of *target*, from its description and measured rates; defaults for the rest."""
        machine = replace(
            _PROCESSORS.get(target.cpu, MachineModel()),
            vector_bits=target.vector_bits,
            vector_registers=target.vector_registers,
            line_bytes=float(target.cache_line_bytes),
            l1_bytes=float(target.l1_bytes),
            l2_bytes=float(target.l2_bytes),
            l3_bytes=float(target.l3_bytes or target.l2_bytes * target.cores),
        )
        return machine if target.rates is None else machine.measured(target.rates)

    def measured(self, rates: Rates) -> MachineModel:
        """This machine with measured *rates* in place of assumed ones."""
        return replace(
            self,
            clock_hz=rates.clock_hz,
            vector_ops_per_cycle=rates.vector_ops_per_cycle,
            narrow_ops_per_cycle=rates.narrow_ops_per_cycle,
            stores_per_cycle=rates.stores_per_cycle,
            l2_bandwidth=rates.l2_bytes_per_cycle,
            l3_bandwidth=rates.l3_bytes_per_cycle,
            l3_bytes_per_s=rates.l3_bytes_per_s,
            dram_core_bytes_per_s=rates.dram_core_bytes_per_s,
            dram_bytes_per_s=rates.dram_bytes_per_s,
            fork_join_s=rates.fork_join_s,
        )


_PROCESSORS = {
    "znver4": MachineModel(
        vector_ops_per_cycle=1.0,
        stores_per_cycle=0.5,
        instructions_in_flight=320.0,
        l2_bandwidth=32.0,
    ),
    "znver5": MachineModel(clock_hz=4.3e9),
}
"""Processors that differ from the defaults, by LLVM name.  Zen 4 runs a 512-bit operation in two
halves (116 GFLOP/s per core measured); Zen 5 runs two at once (280)."""
