"""The results as lines, tables and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import geometric_mean
from typing import Any

from ansorpy.report.tables import Table
from benchmarks.ops.measure import OURS, PEERS, Measured

__all__ = ["as_json", "cases_table", "groups_table"]


def cases_table(results: Sequence[Measured]) -> Table:
    """A row a case and thread count: every engine's time, and the best peer's over ours."""
    engines = [n for n in (OURS, *PEERS) if any(n in r.timings or n in r.failures for r in results)]
    heading = ("case", "threads", *(f"{name} ms" for name in engines), "ratio")
    rows = []
    for r in results:
        times = (
            _number(r.timings[n].median_ms) if n in r.timings else "failed" if n in r.failures
            else "" for n in engines
        )  # fmt: skip
        rows.append((r.case.name, str(r.threads), *times, _ratio(r.ratio)))
    return Table("", heading, tuple(rows), frozenset(heading[1:]))


def groups_table(results: Sequence[Measured]) -> Table:
    """Geometric means of the ratios: a row a family, then the whole suite; a column a count."""
    counts = sorted({r.threads for r in results})
    groups = list(dict.fromkeys(r.case.group for r in results))
    heading = (
        "family",
        "cases",
        *(f"{n} thr" for n in counts),
        *(f"least, {n} thr" for n in counts),
    )
    rows = []
    for name, members in [
        *((g, [r for r in results if r.case.group == g]) for g in groups), ("all", list(results)),
    ]:  # fmt: skip
        per_count = [[r.ratio for r in members if r.threads == n] for n in counts]
        ratios = [[x for x in column if x is not None] for column in per_count]
        rows.append((
            name, str(len({r.case.name for r in members})),
            *(_ratio(_mean(column)) for column in ratios),
            *(_ratio(min(column, default=None)) for column in ratios),
        ))  # fmt: skip
    return Table("", heading, tuple(rows), frozenset(heading[1:]))


def as_json(results: Iterable[Measured]) -> list[dict[str, Any]]:
    """A JSON-able object a case and thread count."""
    return [_row(r) for r in results]


def _row(r: Measured) -> dict[str, Any]:
    engines = {
        name: {"median_ms": t.median_ms, "min_ms": t.min_ms, "runs": t.runs, "version": t.version}
        for name, t in r.timings.items()
    }
    return {
        "case": r.case.name,
        "family": r.case.group,
        "threads": r.threads,
        "engines": engines,
        "failures": dict(r.failures),
        "best_peer": r.best_peer,
        "ratio": r.ratio,
        "flops": r.case.dag_flops,
        "bytes": r.case.bytes,
        "tuning_s": r.tuning_s,
        "program": r.program,
    }


def _mean(ratios: Sequence[float]) -> float | None:
    return geometric_mean(ratios) if ratios else None


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _number(ms: float) -> str:
    """Four significant digits, down to nanoseconds."""
    return f"{ms:.2f}" if ms >= 10 else f"{ms:.3f}" if ms >= 1 else f"{ms:.4f}"
