"""What was measured of one network, stored as JSON and read back, and the figures that follow."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from statistics import geometric_mean, median
from typing import Any

import numpy as np

from ansorpy.evaluation.bench.turns import Timing
from benchmarks.common.cells import OURS
from benchmarks.common.compared import Compared, Machine, Stored, code_version, engine_times

__all__ = ["DynamicResult", "FirstCall", "Library", "Positions", "SizeTimes", "versions"]

ONNXRUNTIME = "onnxruntime"


class Library(Stored):
    """A library that was compiled: for one *size*, or without one for the whole range."""

    file: str
    size: int | None
    tuning_s: float
    trials: int
    bytes: int


class SizeTimes(Compared):
    """The engines' times at one size."""

    size: int

    @staticmethod
    def of(size: int, timings: Mapping[str, Timing]) -> SizeTimes:
        return SizeTimes(size=size, engines=engine_times(timings))

    @property
    def over_fixed(self) -> float:
        """Our time as a multiple of that of the library for this size."""
        return self.engines[OURS].median_ms / self.engines["fixed"].median_ms


class Positions(Stored):
    """Microseconds of a decoder's steps: for each engine its passes over all positions.

    Our caches grow in place.
    """

    passes: Mapping[str, tuple[tuple[float, ...], ...]]

    @property
    def ratio(self) -> float | None:
        """onnxruntime's time as a multiple of ours: geometric mean over all positions."""
        if not {OURS, ONNXRUNTIME} <= set(self.passes):
            return None
        ours, theirs = (np.median(self.passes[name], axis=0) for name in (OURS, ONNXRUNTIME))
        return geometric_mean((theirs / ours).tolist())


class FirstCall(Stored):
    """Microseconds of the first call at a size, and the median of later ones."""

    size: int
    first_us: float
    later_us: float


class DynamicResult(Stored):
    """All parts that were measured of one network, with the conditions.

    Args:
        errors: Our largest difference from onnxruntime at each checked size, divided by the largest
            value of that output.
        failures: Reason for each engine that failed.
        dynamic: Our library for the whole range, and ``fixed`` those for one size each.
        tuned: Our time at a size, beside that of the library for this size (``fixed``).
        peers: Our time at a size, beside those of engines that are open to all of them.
    """

    model: str
    dim: str
    low: int
    high: int
    threads: int
    effort: str
    seed: int
    machine: Machine
    date: str
    versions: Mapping[str, str]
    errors: Mapping[int, float] = {}
    failures: Mapping[str, str] = {}
    dynamic: Library | None = None
    fixed: tuple[Library, ...] = ()
    tuned: tuple[SizeTimes, ...] = ()
    peers: tuple[SizeTimes, ...] = ()
    positions: Positions | None = None
    first_calls: tuple[FirstCall, ...] = ()

    @property
    def figures(self) -> dict[str, float | None]:
        """What the tables show; None where it was not measured."""
        over = [times.over_fixed for times in self.tuned]
        ratios = [times.ratio for times in self.peers if times.ratio is not None]
        delays = [call.first_us - call.later_us for call in self.first_calls]
        ours, theirs = self.dynamic, self.fixed
        both = ours is not None and len(theirs) > 0
        return {
            "over_fixed": geometric_mean(over) if over else None,
            "over_fixed_worst": max(over, default=None),
            "ratio": geometric_mean(ratios) if ratios else None,
            "ratio_least": min(ratios, default=None),
            "step_ratio": None if self.positions is None else self.positions.ratio,
            "bytes": ours.bytes / median(f.bytes for f in theirs) if ours and both else None,
            "tuning": ours.tuning_s / median(f.tuning_s for f in theirs) if ours and both else None,
            "first_call_us": median(delays) if delays else None,
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON-serializable values, with :attr:`figures`."""
        return {**self.model_dump(), "figures": self.figures}


def versions() -> dict[str, str]:
    """The versions of ansorpy, of the peers that are installed, and of what both rest on."""
    found = {OURS: code_version()}
    for name in (ONNXRUNTIME, "openvino", "numpy", "llvmlite", "onnx"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
