"""Squares that are read along one axis and written along the other."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.codegen.llvm.emit.program import emit_llvm
from ansorpy.codegen.llvm.objects.build import assembly
from ansorpy.ir.builders import all_of, minimum, select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Var
from ansorpy.ir.extents import dim
from ansorpy.ir.loops import For, ForKind, Program, Stmt
from ansorpy.target import Target
from tests.budget import pairs
from tests.codegen.programs import F32, Compiled, at, buffer, empty, nest, program, put, random

AVX512 = Target.parse("x86-64-v4")


def transpose(rows: int, columns: int, tall: int, wide: int, dtype: DType = F32) -> Program:
    """``T[c, v] = A[v, c]`` in blocks of *wide* columns by *tall* rows, the last ones shifted."""
    a, t = buffer("A", rows, columns, dtype=dtype), buffer("T", columns, rows, dtype=dtype)

    def block(v0: Var, c0: Var) -> Stmt:
        def element(c1: Var, v1: Var) -> Stmt:
            c, v = minimum(c0 * wide, columns - wide) + c1, minimum(v0 * tall, rows - tall) + v1
            return put(t, (c, v), at(a, v, c))

        return nest(f"u{wide} v{tall}", element)

    return program(nest(f"s{-(-rows // tall)} s{-(-columns // wide)}", block), [a], [t])


def listing(source: Program) -> str:
    return assembly(emit_llvm(source, AVX512, "test"), AVX512)


BLOCKS = [(16, 16), (8, 8), (4, 16), (37, 16), (64, 32), (1, 8)]


@pytest.mark.parametrize(("dtype", "block"), pairs(DType, BLOCKS), ids=str)
def test_every_type_and_shape_of_block(dtype: DType, block: tuple[int, int]) -> None:
    tall, wide = block
    rows, columns = 67, 50
    a, t = random((rows, columns), dtype, seed=tall), empty((columns, rows), dtype)
    Compiled(transpose(rows, columns, tall, wide, dtype))(a, t)
    np.testing.assert_array_equal(t, a.T)


def test_a_square_is_loaded_along_its_rows() -> None:
    text = listing(transpose(64, 48, 16, 16))
    assert "gather" not in text
    assert text.count("unpcklps") == text.count("unpckhps") == 8


def test_a_scalar_beside_a_square_is_no_part_of_it() -> None:
    a, scale, t = buffer("A", 16, 16), buffer("S"), buffer("T", 16, 16)
    body = nest("u16 v16", lambda c, v: put(t, (c, v), at(scale) * at(a, v, c)))
    source = program(body, [a, scale], [t])
    assert "gather" not in listing(source)
    values, factor, found = random((16, 16), seed=1), random((), seed=2), empty((16, 16))
    Compiled(source)(values, factor, found)
    np.testing.assert_array_equal(found, values.T * factor)


def test_squares_of_any_number_of_rows_are_loaded_along_their_rows() -> None:
    rows, n = dim("n", 0, 512), Var("n")
    a, t = buffer("A", rows, 16), buffer("T", 16, rows)
    block = nest("u16 v16", lambda c, v: put(t, (c, n * 16 + v), at(a, n * 16 + v, c)))
    whole = For(n, rows // 16, ForKind.SERIAL, block)
    assert "gather" not in listing(program(whole, [a], [t]))


def test_rows_that_data_choose_are_no_square(rng: np.random.Generator) -> None:
    x, y = buffer("X", 16, 11), buffer("Y", 16, 11)
    chosen = buffer("P", 16, dtype=DType.INT64)
    source = program(
        nest("u16 v11", lambda i, j: put(y, (i, j), at(x, at(chosen, i), j))), [x, chosen], [y]
    )
    data, rows = random((16, 11), F32), rng.integers(0, 16, 16)
    out = empty((16, 11), F32)
    Compiled(source)(data, rows, out)
    np.testing.assert_array_equal(out, data[rows])


def test_what_is_narrower_than_a_vector_is_gathered() -> None:
    assert "gather" in listing(transpose(64, 48, 16, 3))


def test_rows_that_overlap_are_not_squares() -> None:
    """``y[c, v] = x[5 v + c]``: the block reads elements of several lanes' rows twice."""
    x, y = buffer("x", 16 * 5 + 16), buffer("y", 16, 16)
    source = program(nest("u16 v16", lambda c, v: put(y, (c, v), at(x, v * 5 + c))), [x], [y])
    values, out = random((96,)), empty((16, 16))
    Compiled(source)(values, out)
    c, v = np.indices((16, 16))
    np.testing.assert_array_equal(out, values[5 * v + c])


def test_arithmetic_around_the_read_and_a_second_operand_in_order() -> None:
    a, b, t = buffer("A", 24, 16), buffer("B", 16, 24), buffer("T", 16, 24)
    source = program(
        nest("u16 v24", lambda c, v: put(t, (c, v), at(a, v, c) * 2.0 + at(b, c, v))), [a, b], [t]
    )
    x, y, out = random((24, 16)), random((16, 24), seed=1), empty((16, 24))
    Compiled(source)(x, y, out)
    np.testing.assert_allclose(out, x.T * 2 + y, rtol=1e-6)


def test_squares_that_only_some_steps_may_read_whole() -> None:
    """The condition holds at steps 1 to 14 whatever s is; the first and last may read beyond A."""
    a, t = buffer("A", 16, 67), buffer("T", 67, 16)

    def window(s: Var) -> Stmt:
        def element(c: Var, v: Var) -> Stmt:
            at_row = minimum(s * 16, 67 - 16) + c
            inside = all_of(at_row - 1 >= 0, at_row < 67 - 1)
            read = at(a, v, at_row - 1) + at(a, v, at_row + 1)
            return put(t, (at_row, v), select(inside, read, 0.5))

        return nest("u16 v16", element)

    source = program(nest("s5", window), [a], [t])
    assert "unpcklps" not in listing(source)
    x, out = random((16, 67)), empty((67, 16))
    Compiled(source)(x, out)
    want = np.full((67, 16), 0.5, np.float32)
    want[1:-1] = (x[:, :-2] + x[:, 2:]).T
    np.testing.assert_array_equal(out, want)
