"""The static linear model: ranks without measuring, by weights fitted once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.cpu.model import TERMS
from ansorpy.cost.metrics import rank_correlation
from ansorpy.cost.programs import Programs
from ansorpy.cost.static_linear import StaticLinear, fitted_weights, static_terms
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.ir.task import Task
from ansorpy.target import Target
from benchmarks.spaces.catalogue import FOLDER
from benchmarks.spaces.grid import read_grid
from benchmarks.spaces.grid_source import GridSource
from tests.cost.populations import SHAPE, population
from tests.cost.tasks import matmul_task


@cache
def recorded(name: str) -> tuple[Task, Programs, Floats]:
    """A hundred programs of a recorded space that ran, and their measured times."""
    grid = read_grid(FOLDER / f"{name}.npz")
    ran = np.flatnonzero(np.isfinite(grid.times))
    chosen = np.random.default_rng(0).choice(ran, 100, replace=False)
    return grid.task, Programs(GridSource(grid).sketch.space, grid.rows[chosen]), grid.times[chosen]


def fitted(*names: str) -> StaticLinear:
    measured = []
    for name in names:
        task, programs, seconds = recorded(name)
        measured.append((static_terms(task, programs), seconds))
    return StaticLinear(fitted_weights(measured))


@pytest.mark.parametrize("name", ["matmul", "odd_matmul"])
def test_weights_of_other_operators_rank_a_hundred_measured_products(name: str) -> None:
    task, programs, seconds = recorded(name)
    score = fitted("conv", "depthwise", "softmax").predict(task, programs)
    assert rank_correlation(score, -seconds) > 0.6


def test_weights_are_found_again_and_never_negative(rng: np.random.Generator) -> None:
    terms = rng.random((60, len(TERMS)))
    weights = rng.random(len(TERMS))
    weights[3] = 0
    seconds = terms @ weights
    seconds[::7] = np.inf
    np.testing.assert_allclose(fitted_weights([(terms, seconds)]), weights, atol=1e-6)
    assert min(fitted_weights([(terms, rng.random(60) + 0.1)])) >= 0


def test_measuring_changes_nothing() -> None:
    model, task = StaticLinear(), matmul_task(*SHAPE)
    programs, _ = population(30, 1)
    before = model.predict(task, programs)
    model.learn(task, programs, np.ones(30))
    model.refit()
    np.testing.assert_array_equal(model.predict(task, programs), before)


def test_terms_of_a_program_are_the_same_alone_and_among_others() -> None:
    task, programs, _ = recorded("matmul")
    alone = Programs(programs.space, programs.table[7:8])
    np.testing.assert_array_equal(static_terms(task, alone)[0], static_terms(task, programs)[7])


def test_weights_are_kept_in_a_file(tmp_path: Path) -> None:
    path, family = tmp_path / "w.json", matmul_task(*SHAPE).target.family
    model = StaticLinear(fitted("conv").weights, family)
    path.write_text(model.text())
    assert StaticLinear.read(path) == model
    path.write_text(model.text().replace('"l2"', '"l9"'))
    with pytest.raises(ForeignFile, match="for the features of another version"):
        StaticLinear.read(path)
    path.write_text(model.text().replace('"l2": ', '"l2": -'))
    with pytest.raises(ForeignFile, match="greater than or equal to 0"):
        StaticLinear.read(path)
    for other in ("{}", "[", "[" * 100_000, "ansorpy-cost-model"):
        path.write_text(other)
        assert StaticLinear.read(path) is None
    assert StaticLinear.read(tmp_path / "absent") is None


def test_other_machines_are_refused() -> None:
    programs, _ = population(3, 1)
    task = matmul_task(*SHAPE)
    with pytest.raises(UsageError, match="were fitted for another, not for x86_64"):
        StaticLinear(family="another").predict(task, programs)
    cuda = Task(task.dag, Target.parse("sm_90"), 1)
    with pytest.raises(UsageError, match="has features of CPUs only"):
        StaticLinear().predict(cuda, programs)
