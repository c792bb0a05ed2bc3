"""One loaded library, run for an hour: its results stay the same, and memory does not grow."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import ansorpy as ap
from ansorpy.runtime.model import Model
from tests.campaigns.campaign import Campaign, Tally
from tests.runtime import programs

__all__ = ["SOAK"]

CASES, BURSTS, RUNS, CALLERS = 360, 20, 500, 2
"""A case takes ten seconds: bursts of runs from several threads, with pauses in which the thread
team falls asleep."""
_PAUSE_S = 0.4

_GROWTH_BYTES = 2 << 20
"""Resident memory that may come after the first case, in all: pages that the allocator and the
interpreter touch late.  A byte lost in each run is more after a few minutes."""


@dataclass(frozen=True)
class _Held:
    resident_bytes: int
    files: int
    threads: int


class _Soaked:
    """The library that all cases of a process run, and what the process held at first."""

    def __init__(self) -> None:
        made, self.layers = programs.model(np.random.default_rng(0))
        with TemporaryDirectory(prefix="ansorpy-soak-") as folder:
            self.model: Model = ap.load(made.export(Path(folder, "net.so")))
        self.callers = ThreadPoolExecutor(CALLERS)
        self.first: _Held | None = None

    def burst(self, x: programs.Floats) -> None:
        """Run the model from several threads at once, on the same input."""
        found = [*self.callers.map(self._runs, [x] * CALLERS)]
        for outputs in found:
            for got, want in zip(outputs, found[0], strict=True):
                np.testing.assert_array_equal(got, want)
        for got, want in zip(found[0], programs.expected(self.layers, x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)

    def _runs(self, x: programs.Floats) -> list[programs.Floats]:
        for _ in range(RUNS - 1):
            self.model.run(None, {"x": x}, threads=2)
        found: list[programs.Floats] = self.model.run(None, {"x": x}, threads=2)
        return found


@cache
def _soaked() -> _Soaked:
    return _Soaked()


def _case(rng: np.random.Generator, number: int) -> Tally:
    soaked = _soaked()
    for _ in range(BURSTS):
        soaked.burst(programs.feed(rng))
        time.sleep(_PAUSE_S)
    now = _held()
    soaked.first = first = soaked.first or now
    growth = now.resident_bytes - first.resident_bytes
    assert growth <= _GROWTH_BYTES, f"{first} became {now}"
    assert (now.files, now.threads) == (first.files, first.threads), f"{first} became {now}"
    tally = Tally()
    tally.kinds["runs"] = BURSTS * RUNS * CALLERS
    tally.note("growth in bytes", growth, f"case {number}")
    return tally


def _held() -> _Held:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    folders = (os.listdir(f"/proc/self/{name}") for name in ("fd", "task"))
    return _Held(pages * os.sysconf("SC_PAGE_SIZE"), *map(len, folders))


SOAK = Campaign(
    "runs one library for ten seconds a case, an hour in all: memory stays flat",
    _case,
    size=CASES,
    short=0,
)
