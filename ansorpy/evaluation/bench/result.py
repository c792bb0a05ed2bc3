"""The results of comparisons as JSON and as tables: at one size, and at several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import log
from statistics import geometric_mean
from typing import Any

from ansorpy.config import available_cores
from ansorpy.evaluation.bench.remarks import account, doubts
from ansorpy.evaluation.bench.turns import Timing, unit_of
from ansorpy.evaluation.profile import CallTime, bounds_table, profile_table
from ansorpy.evaluation.tables import Table
from ansorpy.quantities import counted, latency_text
from ansorpy.target import machine_name

__all__ = ["Comparison", "SizesComparison", "named"]

_MARKS = "*+xo"
"""Of the engines in a plot; more than these are not drawn."""


class _Printed(ABC):
    """What is printed of a result, as text and in a notebook."""

    @abstractmethod
    def parts(self) -> list[Table | str]:
        """The tables and lines to print, in order."""

    def __str__(self) -> str:
        return "\n".join(p.text() if isinstance(p, Table) else p for p in self.parts())

    def _repr_html_(self) -> str:
        return "".join(
            p._repr_html_() if isinstance(p, Table) else f"<pre>{escape(p)}</pre>"
            for p in self.parts()
        )


@dataclass(frozen=True, repr=False)
class Comparison(_Printed):
    """Engines timed alongside each other on one model.

    ``kernels_ms`` is what the kernels of ansorpy's program took in all, each alone, while they were
    tuned; None if that is unknown.  ``calls`` are the times of its calls, if they were asked for.
    """

    model: str
    threads: int
    timings: Mapping[str, Timing]
    kernels_ms: float | None = None
    calls: Sequence[CallTime] = ()
    streams: int = 1

    def __repr__(self) -> str:
        times = (f"{name} {latency_text(t.median_ms * 1e-3)}" for name, t in self.timings.items())
        return f"<Comparison {_title(self.model, self.threads)}: {', '.join(times)}>"

    def parts(self) -> list[Table | str]:
        inside_ms = sum(call.seconds for call in self.calls) * 1e3 if self.calls else None
        run_ms = next(iter(self.timings.values())).median_ms
        adding = account(run_ms, inside_ms, self.kernels_ms) if self.streams == 1 else None
        said: list[Table | str] = [self.table(), self.bars(), self.precisions()]
        said += doubts(self.timings)
        said += [] if adding is None else ["", adding]
        return said + _profile(self.calls)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON-serializable values.

        These are model, threads, streams, machine and kernels_ms, and for each engine its
        precision, median, percentiles, min, the range of the bursts' medians, whether they settled
        and were undisputed, runs, repeated, and the calls a second of all callers; and the calls,
        if timed.
        """
        found = {
            "model": self.model,
            "threads": self.threads,
            "streams": self.streams,
            "machine": _machine(),
            "kernels_ms": self.kernels_ms,
            "engines": _engines(self.timings),
        }
        return found | _calls(self.calls)

    def table(self) -> Table:
        """One row per engine, with its time as a multiple of the first one's.

        With several callers, the calls a second of all of them count instead.
        """
        timings, first = self.timings.values(), next(iter(self.timings.values()))
        columns = {"engine": [*self.timings], "version": [t.version for t in timings]}
        unit, per_ms = self._unit
        columns |= {
            f"median {unit}": [f"{t.median_ms * per_ms:.3f}" for t in timings],
            "spread": [_spread(t) for t in timings],
            f"min {unit}": [f"{t.min_ms * per_ms:.3f}" for t in timings],
            f"p99 {unit}": [f"{t.percentile_ms(99) * per_ms:.3f}" for t in timings],
            "runs": [str(t.runs) for t in timings],
        }
        if self.streams > 1:
            columns["calls/s"] = [f"{t.per_s:.1f}" for t in timings]
            columns["rate"] = [f"{t.per_s / first.per_s:.2f}x" for t in timings]
        else:
            columns["time"] = [f"{t.median_ms / first.median_ms:.2f}x" for t in timings]
        title = _title(self.model, self.threads, self.streams)
        numeric = frozenset(columns) - {"engine", "version"}
        return Table(title, tuple(columns), tuple(zip(*columns.values(), strict=True)), numeric)

    @property
    def _unit(self) -> tuple[str, float]:
        return unit_of(min(timing.median_ms for timing in self.timings.values()))

    def precisions(self) -> str:
        """In which types each engine computed."""
        return _precisions(self.timings)

    def bars(self, columns: int = 40) -> str:
        """A bar for each engine: its median time or, with several callers, its calls a second."""
        unit, per_ms = self._unit
        figures = {name: t.median_ms * per_ms for name, t in self.timings.items()}
        if self.streams > 1:
            unit, figures = "calls/s", {name: t.per_s for name, t in self.timings.items()}
        digits = 1 if self.streams > 1 else 3
        width, most = max(map(len, figures)), max(figures.values())
        return "\n".join(
            f"{name.ljust(width)}  {_bar(figure / most * columns)} {figure:.{digits}f} {unit}"
            for name, figure in figures.items()
        )


