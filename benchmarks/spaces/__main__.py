"""``python -m benchmarks.spaces``: list the recorded spaces, on which ``benchmarks.race`` runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ansorpy.cli.exit_codes import exit_code
from ansorpy.evaluation.tables import Table, show
from benchmarks.common.command import command_line
from benchmarks.spaces.catalogue import FOLDER, derived_today, recorded
from benchmarks.spaces.grid import Grid, read_grid

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one row per space."""
    p = command_line("spaces", __doc__)
    p.add_argument("spaces", nargs="*", metavar="NAME", help="default: all")
    p.add_argument("--folder", type=Path, default=FOLDER, help="folder of recorded spaces")
    options = p.parse_args(arguments)

    def listed() -> int:
        show(_listed(recorded(options.folder, options.spaces)))
        return 0

    return exit_code(listed)


def _listed(spaces: Sequence[Path]) -> Table:
    heading = ("space", "definition", "points", "refused", "failed", "best ms", "worst ms",
               "threads", "derived today", "recorded")  # fmt: skip
    rows = tuple(_row(read_grid(path)) for path in spaces)
    return Table("", heading, rows, frozenset(heading[2:-1]))


def _row(grid: Grid) -> tuple[str, ...]:
    header, times = grid.header, grid.times[np.isfinite(grid.times)]
    return (
        header.name, header.definition, str(len(grid.rows)), str(header.refused),
        str(len(grid.rows) - len(times)), f"{times.min() * 1e3:.4f}", f"{times.max() * 1e3:.3f}",
        str(header.threads), f"{derived_today(grid):.0%}", f"{header.date}, {header.machine}",
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
