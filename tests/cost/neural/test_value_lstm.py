"""Values of beginnings: what was measured below them, and decisions that follow them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

from ansorpy.arrays import Floats
from ansorpy.cost.metrics import rank_correlation
from ansorpy.cost.neural.tokens import tokens
from ansorpy.cost.neural.training import Fitting
from ansorpy.cost.neural.value_lstm import ValueLSTM
from ansorpy.cost.programs import Beginning, Programs
from ansorpy.rules.placed_sketch import PlacedSketch
from ansorpy.schedule.space import Table
from ansorpy.search.population import sample_valid
from ansorpy.search.prefix import begin
from ansorpy.search.strategies.beam import value_greedy
from ansorpy.search.strategy import Context
from benchmarks.spaces.grid_source import GridSource
from tests.benchmarks.spaces.grids import grid_of
from tests.search.tasks import matmul

TASK = matmul(24, 32, 16)
PATIENT = Fitting(rate=3e-3, examples=40_000, patience=20)


def source() -> GridSource:
    return GridSource(grid_of(TASK, points=400))


def seconds_of(table: Table) -> Floats:
    """Fastest where the first column is large; the last one hardly matters."""
    seconds: Floats = 1e-3 * (2 + 8 / table[:, 0] + 0.1 * (table[:, -1] == table[0, -1]))
    return seconds


def learned(sketch: PlacedSketch, rng: np.random.Generator) -> tuple[ValueLSTM, Table]:
    model, table = ValueLSTM(fitting=PATIENT, beginnings=12), sample_valid(sketch, 200, rng)
    model.learn(TASK, Programs(sketch.space, table), seconds_of(table))
    model.refit()
    return model, table


def test_values_of_beginnings_and_programs_follow_what_was_measured(
    rng: np.random.Generator,
) -> None:
    sketch = source().sketch
    model, table = learned(sketch, rng)
    scores = model.predict(TASK, Programs(sketch.space, table))
    assert rank_correlation(scores, -seconds_of(table)) > 0.8
    firsts = np.unique(table[:, 0])
    values = model.values(TASK, [Beginning(sketch.space, np.array([v])) for v in firsts])
    assert values is not None and values.argmax() == len(firsts) - 1
    assert values[-1] > values[0] + 0.3


def test_a_beginning_is_worth_at_least_about_its_best_program(rng: np.random.Generator) -> None:
    sketch = source().sketch
    model, table = learned(sketch, rng)
    begun = [Beginning(sketch.space, row[:2]) for row in table[:60]]
    values = model.values(TASK, begun)
    assert values is not None
    label = seconds_of(table).min() / seconds_of(table)
    best = [label[(table[:, :2] == b.row).all(axis=1)].max() for b in begun]
    assert np.mean(values - np.array(best)) > -0.1


def test_a_space_is_encoded_once_for_all_beginnings_of_a_length(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[Programs] = []

    def counted(programs: Programs) -> Floats:
        encoded.append(programs)
        return tokens(programs)

    monkeypatch.setattr("ansorpy.cost.neural.value_lstm.tokens", counted)
    sketch = source().sketch
    model, table = ValueLSTM(hidden=8, fitting=Fitting(epochs=1)), sample_valid(sketch, 40, rng)
    model.learn(TASK, Programs(sketch.space, table), seconds_of(table))
    model.refit()
    begun = [Beginning(sketch.space, row[: 1 + n % 2]) for n, row in enumerate(table)]
    alone = [model.values(TASK, [each]) for each in begun]
    encoded.clear()
    together = model.values(TASK, begun)
    assert len(encoded) == 2 and together is not None
    np.testing.assert_allclose(together, np.array(alone)[:, 0], rtol=1e-4)


def test_memory_grows_with_the_rows_of_programs_not_with_their_squares(
    rng: np.random.Generator,
) -> None:
    model = ValueLSTM(hidden=4, fitting=Fitting(epochs=1), min_programs=16)
    model.take("task", list(rng.random((16, 300, model.width))), rng.random(16))
    tracemalloc.start()
    model.refit()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model.is_trained and peak < 50e6


def test_untrained_it_has_no_values() -> None:
    space = source().sketch.space
    assert ValueLSTM().values(TASK, [Beginning(space, np.zeros(0, dtype=np.int64))]) is None


def test_greedy_decoding_follows_the_values(rng: np.random.Generator) -> None:
    grid = source()
    model, table = learned(grid.sketch, rng)
    assert begin(grid).options[0].decided[-1][0] == grid.sketch.columns[0]
    at = Context(TASK, grid, model, rng)
    found = value_greedy().ask(at, 8).best
    rows = np.array([c.row for c in found[:4]])
    assert (rows[:, 0] == table[:, 0].max()).all()
