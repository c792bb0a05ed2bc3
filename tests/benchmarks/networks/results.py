"""Results to test with."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.common.compared import EngineTime
from benchmarks.networks.result import NetworkResult

__all__ = ["result"]


def result(
    network: str,
    threads: int = 2,
    failures: Mapping[str, str] | None = None,
    batch: int = 1,
    **milliseconds: float,
) -> NetworkResult:
    """A result with those times."""
    engines = {
        name: EngineTime(median_ms=ms, min_ms=ms, runs=3, version="1")
        for name, ms in milliseconds.items()
    }
    return NetworkResult(
        network=network, batch=batch, threads=threads, effort="quick", seed=0,
        machine={"cpu": "some", "cores": 2}, engines=engines, failures=failures or {}, error=1e-6,
        roofline_ms=0.5, peak_gflops=500.0, bandwidth_gbytes=50.0, kernels=9, tasks=4,
        kernels_ms=0.9, tuning_s=1.0,
    )  # fmt: skip
