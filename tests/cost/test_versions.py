"""What the numbers mean that trees were grown from is a version's, and stays so."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ansorpy.cost.analytic.model import PRIOR_VERSION, AnalyticModel
from ansorpy.cost.boosted import BoostedTrees
from ansorpy.cost.features import FEATURE_REVISION, FEATURE_VERSION, extract
from ansorpy.cost.learner import SAMPLE_VERSION
from ansorpy.cost.nest_view import LeafView, view_nest
from benchmarks.spaces.catalogue import FOLDER
from benchmarks.spaces.grid import Grid, read_grid
from benchmarks.spaces.grid_source import GridSource

ROWS = 6


def recorded(name: str) -> tuple[Grid, list[LeafView]]:
    """Some rows of a recorded space."""
    grid = read_grid(FOLDER / f"{name}.npz")
    rows = grid.rows[np.linspace(0, len(grid.rows) - 1, ROWS).astype(int)]
    return grid, view_nest(GridSource(grid).sketch.space.nest(rows), ROWS)


@pytest.mark.parametrize("name", ["matmul", "conv", "winograd", "softmax"])
def test_estimates_are_those_of_this_version(name: str, golden: Callable[[str], None]) -> None:
    """Another number here: raise ``PRIOR_VERSION``."""
    grid, views = recorded(name)
    seconds, shares = AnalyticModel().explained(grid.task, views)
    lines = [f"version {PRIOR_VERSION}", *(f"{s:.9g}" for s in seconds)]
    for view, each in zip(views, shares, strict=True):
        lines += [" ".join(f"{share:.6g}" for share in row) for row in view.spread(each)[:2]]
    golden("\n".join(lines))


@pytest.mark.parametrize("name", ["matmul", "conv", "winograd", "softmax"])
def test_features_are_those_of_this_version(name: str, golden: Callable[[str], None]) -> None:
    """Another number here, and the same names: raise ``FEATURE_REVISION``."""
    _, views = recorded(name)
    lines = [f"version {FEATURE_VERSION}, revision {FEATURE_REVISION}"]
    for view in views:
        features = view.spread(extract(view))
        apart = np.sqrt(1 + np.arange(features.shape[1]))  # so that two swapped ones are told apart
        lines.append(" ".join(f"{total:.9g}" for total in features @ apart))
    golden("\n".join(lines))


def test_samples_are_of_both_versions() -> None:
    assert f"{FEATURE_VERSION}-{PRIOR_VERSION}" == SAMPLE_VERSION
    assert BoostedTrees().remembers[0] == SAMPLE_VERSION
