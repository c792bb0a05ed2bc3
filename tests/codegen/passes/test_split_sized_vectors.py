"""Vector loops over sizes: whole vectors, then what is left."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.codegen.passes.split_sized_vectors import split_sized_vectors
from ansorpy.ir.extents import Extent, dim
from ansorpy.ir.interpret import run_program
from ansorpy.ir.loops import For, ForKind, Program, walk_stmts
from ansorpy.ir.rewrite.sizes import program_at
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.ir.text.printer import text
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.target import Target

TARGET = Target.parse("x86-64-v3")
LANES = 8


def doubled(n: Extent) -> Program:
    x = placeholder((3, n), name="x")
    y = compute((3, n), lambda i, j: x[i, j] * 2.0, name="y")
    return lower(State.initial([x, y]).vectorize("y", ["j"])).run


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 31, 32, 33, 77])
def test_every_element_is_computed_once(n: int, masked: bool) -> None:
    program = doubled(dim("n", 0, 77))
    split = split_sized_vectors(program, TARGET, masked=masked)
    x = np.random.default_rng(n).random((3, n), np.float32)
    y = np.full_like(x, np.nan)
    run_program(program_at(split, {program.dims[0]: n}), [x, y])
    np.testing.assert_array_equal(y, x * 2)


def lengths(program: Program) -> list[int]:
    loops = (s for s in walk_stmts(program.body) if isinstance(s, For))
    return [s.extent for s in loops if s.kind is ForKind.VECTORIZED]


def test_vectors_have_the_width_of_the_target() -> None:
    split = split_sized_vectors(doubled(dim("n", 0, 77)), TARGET, masked=True)
    assert lengths(split) == [4 * LANES, LANES, LANES]
    plain = split_sized_vectors(doubled(dim("n", 0, 77)), TARGET, masked=False)
    assert lengths(plain) == [4 * LANES, LANES]


def test_what_cannot_be_left_is_not_written() -> None:
    multiple = split_sized_vectors(doubled(dim("n", 8, 80, step=8)), TARGET, masked=True)
    assert lengths(multiple) == [4 * LANES, LANES] and "if" not in text(multiple)
    short = split_sized_vectors(doubled(dim("n", 1, 7)), TARGET, masked=True)
    assert lengths(short) == [LANES]


def test_a_program_without_dimensions_stays_the_same_object() -> None:
    program = doubled(77)
    assert split_sized_vectors(program, TARGET, masked=True) is program


def test_only_the_innermost_of_nested_vector_loops_is_a_vector() -> None:
    n = dim("n", 1, 9)
    x = placeholder((n, 8), name="x")
    y = compute((n, 8), lambda i, j: x[i, j] * 2.0, name="y")
    program = lower(State.initial([x, y]).vectorize("y", ["i", "j"])).run
    assert lengths(program) == [n, 8]
    assert lengths(split_sized_vectors(program, TARGET, masked=True)) == [8]


@pytest.mark.parametrize("masked", [True, False])
def test_lanes_under_different_conditions_need_masks(masked: bool) -> None:
    x = placeholder((dim("n", 0, 77),), name="x")
    y = compute(x.shape, lambda i: x[i] * 2.0, name="y")
    state, (_, inner) = State.initial([x, y]).split("y", "i", (16,))
    program = lower(state.vectorize("y", [inner])).run
    split = split_sized_vectors(program, TARGET, masked=masked)
    assert lengths(split) == ([16] if masked else [])
