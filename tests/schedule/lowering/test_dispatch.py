"""Programs for parts of the sizes of a dimension, as one program."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.errors import UsageError
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import Extent, dim
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.symbols import Dim
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.ir.text.printer import text
from ansorpy.schedule.lowering.dispatch import dispatched
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import State
from tests.proved import assert_proved
from tests.run_native import run_native

WHOLE = Dim("n", 0, 60)


def product(n: Extent) -> ComputeDAG:
    x, w = placeholder((n, 8), name="x"), placeholder((8, 12), name="w", constant=True)
    k = reduce_axis(8, name="k")
    y = compute((n, 12), lambda i, j: sum_over(x[i, k] * w[k, j], axis=k), name="y")
    return ComputeDAG([compute((n, 12), lambda i, j: y[i, j] + 1.0, name="z")])


def rows_of(tile: int, low: int, high: int, columns: int = 12) -> tuple[Dim, Lowered]:
    """Tiles of *tile* rows, with constants packed by *columns*; for 0, row by row."""
    state = State.initial(product(dim("n", low, high)))
    if tile:
        state, (outer, _) = state.split("z", "i", (tile,), tail="shift")
        state = state.compute_at("y", "z", outer).parallel("z", [outer])
        state, (strip, lanes) = state.split("y", "j", (columns,))
        state = state.reorder("y", [strip, "k", "i", lanes]).vectorize("y", [lanes])
        state = state.pack("y", "w")
    return Dim("n", low, high), lower(state, "rows")


DEFINITION = product(dim("n", 0, 60))
PARTS = rows_of(0, 0, 3), rows_of(4, 4, 15), rows_of(16, 16, 60)


def test_each_size_runs_the_program_for_it(rng: np.random.Generator) -> None:
    lowered = dispatched(DEFINITION, PARTS)
    assert lowered.run.dims == (WHOLE,)
    assert_proved(lowered)
    w = rng.random((8, 12), np.float32)
    for n in (0, 1, 3, 4, 15, 16, 17, 60):
        data = {"x": rng.random((n, 8), np.float32), "w": w}
        [want] = run_dag(dag_at(product(dim("n", 0, 60)), {WHOLE: n}), data)
        [got] = run_native(lowered, data, sizes={WHOLE: n})
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_the_size_decides_once() -> None:
    lines = text(dispatched(DEFINITION, PARTS).run).splitlines()
    assert [line for line in lines if line.startswith("  if") or line.startswith("    if")] == [
        "  if n <= 3", "    if n <= 15",
    ]  # fmt: skip


@pytest.mark.parametrize(("columns", "packed"), [(12, ["w@y.1"]), (4, ["w@y.1", "w@y.2"])])
def test_parts_share_inputs_and_constants_packed_alike(
    columns: int, packed: list[str], rng: np.random.Generator
) -> None:
    lowered = dispatched(DEFINITION, [*PARTS[:2], rows_of(16, 16, 60, columns)])
    names = [param.buffer.name for param in lowered.run.params]
    assert names == ["x", "w", *packed, "z"]
    assert lowered.bind is not None
    assert [p.buffer.name for p in lowered.bind.params] == ["w", *packed]
    data = {"x": rng.random((60, 8), np.float32), "w": rng.random((8, 12), np.float32)}
    [want] = run_dag(dag_at(product(dim("n", 0, 60)), {WHOLE: 60}), data)
    [got] = run_native(lowered, data, sizes={WHOLE: 60})
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_one_part_is_the_program_itself() -> None:
    part = rows_of(4, 4, 60)
    assert dispatched(DEFINITION, [part]) is part[1]


@pytest.mark.parametrize(("low", "high"), [(5, 60), (3, 60)])
def test_ranges_must_be_consecutive(low: int, high: int) -> None:
    with pytest.raises(UsageError, match=rf"n={low}\.\.{high} does not continue n=0\.\.3"):
        dispatched(DEFINITION, [rows_of(0, 0, 3), rows_of(0, low, high)])
