"""Definitions of operators beyond floats, as machine code: indices, truth values, norms, parts."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.graph.ops import Concat, Elementwise, Fn, Gather, LayerNorm
from ansorpy.graph.ops.names import Names
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import ComputeOp, Tensor, placeholder
from ansorpy.ir.text.serialize import dag_from_dict, dag_to_dict, structural_hash
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.run_native import run_native

RNG = np.random.default_rng(9)


def run(inputs: list[Tensor], result: ComputeOp, data: dict[str, np.ndarray]) -> np.ndarray:
    """The result with its last axis a vector loop."""
    state = State.initial(ComputeDAG.of([*inputs, result]))
    state = state.vectorize(result.name, [result.axes[-1].name])
    (found,) = run_native(lower(state), data)
    return found


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("width", [1, 7, 37])
def test_gathers_of_rows_and_of_elements(kind: str, axis: int, width: int) -> None:
    data = placeholder((11, width), name="data")
    at = placeholder((2, 5), kind, name="at")
    low = 0 if kind == "uint8" else -data.shape[axis]
    indices = RNG.integers(low, data.shape[axis], at.shape).astype(kind)
    table = RNG.standard_normal(data.shape, np.float32)
    found = run(
        [data, at], Gather(axis).define([data, at], Names()), {"data": table, "at": indices}
    )
    np.testing.assert_array_equal(found, np.take(table, indices, axis))


@pytest.mark.parametrize("width", [1, 19, 64])
def test_truth_values_are_bytes(width: int) -> None:
    x, y = placeholder((3, width), name="x"), placeholder((3, width), name="y")
    names = Names()
    less = Elementwise(Fn.LESS).define([x, y], names)
    other = Elementwise(Fn.NOT).define([less], names)
    data = {
        "x": RNG.standard_normal(x.shape, np.float32),
        "y": RNG.standard_normal(y.shape, np.float32),
    }
    found = run([x, y], other, data)
    np.testing.assert_array_equal(found, ~(data["x"] < data["y"]))
    chosen = Elementwise(Fn.WHERE).define([less, x, y], names)
    np.testing.assert_array_equal(run([x, y], chosen, data), np.minimum(data["x"], data["y"]))


@pytest.mark.parametrize("axes", [(1,), (0, 1), (0,)])
@pytest.mark.parametrize("centred", [True, False])
def test_norms(axes: tuple[int, ...], centred: bool) -> None:
    x = placeholder((5, 33), name="x")
    values = RNG.standard_normal(x.shape, np.float32) + 2
    norm = LayerNorm(axes, 1e-3, centred).define([x], Names())
    wide = values.astype(np.float64)
    wide -= wide.mean(axes, keepdims=True) if centred else 0
    want = wide / np.sqrt((wide**2).mean(axes, keepdims=True) + 1e-3)
    np.testing.assert_allclose(run([x], norm, {"x": values}), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("widths", [(3,), (5, 2), (1, 7, 4), (2, 3, 1, 9, 5, 4, 4)], ids=len)
def test_concatenations(axis: int, widths: tuple[int, ...]) -> None:
    shapes = [(6, width) if axis else (width, 6) for width in widths]
    parts = [placeholder(shape, name=f"x{n}") for n, shape in enumerate(shapes)]
    data = {part.name: RNG.standard_normal(part.shape, np.float32) for part in parts}
    found = run([*parts], Concat(axis).define(parts, Names()), data)
    np.testing.assert_array_equal(found, np.concatenate(list(data.values()), axis))


def test_a_concatenation_of_many_parts_is_as_code_and_as_the_interpreter_has_it() -> None:
    parts = [placeholder((1, 3), name=f"x{n}") for n in range(250)]
    data = {part.name: RNG.standard_normal(part.shape, np.float32) for part in parts}
    result = Concat(1).define(parts, Names())
    dag, want = ComputeDAG.of([*parts, result]), np.concatenate(list(data.values()), 1)
    assert structural_hash(dag_from_dict(dag_to_dict(dag))) == structural_hash(dag)
    np.testing.assert_array_equal(run_dag(dag, data)[0], want)
    np.testing.assert_array_equal(run([*parts], result, data), want)
