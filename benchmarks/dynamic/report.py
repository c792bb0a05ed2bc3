"""Tables of the results, for terminals and documents."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.evaluation.tables import Table
from benchmarks.common.cells import milliseconds, two_digits
from benchmarks.dynamic.result import DynamicResult, SizeTimes

__all__ = ["figures_table", "sizes_table"]


def figures_table(results: Sequence[DynamicResult]) -> Table:
    """One row per network; cells of what was not measured are empty.

    ``over fixed`` is our time as a multiple of that of a library for that size (geometric mean over
    sizes, and the worst), ``ratio`` the faster peer's time as a multiple of ours (and the least),
    ``steps`` onnxruntime's as a multiple of ours over a decoder's positions, ``bytes`` and
    ``tuning`` the whole range's as a multiple of one size's, ``first call`` what the first call at
    a size takes more than later ones.
    """
    heading = (
        "network", "threads", "tuned", "over fixed", "worst", "ratio", "least", "steps", "bytes",
        "tuning", "first call, us",
    )  # fmt: skip
    rows = []
    for r in results:
        *figures, first_us = r.figures.values()
        cells = [two_digits(figure) for figure in figures]
        first = "" if first_us is None else f"{first_us:.1f}"
        rows.append((r.model, str(r.threads), r.effort, *cells, first))
    return Table("", heading, tuple(rows), frozenset((heading[1], *heading[3:])))


def sizes_table(title: str, dim: str, rows: Sequence[SizeTimes]) -> Table:
    """One row per size, one column per engine."""
    engines = list(dict.fromkeys(name for row in rows for name in row.engines))
    heading = (dim, *(f"{name} ms" for name in engines))
    cells = tuple(
        (
            str(row.size),
            *(milliseconds(row.engines[e].median_ms) if e in row.engines else "" for e in engines),
        )
        for row in rows
    )
    return Table(title, heading, cells, frozenset(heading))
