"""Register tiles under guards on sizes: computed in full or half, and stored as far as needed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ansorpy.codegen.passes.hoist_guards import hoist_guards
from ansorpy.codegen.passes.promote_accumulators import promote
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.extents import dim
from ansorpy.ir.interpret import run_program
from ansorpy.ir.loops import Alloc, For, If, Program, Stmt, Store, walk_stmts
from ansorpy.ir.rewrite.sizes import program_at
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.ir.verify import verify
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.run_native import run_native

V3 = Target.parse("x86-64-v3")
SIZES = [(0, 3, 5), (1, 1, 1), (2, 0, 7), (5, 13, 0), (7, 16, 31), (13, 17, 2), (23, 41, 11)]
Term = Callable[[Expr, Expr], Expr]


def product(a: Expr, b: Expr) -> Expr:
    return a * b


def tiled(rows: int, lanes: int, term: Term = product, dtype: DType = DType.FLOAT32) -> Program:
    """Products of n x k and k x m in register tiles of *rows* by *lanes*, four terms at a time."""
    n, m, d = (dim(name, 0, 41) for name in "nmd")
    x, w = placeholder((n, d), dtype, name="x"), placeholder((d, m), dtype, name="w")
    k = reduce_axis(d, name="k")
    y = compute((n, m), lambda i, j: sum_over(term(x[i, k], w[k, j]), axis=k), name="y")
    state, (i0, i1) = State.initial([x, w, y]).split("y", "i", (rows,))
    state, (j0, j1) = state.split("y", "j", (lanes,))
    state, (k0, k1) = state.split("y", "k", (4,))
    state = state.reorder("y", [i0, j0, k0, k1, i1, j1])
    return lower(state.unroll("y", i1).vectorize("y", [j1])).run


def promoted(program: Program) -> Program:
    made = promote(hoist_guards(program), V3, in_full=True)
    verify(made)
    return made


def arrays_at(program: Program, sizes: tuple[int, int, int], seed: int) -> dict[str, np.ndarray]:
    rng, (n, m, d) = np.random.default_rng(seed), sizes
    dtype = program.params[0].buffer.dtype.numpy
    shapes = {"x": (n, d), "w": (d, m)}
    return {name: rng.integers(1, 5, shape).astype(dtype) for name, shape in shapes.items()}


@pytest.mark.parametrize(("rows", "lanes"), [(1, 8), (5, 24), (6, 16), (3, 5)])
@pytest.mark.parametrize("sizes", SIZES)
def test_every_size_is_computed(rows: int, lanes: int, sizes: tuple[int, int, int]) -> None:
    program = tiled(rows, lanes)
    data = arrays_at(program, sizes, rows)
    want = data["x"] @ data["w"]
    here = dict(zip(program.dims, (sizes[0], sizes[2], sizes[1]), strict=True))
    assert [d.name for d in program.dims] == ["n", "d", "m"]
    got = np.full_like(want, np.nan)
    run_program(program_at(promoted(program), here), [data["x"], data["w"], got])
    np.testing.assert_array_equal(got, want)
    [native] = run_native(Lowered(program, None), data, sizes=here)
    np.testing.assert_array_equal(native, want)


def sums(s: Stmt) -> list[Store]:
    return [x for x in walk_stmts(s) if isinstance(x, Store) and x.reduce is not None]


def shapes(program: Program) -> list[tuple[object, ...]]:
    return [s.buffer.shape for s in walk_stmts(program.body) if isinstance(s, Alloc)]


def test_no_guard_of_rows_or_lanes_is_left_around_the_sum() -> None:
    made = promoted(tiled(6, 16))
    inner = [s for s in walk_stmts(made.body) if isinstance(s, For) and sums(s)]
    guards = [s for loop in inner for s in walk_stmts(loop) if isinstance(s, If)]
    around = {str(s.cond) for s in guards if sums(s)}
    loops = [loop for loop in inner if loop.var.name.startswith("i.1")]
    assert loops and not any(isinstance(s, If) for loop in loops for s in walk_stmts(loop))
    assert around


def test_halves_are_of_whole_vectors_and_of_enough_rows() -> None:
    assert shapes(promoted(tiled(6, 32))) == [(6, 32), (6, 16), (6, 8), (3, 8)]
    assert shapes(promoted(tiled(4, 5))) == [(4, 5)]


def guards_around_sums(program: Program) -> int:
    return sum(isinstance(s, If) and bool(sums(s)) for s in walk_stmts(program.body))


def test_integers_are_divided_also_by_zeros_that_were_not_loaded() -> None:
    program = tiled(4, 8, lambda a, b: a // b, DType.INT32)
    made, products = promoted(program), promoted(tiled(4, 8, dtype=DType.INT32))
    assert shapes(made) == shapes(products)
    assert guards_around_sums(made) == guards_around_sums(products)
    sizes = (5, 13, 7)
    data = arrays_at(program, sizes, 3)
    here = dict(zip(program.dims, (5, 7, 13), strict=True))
    [native] = run_native(Lowered(program, None), data, sizes=here)
    want = (data["x"][:, :, None] // data["w"][None]).sum(1)
    np.testing.assert_array_equal(native, want)


def test_without_the_option_guards_stay() -> None:
    program = tiled(6, 16)
    made = promote(program, V3)
    [inner] = sums(made.body)
    assert any(isinstance(s, If) and inner in walk_stmts(s.then) for s in walk_stmts(made.body))


def test_a_tile_that_is_too_large_is_computed_in_parts() -> None:
    n = dim("n", 1, 31)
    x, w = placeholder((7, n), name="x"), placeholder((15, 7), name="w")
    k = reduce_axis(7, name="k")
    y = compute((15, n), lambda i, j: sum_over(w[i, k] * x[k, j], axis=k), name="y")
    z = compute((15, n), lambda i, j: y[i, j] + 1.0, name="z")
    state, (outer, inner) = State.initial([w, x, z]).split("z", "j", (65,))
    state = state.reorder("z", [outer, "i", inner]).vectorize("z", [inner])
    state, (_, lanes) = state.compute_at("y", "z", outer).split("y", "j", (65,))
    state = state.reorder("y", ["k", "i", "j.0", lanes]).unroll("y", "i").vectorize("y", [lanes])
    lowered, rng = lower(state), np.random.default_rng(0)
    for size in (1, 16, 30, 31):
        data = {"x": rng.random((7, size), np.float32), "w": rng.random((15, 7), np.float32)}
        [native] = run_native(lowered, data, sizes={lowered.run.dims[0]: size})
        np.testing.assert_allclose(native, data["w"] @ data["x"] + 1, rtol=1e-5)
