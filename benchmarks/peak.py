"""What the machine can do, measured: multiply-adds, bytes read, and a fork and join of threads.

Measure beside what is judged by it; clocks drift by a quarter within minutes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.measure.probe.limits import fork_join_s, peak_flops, read_bandwidth

__all__ = ["Peak", "measure_peak"]


@dataclass(frozen=True)
class Peak:
    """Float32 operations and bytes read a second on some threads, and seconds of a fork and join.

    ``bandwidth`` is that of data of one size, read again and again from wherever they stay.
    """

    flops: float
    bandwidth: float
    fork_join_s: float

    def least_s(self, flops: float, moved: float) -> float:
        """The roofline: the longer of computing and reading."""
        return max(flops / self.flops, moved / self.bandwidth)

    def is_compute_bound(self, flops: float, moved: float) -> bool:
        """True when computing takes longer than reading."""
        return flops / self.flops >= moved / self.bandwidth

    def or_better(self, other: Peak) -> Peak:
        """The better of two measurements in each respect: what disturbs only lowers a peak."""
        return Peak(
            max(self.flops, other.flops),
            max(self.bandwidth, other.bandwidth),
            min(self.fork_join_s, other.fork_join_s),
        )


def measure_peak(threads: int, footprint: int) -> Peak:
    """The peak of *threads* threads that share *footprint* bytes evenly; takes 0.1 s or so."""
    return Peak(
        peak_flops(threads),
        read_bandwidth(threads, footprint),
        fork_join_s(threads) if threads > 1 else 0.0,
    )
