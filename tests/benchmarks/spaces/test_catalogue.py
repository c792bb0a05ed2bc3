"""The shipped spaces are readable, small, complete, and what the rules still derive is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.spaces.catalogue import FOLDER, PLANS, derived_today, plan_named
from benchmarks.spaces.grid import RETIMED, read_grid
from benchmarks.spaces.grid_source import GridSource
from tests.benchmarks.spaces.grids import grid_of
from tests.search.tasks import matmul

SPACES = sorted(FOLDER.glob("*.npz"))


def test_every_space_has_a_plan() -> None:
    assert len(SPACES) >= 8
    assert {path.stem for path in SPACES} <= {plan.name for plan in PLANS}
    assert all(plan_named(path.stem).path == path for path in SPACES)


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.stem)
def test_a_shipped_space_is_a_complete_grid(path: Path) -> None:
    assert path.stat().st_size < 200_000
    grid = read_grid(path)
    assert grid.is_complete
    assert 2000 <= len(grid.rows) <= 20_000
    assert len(grid.again_rows) >= RETIMED and grid.again.shape[1] == 10
    assert set(grid.header.sizes) == set(grid.header.cut)
    assert all(len(kept) <= grid.header.sizes[name] for name, kept in grid.header.cut.items())
    assert grid.header.default_s is not None and grid.header.default_s > grid.best_s
    sketch = GridSource(grid).sketch
    assert sketch.valid(grid.rows).all()
    rng = np.random.default_rng(0)
    for row in grid.rows[rng.integers(len(grid.rows), size=3)]:
        assert not sketch.resolve(row).is_open


def test_a_space_knows_whether_the_rules_still_derive_it() -> None:
    grid = grid_of(matmul(24, 20, 36), points=30)
    assert derived_today(grid, programs=5) == 1.0
    other = grid.header.model_copy(update={"definition": "another"})
    assert derived_today(replace(grid, header=other), programs=5) == 0.0
