"""Measured limits of the machine: multiply-adds, read bandwidth, and a fork-join of threads.

Measure them together with the times they are compared to; clocks drift by a quarter within minutes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.measure.probe.limits import fork_join_s, peak_flops, read_bandwidth

__all__ = ["Peak", "measure_peak"]


@dataclass(frozen=True)
class Peak:
    """Float32 operations and bytes read per second on some threads, and seconds of a fork-join.

    ``bandwidth`` is for data of one size, read repeatedly from the cache that holds them.
    """

    flops: float
    bandwidth: float
    fork_join_s: float

    def least_s(self, flops: float, moved: float) -> float:
        """The roofline: the time of computing or of reading, whichever is longer."""
        return max(flops / self.flops, moved / self.bandwidth)

    def is_compute_bound(self, flops: float, moved: float) -> bool:
        """True when computing takes longer than reading."""
        return flops / self.flops >= moved / self.bandwidth

    def or_better(self, other: Peak) -> Peak:
        """Combine the better values of two measurements: disturbances only lower a peak."""
        return Peak(
            max(self.flops, other.flops),
            max(self.bandwidth, other.bandwidth),
            min(self.fork_join_s, other.fork_join_s),
        )


def measure_peak(threads: int, footprint: int) -> Peak:
    """Measure *threads* threads that share *footprint* bytes evenly; takes about 0.1 s."""
    return Peak(
        peak_flops(threads),
        read_bandwidth(threads, footprint),
        fork_join_s(threads) if threads > 1 else 0.0,
    )
