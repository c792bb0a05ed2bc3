"""Square matrix products beside cuBLAS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.cuda.figures.base import TOLERANCES, Figures, Settings, compare, tuned
from benchmarks.cuda.smoke.checks import product
from benchmarks.cuda.timing import by_events, fastest, in_turns

__all__ = ["measure_product"]


def measure_product(
    dtype: str, side: int, torch: Any, settings: Settings, limit_s: float
) -> Figures:
    """``C[side, side] = A B``; the sums, which are the result, are float32 or int32."""
    kernel = tuned(product(dtype, side, side, side), settings, limit_s, trials=4 * settings.trials)
    sums = "int32" if dtype == "int8" else "float32"
    x, y = (_values(torch, dtype, side) for _ in range(2))
    out = torch.empty(side, side, dtype=getattr(torch, sums))
    run = kernel.prepare(x, y, out=out)
    run()
    engines = []
    for call in _peers(torch, dtype, x, y):
        compare(out, call(), TOLERANCES[dtype])
        engines.append(by_events(torch, call))
    ours_s, peer_s = in_turns(run.seconds, fastest(engines))
    teraflops = 2 * side**3 / ours_s * 1e-12
    peer = "_int_mm" if dtype == "int8" else "matmul"
    return Figures(ours_s, peer_s, f"{teraflops:.0f} T/s", dtype, sums, peer)


def _values(torch: Any, dtype: str, side: int) -> Any:
    if dtype == "int8":
        return torch.randint(-128, 128, (side, side), dtype=torch.int8)
    return torch.randn(side, side).to(getattr(torch, dtype))


def _peers(torch: Any, dtype: str, x: Any, y: Any) -> Sequence[Callable[[], Any]]:
    """torch's products; of bytes also with the second operand by columns, as cuBLAS likes it."""
    if dtype != "int8":
        return [lambda: torch.matmul(x, y)]
    columns = y.t().contiguous().t()
    return [lambda: torch._int_mm(x, columns), lambda: torch._int_mm(x, y)]
