"""Square matrix products beside cuBLAS."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.cuda.definitions import product
from benchmarks.cuda.figures.base import TOLERANCES, Figures, FigureSettings, compare, tuned
from benchmarks.cuda.timing import by_events, in_turns

__all__ = ["measure_product"]


def measure_product(
    dtype: str, side: int, torch: Any, settings: FigureSettings, limit_s: float
) -> Figures:
    """``C[side, side] = A B``; the sums, which are the result, are float32 or int32.

    Of bytes, B is given by columns, which is what ``_int_mm`` is made for.
    """
    by_columns = dtype == "int8"
    tensors = product(dtype, side, side, side, by_columns=by_columns)
    kernel = tuned(tensors, settings, limit_s, trials=4 * settings.trials)
    sums = "int32" if dtype == "int8" else "float32"
    x, y = (_values(torch, dtype, side) for _ in range(2))
    out = torch.empty(side, side, dtype=getattr(torch, sums))
    run = kernel.prepare(x, y, out=out)
    run()
    call = partial(torch._int_mm, x, y.t()) if by_columns else partial(torch.matmul, x, y)
    compare(out, call(), TOLERANCES[dtype])
    ours_s, peer_s = in_turns(run.seconds, by_events(torch, call))
    teraflops = 2 * side**3 / ours_s * 1e-12
    peer = "_int_mm" if by_columns else "matmul"
    return Figures(ours_s, peer_s, f"{teraflops:.0f} T/s", dtype, sums, peer)


def _values(torch: Any, dtype: str, side: int) -> Any:
    if dtype == "int8":
        return torch.randint(-128, 128, (side, side), dtype=torch.int8)
    return torch.randn(side, side).to(getattr(torch, dtype))
