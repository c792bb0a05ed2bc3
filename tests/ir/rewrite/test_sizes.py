"""Definitions and programs at chosen sizes."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.errors import UsageError
from ansorpy.ir.builders import select
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import dim
from ansorpy.ir.interpret import run_dag, run_program
from ansorpy.ir.rewrite.sizes import dag_at, program_at
from ansorpy.ir.symbols import Dim
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.ir.text.printer import text
from ansorpy.ir.text.serialize import dag_from_dict, dag_to_dict, structural_hash
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State


def rows(name: str = "n", high: int = 9) -> ComputeDAG:
    """Sums of the rows of an n by n + 2 matrix, and each element divided by its row's."""
    n = dim(name, 0, high)
    x = placeholder((n, n + 2), name="x")
    k = reduce_axis(n + 2, name="k")
    total = compute((n,), lambda i: sum_over(x[i, k], axis=k), name="total")
    return ComputeDAG([compute((n, n + 2), lambda i, j: x[i, j] / total[i], name="y")])


@pytest.mark.parametrize("n", [0, 1, 9])
def test_definition_and_program_agree_at_each_size(n: int) -> None:
    dag, sizes = rows(), {Dim("n", 0, 9): n}
    x = np.random.default_rng(n).random((n, n + 2), np.float32)
    [want] = run_dag(dag_at(dag, sizes), {"x": x})
    np.testing.assert_allclose(want, x / x.sum(axis=1, keepdims=True), rtol=1e-6)
    got = np.full_like(want, np.nan)
    run_program(program_at(lower(State.initial(dag)).run, sizes), [x, got])
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_definition_shows_its_dimensions() -> None:
    assert text(rows()).splitlines()[0] == "x = placeholder float32[n, n + 2]"
    assert "for k in 0..n + 2" in text(rows())
    assert rows().dims == (Dim("n", 0, 9),)


def test_a_definition_without_these_dimensions_stays_the_same_object() -> None:
    dag = rows()
    assert dag_at(dag, {Dim("other", 1, 2): 1}) is dag


def test_a_constant_is_bound_once_so_no_call_sizes_it() -> None:
    with pytest.raises(ValueError, match="cannot depend on a call"):
        placeholder((dim("n", 1, 4),), name="w", constant=True)


def test_data_and_hashes_tell_ranges_apart_but_not_names() -> None:
    dag = rows()
    again = dag_from_dict(dag_to_dict(dag))
    assert dag_to_dict(again) == dag_to_dict(dag) and again.dims == dag.dims
    assert structural_hash(rows("m")) == structural_hash(dag)
    assert structural_hash(rows(high=8)) != structural_hash(dag)
    assert structural_hash(dag_at(dag, {Dim("n", 0, 9): 3})) != structural_hash(dag)


def test_a_size_need_not_be_that_of_an_argument() -> None:
    n, x = dim("n", 1, 8), placeholder((3,), name="x")
    repeated = ComputeDAG([compute((n,), lambda i: x[i % 3], name="y")])
    cut = ComputeDAG([compute((3,), lambda i: select(i < n, x[i], 0.0), name="y")])
    given = {"x": np.arange(3, dtype=np.float32)}
    [first], [second] = (run_dag(dag_at(dag, {dag.dims[0]: 2}), given) for dag in (repeated, cut))
    assert first.tolist() == [0, 1] and second.tolist() == [0, 1, 0]


def test_the_interpreter_needs_sizes() -> None:
    dag = rows()
    with pytest.raises(UsageError, match="the size of n is not chosen"):
        run_dag(dag, {"x": np.zeros((3, 5), np.float32)})
    with pytest.raises(UsageError, match="the size of n is not chosen"):
        run_program(lower(State.initial(dag)).run, [])