@dataclass(frozen=True, repr=False)
class SizesComparison(_Printed):
    """Engines timed alongside each other on one model, at each of several sizes.

    ``sizes`` are those of the dimensions, by name; ``timings`` has an entry for each, and
    ``profiles`` the times of the calls at each, if they were asked for.
    """

    model: str
    threads: int
    sizes: Sequence[Mapping[str, int]]
    timings: Sequence[Mapping[str, Timing]]
    profiles: Sequence[Sequence[CallTime]] = ()
    streams: int = 1

    def __repr__(self) -> str:
        title, count = _title(self.model, self.threads), len(self.sizes)
        return f"<SizesComparison {title}: {', '.join(self.timings[0])} at {count} sizes>"

    def parts(self) -> list[Table | str]:
        unsteady = [
            f"{named(size)}: {line}"
            for size, timings in zip(self.sizes, self.timings, strict=True)
            for line in doubts(timings)
        ]
        profiles = [
            part
            for size, calls in zip(self.sizes, self.profiles, strict=False)
            for part in _profile(calls, named(size))
        ]
        return [self.table(), self.plot(), _precisions(self.timings[0]), *unsteady, *profiles]

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON-serializable values: as :class:`Comparison` for each size."""
        rows = [
            {"dims": dict(size), "engines": _engines(timings)} | _calls(calls)
            for size, timings, calls in zip(
                self.sizes, self.timings, self.profiles or [()] * len(self.sizes), strict=True
            )
        ]
        return {
            "model": self.model,
            "threads": self.threads,
            "streams": self.streams,
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
        title = _title(self.model, self.threads, self.streams)
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


def named(size: Mapping[str, int]) -> str:
    """The sizes of dimensions as text: ``batch=8, seq=128``."""
    return ", ".join(f"{name}={number}" for name, number in size.items())


def _profile(calls: Sequence[CallTime], title: str = "") -> list[Table | str]:
    return ["", profile_table(calls, title), "", bounds_table(calls)] if calls else []


def _calls(calls: Sequence[CallTime]) -> dict[str, Any]:
    return {"calls": [call.to_dict() for call in calls]} if calls else {}


def _spread(timing: Timing) -> str:
    return f"±{timing.spread:.0%}" + ("" if timing.settled else "?")


_EIGHTHS = " ▏▎▍▌▋▊▉"


def _bar(length: float) -> str:
    """A bar *length* characters long, drawn in eighths."""
    whole, eighths = divmod(round(length * 8), 8)
    return "█" * whole + (_EIGHTHS[eighths] if eighths else "")


def _ratio(timings: Mapping[str, Timing], name: str) -> float:
    return timings[name].median_ms / next(iter(timings.values())).median_ms


def _title(model: str, threads: int, streams: int = 1) -> str:
    callers = f", {streams} callers at once" if streams > 1 else ""
    return f"{model}, {counted(threads, 'thread')}{callers}"


def _precisions(timings: Mapping[str, Timing]) -> str:
    """In which types each engine computed."""
    found: dict[str, list[str]] = {}
    for name, timing in timings.items():
        found.setdefault(timing.precision, []).append(name)
    return "computed in " + "; ".join(
        f"{precision} types: {', '.join(names)}" for precision, names in found.items()
    )


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
            "undisputed": t.undisputed,
            "runs": t.runs,
            "repeated": t.repeated,
            "version": t.version,
        }
        for name, t in timings.items()
    }
