from __future__ import annotations

import math

import pytest

from benchmarks.common.peak import Peak, measure_peak


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("footprint", [1, 100_000])
def test_peaks_are_measured(threads: int, footprint: int) -> None:
    peak = measure_peak(threads, footprint)
    assert 0 < peak.flops < math.inf and 0 < peak.bandwidth < math.inf
    assert peak.fork_join_s == 0 if threads == 1 else 0 <= peak.fork_join_s < 1


def test_roofline_is_the_longer_of_computing_and_reading() -> None:
    peak = Peak(flops=100.0, bandwidth=10.0, fork_join_s=0.5)
    assert peak.least_s(1000, 20) == 10 and peak.is_compute_bound(1000, 20)
    assert peak.least_s(100, 20) == 2 and not peak.is_compute_bound(100, 20)
    assert peak.or_better(Peak(90.0, 20.0, 0.25)) == Peak(100.0, 20.0, 0.25)
