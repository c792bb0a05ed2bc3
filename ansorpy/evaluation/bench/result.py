"""The results of comparisons as JSON and as tables: at one size, and at several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from statistics import geometric_mean
from typing import Any

from ansorpy.config import available_cores
from ansorpy.evaluation.bench.turns import Timing
from ansorpy.evaluation.tables import Table
from ansorpy.target import machine_name

__all__ = ["Comparison", "SizesComparison"]

_MARKS = "*+xo"
"""Of the engines in a plot; more than these are not drawn."""


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
    streams: int = 1

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON-serializable values.

        These are model, threads, machine and kernels_ms, and for each engine its precision, median,
        percentiles, min, the range of the bursts' medians, whether they settled, runs, repeated,
        and the calls a second of all callers.
        """
        return {
            "model": self.model,
            "threads": self.threads,
            "streams": self.streams,
            "machine": _machine(),
            "kernels_ms": self.kernels_ms,
            "engines": _engines(self.timings),
        }

    def table(self) -> Table:
        """One row per engine, with its time as a multiple of the first one's.

        With several callers, the calls a second of all of them count instead.
        """
        timings, first = self.timings.values(), next(iter(self.timings.values()))
        columns = {"engine": [*self.timings], "version": [t.version for t in timings]}
        columns |= {
            "median ms": [f"{t.median_ms:.3f}" for t in timings],
            "spread": [_spread(t) for t in timings],
            "min ms": [f"{t.min_ms:.3f}" for t in timings],
            "p99 ms": [f"{t.percentile_ms(99):.3f}" for t in timings],
            "runs": [str(t.runs) for t in timings],
        }
        if self.streams > 1:
            columns["calls/s"] = [f"{t.per_s:.1f}" for t in timings]
            columns["rate"] = [f"{t.per_s / first.per_s:.2f}x" for t in timings]
        else:
            columns["time"] = [f"{t.median_ms / first.median_ms:.2f}x" for t in timings]
        title = _title(self.model, self.threads)
        title += f", {self.streams} callers at once" if self.streams > 1 else ""
        numeric = frozenset(columns) - {"engine", "version"}
        return Table(title, tuple(columns), tuple(zip(*columns.values(), strict=True)), numeric)

    def precisions(self) -> str:
        """In which types each engine computed."""
        found: dict[str, list[str]] = {}
        for name, timing in self.timings.items():
            found.setdefault(timing.precision, []).append(name)
        return "computed in " + "; ".join(
            f"{precision} types: {', '.join(names)}" for precision, names in found.items()
        )

    def bars(self, columns: int = 40) -> str:
        """A bar for each engine: its median time or, with several callers, its calls a second."""
        figures = {
            name: t.per_s if self.streams > 1 else t.median_ms for name, t in self.timings.items()
        }
        width, most = max(map(len, figures)), max(figures.values())
        unit = "calls/s" if self.streams > 1 else "ms"
        return "\n".join(
            f"{name.ljust(width)}  {_bar(figure / most * columns)} {figure:.4g} {unit}"
            for name, figure in figures.items()
        )


@dataclass(frozen=True)
class SizesComparison:
    """Engines timed alongside each other on one model, at each of several sizes.

    ``sizes`` are those of the dimensions, by name; ``timings`` has an entry for each.
    """

    model: str
    threads: int
    sizes: Sequence[Mapping[str, int]]
    timings: Sequence[Mapping[str, Timing]]

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON-serializable values: as :class:`Comparison` for each size."""
        rows = [
            {"dims": dict(size), "engines": _engines(timings)}
            for size, timings in zip(self.sizes, self.timings, strict=True)
        ]
        return {
            "model": self.model,
            "threads": self.threads,
            "machine": _machine(),
            "sizes": rows,
            "ratios": self.ratios(),
        }

    def ratios(self) -> dict[str, float]:
        """Geometric mean over the sizes of each engine's time as a multiple of the first one's."""
        return {
            name: geometric_mean(_ratio(timings, name) for timings in self.timings)
            for name in self._others()
        }

    def table(self) -> Table:
        """One row per size, and one of geometric means if there are several engines."""
        first, others = next(iter(self.timings[0])), self._others()
        heading = [*self.sizes[0], f"{first} ms"]
        for name in others:
            heading += [f"{name} ms", "time"]
        rows = []
        for size, timings in zip(self.sizes, self.timings, strict=True):
            row = [*map(str, size.values()), f"{timings[first].median_ms:.3f}"]
            for name in others:
                row += [f"{timings[name].median_ms:.3f}", f"{_ratio(timings, name):.2f}x"]
            rows.append(tuple(row))
        if others:
            blank = [""] * len(self.sizes[0])
            means = [cell for ratio in self.ratios().values() for cell in ("", f"{ratio:.2f}x")]
            rows.append(tuple([*blank, "mean", *means]))
        title = _title(self.model, self.threads)
        return Table(title, tuple(heading), tuple(rows), frozenset(heading))

    def plot(self, columns: int = 60) -> str:
        """Time over size: a line for each size, a mark for each engine on a logarithmic axis.

        Where marks coincide, that of the earlier engine shows.
        """
        times = [[t.median_ms for t in timings.values()] for timings in self.timings]
        low, high = min(map(min, times)), max(map(max, times))
        scale = (columns - 1) / log(high / low) if high > low else 0.0
        names = [",".join(map(str, size.values())) for size in self.sizes]
        heading = ",".join(self.sizes[0])
        width = max(len(heading), *map(len, names))
        legend = ", ".join(f"{m} {name}" for m, name in zip(_MARKS, self.timings[0], strict=False))
        lines = [f"{heading.rjust(width)}  {legend}; {low:.3g} to {high:.3g} ms, logarithmic"]
        for name, row in zip(names, times, strict=True):
            line = [" "] * columns
            for mark, time in reversed([*zip(_MARKS, row, strict=False)]):
                line[round(scale * log(time / low))] = mark
            lines.append(f"{name.rjust(width)} |{''.join(line).rstrip()}")
        return "\n".join(lines)

    def _others(self) -> list[str]:
        return list(self.timings[0])[1:]


def _spread(timing: Timing) -> str:
    return f"±{timing.spread:.0%}" + ("" if timing.settled else "?")


_EIGHTHS = " ▏▎▍▌▋▊▉"


def _bar(length: float) -> str:
    """A bar *length* characters long, drawn in eighths."""
    whole, eighths = divmod(round(length * 8), 8)
    return "█" * whole + (_EIGHTHS[eighths] if eighths else "")


def _ratio(timings: Mapping[str, Timing], name: str) -> float:
    return timings[name].median_ms / next(iter(timings.values())).median_ms


def _title(model: str, threads: int) -> str:
    return f"{model}, {threads} thread{'s' if threads > 1 else ''}"


def _machine() -> dict[str, Any]:
    return {"cpu": machine_name(), "cores": available_cores()}


def _engines(timings: Mapping[str, Timing]) -> dict[str, Any]:
    return {
        name: {
            "precision": t.precision or None,
            "median_ms": t.median_ms,
            "min_ms": t.min_ms,
            "p90_ms": t.percentile_ms(90),
            "p99_ms": t.percentile_ms(99),
            "calls_per_s": t.per_s,
            "bursts_ms": t.bursts_ms,
            "settled": t.settled,
            "runs": t.runs,
            "repeated": t.repeated,
            "version": t.version,
        }
        for name, t in timings.items()
    }
