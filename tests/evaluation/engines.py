"""Engines that sleep or fail: their processes load little, so they start soon."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from ansorpy.errors import UsageError

__all__ = ["Alone", "Sized", "Sleeper", "free_units", "refuse"]


class Sleeper:
    """An engine that sleeps, and prints where only answers belong."""

    version, precision = "1.0", "none"

    def __init__(self, seconds: float, fails: str = "") -> None:
        self.seconds, self.fails, self.calls = seconds, fails, 0

    def run(self) -> None:
        self.calls += 1
        print("chatter")
        if self.fails == "crash" and self.calls > 2:
            os.abort()
        if self.fails == "raise":
            raise RuntimeError("no such luck")
        time.sleep(self.seconds)

    def outputs(self) -> dict[str, np.ndarray]:
        return {"pid": np.array(os.getpid())}


def free_units(*gpus: str) -> list[str]:
    """The cores, and those of *gpus*, on which a tuner may compute or time at this moment."""
    units = [f"core-{core}" for core in os.sched_getaffinity(0)] + [f"gpu-{gpu}" for gpu in gpus]
    free = []
    for unit in units:
        lock = Path(tempfile.gettempdir(), f"ansorpy-{unit}.lock")
        with lock.open() as file, suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            free.append(unit)
    return free


class Alone(Sleeper):
    """An engine whose calls but the first, which loads it, fail unless the machine is locked."""

    def run(self) -> None:
        super().run()
        if self.calls > 1 and free_units("0000-01"):
            raise RuntimeError("a tuner may use them")


class Sized:
    """An engine whose run takes as long as its size says."""

    version, precision = "1.0", "none"

    def __init__(self, milliseconds: list[float]) -> None:
        self.milliseconds, self.size = milliseconds, 0

    def choose(self, size: int) -> None:
        self.size = size

    def run(self) -> None:
        time.sleep(self.milliseconds[self.size] * 1e-3)


def refuse() -> Sleeper:
    raise UsageError("not this one", hint="another")
