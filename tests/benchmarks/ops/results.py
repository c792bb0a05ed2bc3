"""Results made up for tests of tables and files."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.common.compared import EngineTime
from benchmarks.ops.case import Case
from benchmarks.ops.result import Result
from benchmarks.ops.suite import case_named

GEMM, NORM = case_named("GMM.128x128x128.b1"), case_named("LN.128x768")


def result(
    case: Case, threads: int, failures: Mapping[str, str] | None = None, **ms: float
) -> Result:
    """Median times of engines by name; the roofline takes 0.25 ms."""
    engines = {
        name: EngineTime(median_ms=value, min_ms=value, runs=10, version="1.0")
        for name, value in ms.items()
    }
    return Result(
        case=case.name, group=case.group, threads=threads, engines=engines,
        failures=failures or {}, flops=1e6, bytes=1000, peak_gflops=4.0, bandwidth_gbytes=10.0,
        roofline_ms=0.25, bound="compute", fork_join_ms=0.05, tuning_s=1.5, algorithm="direct",
        program="for i in 0..4", trials=8,
    )  # fmt: skip
