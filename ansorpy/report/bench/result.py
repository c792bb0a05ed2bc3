"""The result of a comparison as JSON and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansorpy.config import available_cores
from ansorpy.report.bench.turns import Timing
from ansorpy.report.tables import Table
from ansorpy.target import machine_name

__all__ = ["Comparison"]


@dataclass(frozen=True)
class Comparison:
    """Engines timed alongside each other on one model.

    ``kernels_ms`` is what the kernels of ansorpy's program took in all, each alone, while they were
    tuned; None if that is unknown.
    """

    model: str
    threads: int
    timings: Mapping[str, Timing]
    kernels_ms: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON-serializable values.

        These are model, threads, machine and kernels_ms, and for each engine median, min, the range
        of the bursts' medians, whether they settled, runs and repeated.
        """
        engines = {
            name: {
                "median_ms": t.median_ms,
                "min_ms": t.min_ms,
                "bursts_ms": t.bursts_ms,
                "settled": t.settled,
                "runs": t.runs,
                "repeated": t.repeated,
                "version": t.version,
            }
            for name, t in self.timings.items()
        }
        machine = {"cpu": machine_name(), "cores": available_cores()}
        return {
            "model": self.model,
            "threads": self.threads,
            "machine": machine,
            "kernels_ms": self.kernels_ms,
            "engines": engines,
        }

    def table(self) -> Table:
        """One row per engine, with its time as a multiple of the first one's."""
        first = next(iter(self.timings.values())).median_ms
        rows = [
            (
                name,
                t.version,
                f"{t.median_ms:.3f}",
                f"{t.min_ms:.3f}",
                str(t.runs),
                f"{t.median_ms / first:.2f}x",
            )
            for name, t in self.timings.items()
        ]
        heading = ("engine", "version", "median ms", "min ms", "runs", "time")
        title = f"{self.model}, {self.threads} thread{'s' if self.threads > 1 else ''}"
        return Table(title, heading, tuple(rows), numeric=frozenset(heading[2:]))
