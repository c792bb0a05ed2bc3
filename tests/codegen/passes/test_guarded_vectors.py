"""Vector loops under guards on sizes: limited by the size, or whole where all lanes are needed."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.codegen.passes.guarded_vectors import guarded_vectors
from ansorpy.codegen.passes.hoist_guards import hoist_guards
from ansorpy.ir.expr import Var, as_expr
from ansorpy.ir.extents import dim
from ansorpy.ir.interpret import run_program
from ansorpy.ir.loops import For, ForKind, If, Program, Seq, walk_stmts
from ansorpy.ir.rewrite.sizes import program_at
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.ir.text.printer import text
from ansorpy.ir.verify import verify
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.codegen.programs import at, buffer, nest, program, put
from tests.run_native import run_native

V3 = Target.parse("x86-64-v3")


def transposed(most: int, tile: int, *, unrolled: int = 4) -> Program:
    """The transpose of an array with up to *most* rows, in vectors of *tile* rows."""
    n = dim("n", 0, most)
    x = placeholder((n, 8), name="x")
    y = compute((8, n), lambda c, i: x[i, c] * 2.0, name="y")
    state, (c0, c1) = State.initial([x, y]).split("y", "c", (unrolled,))
    state, (i0, i1) = state.split("y", "i", (tile,))
    state = state.reorder("y", [c0, i0, c1, i1]).unroll("y", c1).vectorize("y", [i1])
    return lower(state).run


def rewritten(program: Program) -> Program:
    made = guarded_vectors(hoist_guards(program), V3)
    verify(made)
    return made


@pytest.mark.parametrize(("most", "tile"), [(61, 16), (23, 23), (61, 5), (7, 32)])
@pytest.mark.parametrize("n", [0, 1, 5, 7, 16, 23, 61])
def test_every_element_is_computed(most: int, tile: int, n: int) -> None:
    program = transposed(most, tile)
    x = np.random.default_rng(n).random((min(n, most), 8), np.float32)
    here = {program.dims[0]: min(n, most)}
    y = np.full((8, min(n, most)), np.nan, np.float32)
    run_program(program_at(rewritten(program), here), [x, y])
    np.testing.assert_array_equal(y, 2 * x.T)
    [native] = run_native(Lowered(program, None), {"x": x}, sizes=here)
    np.testing.assert_array_equal(native, 2 * x.T)


def vectors(program: Program) -> list[tuple[object, bool]]:
    """The extent of each vector loop, and whether there is a guard in it."""
    loops = (s for s in walk_stmts(program.body) if isinstance(s, For))
    return [
        (s.extent, isinstance(s.body, If)) for s in loops if s.kind is ForKind.VECTORIZED
    ]  # fmt: skip


def test_lanes_are_masked_in_the_last_tile_only() -> None:
    assert vectors(rewritten(transposed(61, 16))) == [(16, False), (16, True)]
    assert "if i.0 * 16 + 15 < n" in text(rewritten(transposed(61, 16)))


def test_a_size_limits_a_single_tile() -> None:
    assert vectors(transposed(13, 32)) == [(32, True)]
    assert vectors(rewritten(transposed(13, 32))) == [(8, False), (8, True)]


@pytest.mark.parametrize("size", [1, 10, 32, 33, 45, 128])
def test_a_guard_that_small_sizes_never_meet_stays_one(size: int) -> None:
    n = dim("n", 1, 128)
    x, y = buffer("x", 64), buffer("y", n)
    i = Var("i")
    filled = For(i, n, ForKind.SERIAL, put(y, (i,), as_expr(-1.0)))
    moved = nest("v64", lambda j: If(j + 32 < as_expr(n), put(y, (j + 32,), at(x, j)), None))
    whole = guarded_vectors(program(Seq((filled, moved)), [x], [y]), V3)
    given, found = np.arange(64, dtype=np.float32), np.zeros(size, np.float32)
    run_program(program_at(whole, dict.fromkeys(whole.dims, size)), [given, found])
    want = np.full(size, -1, np.float32)
    want[32:96] = given[: len(want[32:96])]
    np.testing.assert_array_equal(found, want)


def test_a_program_without_dimensions_stays_the_same_object() -> None:
    x = placeholder((13, 8), name="x")
    y = compute((8, 13), lambda c, i: x[i, c] * 2.0, name="y")
    whole = lower(State.initial([x, y]).vectorize("y", ["i"])).run
    assert guarded_vectors(whole, V3) is whole
