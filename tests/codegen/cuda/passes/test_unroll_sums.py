"""Loops that sum up are unrolled, in whole or in part, and compute the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers

from ansorpy.codegen.cuda.passes.unroll_sums import (
    MOST_PRODUCTS,
    MOST_STEPS,
    longest_bodies,
    steps_at_once,
)
from ansorpy.ir.expr import ReduceKind, Var
from ansorpy.ir.interpret import run_program
from ansorpy.ir.loops import Alloc, Barrier, For, ForKind, Program, Scope, Seq, Stmt, walk_stmts
from tests.budget import examples
from tests.codegen.programs import ZERO, at, buffer, program, put

i, j, k, r = (Var(name) for name in "ijkr")
SERIAL, UNROLLED = ForKind.SERIAL, ForKind.UNROLLED


def product(rows: int, columns: int, steps: int, windows: int = 1) -> Program:
    """A thread's tile of sums over *steps* times *windows*."""
    x, y = buffer("x", rows, steps + windows), buffer("y", steps, windows, columns)
    out = buffer("out", rows, columns)
    own = buffer("own", rows, columns, scope=Scope.LOCAL)

    def tile(body: Stmt) -> Stmt:
        return For(i, rows, UNROLLED, For(j, columns, UNROLLED, body))

    add = put(own, (i, j), at(x, i, k + r) * at(y, k, r, j), ReduceKind.SUM)
    sums = For(k, steps, SERIAL, For(r, windows, SERIAL, tile(add)))
    body = Seq((tile(put(own, (i, j), ZERO)), sums, tile(put(out, (i, j), at(own, i, j)))))
    return program(For(Var("t"), 1, ForKind.THREAD_X, Alloc(own, body)), [x, y], [out])


def loops(source: Program) -> dict[str, tuple[int, ForKind]]:
    found = longest_bodies(source).body
    return {
        s.var.name: (s.extent, s.kind)
        for s in walk_stmts(found)
        if isinstance(s, For) and s.var.name[0] in "kr"
    }


def test_a_short_reduction_becomes_one_body() -> None:
    assert loops(product(8, 8, 16)) == {"k": (16, UNROLLED), "r": (1, UNROLLED)}


def test_of_a_long_one_several_steps_do() -> None:
    assert loops(product(8, 8, 64)) == {
        "k.outer": (4, SERIAL), "k.inner": (16, UNROLLED), "r": (1, UNROLLED),
    }  # fmt: skip
    assert loops(product(1, 2, 96))["k.inner"] == (MOST_STEPS, UNROLLED)


def test_windows_are_unrolled_before_the_loops_around_them() -> None:
    found = loops(product(4, 4, 64, 9))
    assert found == {"k.outer": (32, SERIAL), "k.inner": (2, UNROLLED), "r": (9, UNROLLED)}


def test_a_tile_that_fills_a_body_stays() -> None:
    assert loops(product(32, MOST_PRODUCTS // 32, 8)) == {
        "k": (8, SERIAL), "r": (1, UNROLLED),
    }  # fmt: skip


@pytest.mark.parametrize("inside", ["barrier", "plain", "shared"])
def test_loops_that_do_other_things_stay(inside: str) -> None:
    x, out = buffer("x", 8), buffer("out", 8)
    tile = buffer("tile", 8, scope=Scope.SHARED)
    bodies: dict[str, Stmt] = {
        "barrier": Seq((Barrier(Scope.SHARED), put(out, (k,), at(x, k), ReduceKind.SUM))),
        "plain": put(out, (k,), at(x, k)),
        "shared": put(tile, (k,), at(x, k), ReduceKind.SUM),
    }
    nest = For(Var("t"), 1, ForKind.THREAD_X, Alloc(tile, For(k, 8, SERIAL, bodies[inside])))
    source = program(nest, [x], [out])
    assert longest_bodies(source) is source


@pytest.mark.parametrize(("extent", "most", "found"), [(16, 16, 16), (21, 16, 7), (13, 12, 1)])
def test_bodies_divide_loops(extent: int, most: int, found: int) -> None:
    assert steps_at_once(extent, most) == found


@examples(20)
@given(integers(1, 3), integers(1, 40), integers(1, 70), integers(1, 4), integers(0, 2**31))
def test_the_sums_are_the_same(
    rows: int, columns: int, steps: int, windows: int, seed: int
) -> None:
    source = product(rows, columns, steps, windows)
    rng = np.random.default_rng(seed)
    given_arrays = [rng.standard_normal(p.buffer.shape).astype(np.float32) for p in source.params]
    results = []
    for made in (source, longest_bodies(source)):
        arrays = [a.copy() for a in given_arrays]
        run_program(made, arrays)
        results.append(arrays[-1])
    np.testing.assert_array_equal(results[0], results[1])
