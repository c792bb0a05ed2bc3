"""Result of one network at one thread count, stored as JSON and read back for tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from benchmarks.common.compared import Compared, Machine
from benchmarks.zoo.suite import Entry

__all__ = ["NetworkResult", "kept", "path_of"]


class NetworkResult(Compared):
    """Result of one comparison.

    Args:
        effort: Description of how long it was tuned.
        code: The version of the code (:func:`benchmarks.common.compared.code_version`).
        failures: Reason for each engine that failed.
        error: Our largest difference from onnxruntime, divided by its largest output.
        roofline_ms: Sum over all kernels of the time of their operations at the measured peak or of
            their bytes at the bandwidth measured for the whole network's data, the longer of both.
        kernels: Number of kernel calls; ``tasks`` is the number of distinct kernels.
    """

    network: str
    batch: int
    threads: int
    effort: str
    seed: int
    machine: Machine
    code: str = ""
    failures: Mapping[str, str]
    error: float | None
    roofline_ms: float
    peak_gflops: float
    bandwidth_gbytes: float
    kernels: int
    tasks: int
    kernels_ms: float | None
    tuning_s: float

    @property
    def label(self) -> str:
        """Name and batch."""
        return Entry(self.network, self.batch).label

    @property
    def share(self) -> float | None:
        """Roofline divided by our time; above 1 if another algorithm needs fewer operations."""
        return self.roofline_ms / self.ours_ms if self.ours_ms else None


def path_of(folder: Path, label: str, threads: int, effort: str, seed: int) -> Path:
    """Path of the result of a network at a thread count and effort."""
    words = "".join(c if c.isalnum() else "-" for c in effort)
    return folder / f"{label}.{threads}-threads.{words}.seed-{seed}.json"


def kept(path: Path, machine: Machine, engines: Collection[str], code: str) -> NetworkResult | None:
    """Read the stored result, if it is of *code* on *machine* and all of *engines* ran.

    Return None if there is no result, if an engine failed, or if code or machine was another.

    Raises:
        ForeignFile: *path* is not a stored result.
    """
    if not path.exists():
        return None
    found = NetworkResult.read(path, "networks")
    whole = set(engines) <= set(found.engines)
    is_same = (found.code, found.machine) == (code, machine)
    return found if whole and is_same else None
