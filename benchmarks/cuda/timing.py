"""Timing of two engines on one GPU, alternating between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Any

__all__ = [
    "BURST_S",
    "ROUNDS",
    "Seconds",
    "as_graph",
    "by_clock",
    "by_events",
    "fastest",
    "in_turns",
]

Seconds = Callable[[int], float]
"""Returns the seconds of the given number of consecutive calls."""

ROUNDS = 15
BURST_S = 0.02


def in_turns(ours: Seconds, peer: Seconds) -> tuple[float, float]:
    """Median seconds per call of each, alternating so that clock drift affects both equally."""
    engines = (ours, peer)
    numbers = [_calls(engine) for engine in engines]
    samples: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for engine, number, taken in zip(engines, numbers, samples, strict=True):
            engine(1)
            taken.append(engine(number) / number)
    return median(samples[0]), median(samples[1])


def by_events(torch: Any, call: Callable[[], Any]) -> Seconds:
    """Measure torch's GPU time by events."""
    began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def seconds(number: int) -> float:
        call()  # keeps the GPU busy, so that there is no launch latency between the events
        began.record()
        for _ in range(number):
            call()
        ended.record()
        ended.synchronize()
        return float(began.elapsed_time(ended)) * 1e-3

    return seconds


def by_clock(call: Callable[[], Any], wait: Callable[[], None]) -> Seconds:
    """Measure wall-clock time, waiting for each call."""

    def seconds(number: int) -> float:
        start = perf_counter()
        for _ in range(number):
            call()
            wait()
        return perf_counter() - start

    return seconds


def as_graph(torch: Any, call: Callable[[], Any], calls: int = 16) -> Seconds:
    """Seconds of *call* when torch replays *calls* of it as one graph, without launch latencies.

    Raises:
        RuntimeError: The call cannot be captured in a graph; torch then keeps its old stream.
    """
    had = torch.cuda.current_stream()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            for _ in range(calls):
                call()
    except RuntimeError:
        torch.cuda.set_stream(had)
        raise
    whole = by_events(torch, graph.replay)

    def seconds(number: int) -> float:
        replays = max(1, round(number / calls))
        return whole(replays) * number / (replays * calls)

    return seconds


def fastest(engines: Sequence[Seconds]) -> Seconds:
    """The engine whose calls take the least time."""

    def each(engine: Seconds) -> float:
        number = _calls(engine)
        return engine(number) / number

    return min(engines, key=each)


def _calls(engine: Seconds) -> int:
    """Number of calls per burst."""
    engine(3)
    each = min(engine(8), engine(8)) / 8
    return max(1, min(2000, round(BURST_S / max(each, 1e-7))))
