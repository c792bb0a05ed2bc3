"""``python -m benchmarks.spaces.rank MODEL ...``: how well models rank the recorded spaces.

A model is a name, such as analytic, or a file of ``ansorpy dataset train``.  It sees no program of
the spaces before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from ansorpy.api.parts import Parts
from ansorpy.cli.exit_codes import exit_code
from ansorpy.cost.metrics import ranking
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import CostModel
from ansorpy.evaluation.ranking import Evaluated, models_table
from ansorpy.evaluation.tables import show
from ansorpy.schedule.space import Space
from benchmarks.common.command import command_line
from benchmarks.spaces.catalogue import FOLDER
from benchmarks.spaces.grid import Grid, read_grid

__all__ = ["evaluated", "main", "show_ranks"]

POINTS = 600
"""Random points of each space that are ranked."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    p = command_line("spaces.rank", __doc__)
    p.add_argument("models", nargs="+", help="names of cost models, or files")
    return exit_code(partial(_ranked, p.parse_args(arguments).models))


def _ranked(names: Sequence[str]) -> int:
    show_ranks({name: Parts(cost_model=name).model() for name in names})
    return 0


def show_ranks(models: Mapping[str, CostModel]) -> None:
    """Print how well each of *models* ranks each recorded space, and the means."""
    grids = [read_grid(path) for path in sorted(FOLDER.glob("*.npz"))]
    found = [each for name, model in models.items() for each in evaluated(name, model, grids)]
    for grid in grids:
        name = grid.header.name
        show(models_table([each for each in found if each.task == name], name))
    show(models_table(found, "means over the recorded spaces"))


def evaluated(name: str, model: CostModel, grids: Sequence[Grid]) -> Iterator[Evaluated]:
    """How well *model* ranks random points of each of *grids*."""
    for grid in grids:
        rng = np.random.default_rng(0)
        rows = rng.choice(len(grid.rows), min(POINTS, len(grid.rows)), replace=False)
        scores = model.predict(grid.task, Programs(Space(grid.state), grid.rows[rows]))
        yield Evaluated(name, grid.header.name, len(rows), ranking(scores, grid.times[rows]))


if __name__ == "__main__":
    sys.exit(main())
