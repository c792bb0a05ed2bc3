"""Whatever the rules make of products for tensor cores computes them: random programs, interpreted.

The interpreter finds lanes that reach what others hold, and warps that do not run together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis.strategies import integers, sampled_from

from ansorpy.errors import LoweringError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag, run_program
from ansorpy.ir.loops import (
    Barrier,
    Instruction,
    Program,
    Stmt,
    Wait,
    walk_stmts,
)
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.placed_sketch import PlacedSketch
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_from_json, steps_to_json
from tests.budget import examples
from tests.faults import Less
from tests.proved import assert_proved
from tests.tensor_cores import (
    TYPES,
    WORKLOADS,
    arguments,
    matmul,
    sketches,
    tolerance,
    turned,
    values,
)


def check(tensors: Sequence[Tensor], program: Program, rng: np.random.Generator) -> None:
    """Assert that *program* multiplies in tensor cores and computes *tensors*."""
    assert any(isinstance(s, Instruction) for s in walk_stmts(program.body))
    assert_proved(Lowered(program, None))
    data = values(tensors, rng)
    (want,) = run_dag(ComputeDAG.of(tensors), data, dtype=DType.FLOAT64)
    arrays = arguments(program, data)
    run_program(program, arrays)
    atol = tolerance(tensors, want)
    got = arrays[-1].astype(np.float64)
    np.testing.assert_allclose(got, want.astype(np.float64), rtol=0, atol=atol)


def a_program(sketch: PlacedSketch, rng: np.random.Generator) -> Program:
    """A random program of the placed sketch."""
    table = sketch.sample(8, rng)
    return lower(sketch.resolve(table[sketch.valid(table)][0])).run


@pytest.mark.parametrize("name", WORKLOADS)
def test_random_programs_compute_the_definition(name: str, rng: np.random.Generator) -> None:
    tensors = WORKLOADS[name]
    found = sketches(tensors, rng)
    if name in ("row", "column", "outer"):  # most of their fragments would be empty
        assert not found
        return
    assert len(found) == 1 + name.startswith("deep")
    for sketch in found:
        table = sketch.sample(64, rng)
        both = np.concatenate((table, sketch.mutate(table, rng)))
        rows = both[sketch.valid(both)]
        assert len(rows) > len(both) // 2
        check(tensors, lower(sketch.resolve(rows[-1])).run, rng)


@examples(16)
@given(
    kind=sampled_from(sorted(TYPES)), n=integers(2, 50), m=integers(2, 40), k=integers(8, 70),
    seed=integers(0, 2**31),
)  # fmt: skip
def test_products_of_any_shape_and_type(kind: str, n: int, m: int, k: int, seed: int) -> None:
    rng, tensors = np.random.default_rng(seed), matmul(kind, n, m, k)
    found = sketches(tensors, rng)
    assume(found)  # most of the fragments of few rows would be empty
    check(tensors, a_program(found[0], rng), rng)


@examples(16)
@given(
    kind=sampled_from(sorted(TYPES)), n=integers(2, 34), m=integers(2, 20), parts=integers(2, 4),
    part=integers(64, 131), seed=integers(0, 2**31),
)  # fmt: skip
def test_parts_of_products_of_any_shape_and_type(
    kind: str, n: int, m: int, parts: int, part: int, seed: int
) -> None:
    rng, k = np.random.default_rng(seed), max(parts * part, 256 // parts * parts)
    tensors = turned(kind, n, m, k, left=bool(seed % 2))
    found = sketches(tensors, rng)
    assume(found)
    split = [sketch for sketch in found if "rfactor" in str(sketch.placed.history)]
    check(tensors, a_program(split[0], rng), rng)


@pytest.mark.parametrize("missing, depth, found", [
    ((Barrier, 2), 1, "two threads access"), ((Barrier, 2), 3, "two threads access"),
    ((Wait, 1), 3, "read before waiting for the copy to it"),
])  # fmt: skip
def test_fragments_of_tiles_that_are_not_there_are_found(
    missing: tuple[type[Stmt], int], depth: int, found: str, rng: np.random.Generator
) -> None:
    tensors = matmul("float16", 64, 64, 128)
    (sketch,) = sketches(tensors, rng)
    row = {name: 1 for name in sketch.columns} | {"C.warp.pipeline": depth}
    row |= {name: 8 for name in row if name.startswith(("A.shared", "B.shared"))}
    row |= {"C.warp.i/1": 2, "C.warp.j/1": 2, "C.warp.k/1": 2}
    program = lower(sketch.resolve([row[name] for name in sketch.columns])).run
    check(tensors, program, rng)
    wrong = program.with_body(Less(*missing).stmt(program.body))
    with pytest.raises(LoweringError, match=found):
        run_program(wrong, arguments(wrong, values(tensors, rng)))


def test_records_replay(rng: np.random.Generator) -> None:
    (sketch,) = sketches(WORKLOADS["prime"], rng)
    bound = sketch.resolve(sketch.sample(1, rng)[0])
    again = State.replay(bound.definition, steps_from_json(steps_to_json(bound.history)))
    assert again.text() == bound.text() and str(again.history) == str(bound.history)
    made: dict[str, object] = {"state": State.initial(bound.definition)}
    exec(str(bound.history), made)
    assert str(made["state"]) == bound.text()
