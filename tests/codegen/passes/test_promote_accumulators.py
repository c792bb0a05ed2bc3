"""Which reductions accumulate in a local tile, and what the program looks like then."""

from __future__ import annotations

from typing import Any

import pytest

from ansorpy.codegen.passes.promote_accumulators import promote
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Load, ReduceKind, as_expr
from ansorpy.ir.loops import (
    Alloc,
    Buffer,
    If,
    Program,
    Scope,
    Seq,
    Shuffle,
    Stmt,
    Store,
    walk_stmts,
)  # fmt: skip
from ansorpy.target import Target
from tests.codegen.programs import ZERO, add_to, at, buffer, nest, program, put

V4 = Target.parse("x86-64-v4")


def promoted(body: Stmt, *buffers: Buffer) -> Program:
    return promote(program(body, buffers[:-1], buffers[-1:]), V4)


def tiles(whole: Program) -> list[Buffer]:
    return [s.buffer for s in walk_stmts(whole.body) if isinstance(s, Alloc)]


def stores_to(whole: Program, target: Buffer) -> list[Store]:
    return [s for s in walk_stmts(whole.body) if isinstance(s, Store) and s.buffer is target]


def test_the_initial_store_is_taken_over() -> None:
    a, c = buffer("A", 8, 64), buffer("C", 8, 32)
    body = Seq((
        nest("u4 v32", lambda i, j: put(c, (i, j), ZERO)),
        nest("s64 u4 v32", lambda k, i, j: add_to(c, (i, j), at(a, i, k))),
    ))  # fmt: skip
    whole = promoted(body, a, c)
    [tile] = tiles(whole)
    assert (tile.shape, tile.scope) == ((4, 32), Scope.LOCAL)
    [final] = stores_to(whole, c)
    assert final.reduce is None
    assert isinstance(final.value, Load) and final.value.source is tile


@pytest.mark.parametrize("init", ["u4 v16", "u3 v32", "s4 u2 v32"])
def test_an_initial_store_of_another_region_stays(init: str) -> None:
    a, c = buffer("A", 8, 64), buffer("C", 8, 64)
    body = Seq((
        nest(init, lambda *i: put(c, (i[0], i[-1]), ZERO)),
        nest("s64 u4 v32", lambda k, i, j: add_to(c, (i, j), at(a, i, k))),
    ))  # fmt: skip
    whole = promoted(body, a, c)
    assert len(tiles(whole)) == 1
    assert len(stores_to(whole, c)) == 2


def test_without_initial_store_the_tile_starts_from_memory() -> None:
    a, c = buffer("A", 8, 64), buffer("C", 8, 32)
    whole = promoted(nest("s64 u4 v32", lambda k, i, j: add_to(c, (i, j), at(a, i, k))), a, c)
    [tile] = tiles(whole)
    first = stores_to(whole, tile)[0]
    assert isinstance(first.value, Load) and first.value.source is c


def test_the_outermost_reduce_loop_carries_the_tile() -> None:
    a, c = buffer("A", 8, 8, 8), buffer("C", 4, 32)
    whole = promoted(
        nest("s8 s8 s8 u4 v32", lambda x, y, z, i, j: add_to(c, (i, j), at(a, x, y, z))), a, c
    )
    assert isinstance(whole.body, Alloc)


def test_a_serial_space_loop_between_reduce_loops_limits_the_tile() -> None:
    a, c = buffer("A", 8, 8), buffer("C", 16, 32)
    whole = promoted(
        nest("s8 s4 s8 u4 v32", lambda x, s, y, i, j: add_to(c, (s * 4 + i, j), at(a, x, y))), a, c
    )
    [tile] = tiles(whole)
    assert tile.shape == (4, 32)
    assert not isinstance(whole.body, Alloc)


def test_a_tile_over_the_register_file_moves_inwards() -> None:
    a, c = buffer("A", 8, 8), buffer("C", 64, 32)
    whole = promoted(
        nest("s8 u8 s8 u8 v32", lambda x, s, y, i, j: add_to(c, (s * 8 + i, j), at(a, x, y))), a, c
    )
    [tile] = tiles(whole)
    assert tile.shape == (8, 32)


@pytest.mark.parametrize(
    "body",
    [
        lambda a, c: nest("s8 s4 v8", lambda k, i, j: add_to(c, (i, j), at(a, k))),
        lambda a, c: nest("u4 v8", lambda i, j: add_to(c, (i, j), at(a, i))),
        lambda a, c: nest("s8 u4 u4", lambda k, i, j: add_to(c, (i + j, 0), at(a, k))),
        lambda a, c: nest("s8 u4 v4", lambda k, i, j: add_to(c, (i, j), at(c, i, k))),
        lambda a, c: nest("s8 u33 v32", lambda k, i, j: add_to(c, (i, j), at(a, k))),
        lambda a, c: nest(
            "s8",
            lambda k: Seq(
                (
                    nest("u4", lambda i: add_to(c, (i, 0), at(a, k))),
                    Shuffle(c, (as_expr(0), as_expr(0)), at(a, k), 1),
                )
            ),
        ),
    ],
    ids=[
        "serial space loop",
        "no reduce loop",
        "overlapping",
        "reads itself",
        "too large",
        "written by another statement",
    ],
)
def test_what_is_left_in_memory(body: Any) -> None:
    a, c = buffer("A", 8), buffer("C", 33, 32)
    whole = program(body(a, c), [a], [c])
    assert promote(whole, V4) is whole


def test_a_guard_that_holds_still_guards_the_tile_too() -> None:
    a, c = buffer("A", 8), buffer("C", 10, 32)
    body = nest("s3", lambda t: nest("s8 u4 v32", lambda k, i, j: If(
        t * 4 + i < 10, add_to(c, (t * 4 + i, j), at(a, k)), None)))  # fmt: skip
    whole = promoted(body, a, c)
    assert len(tiles(whole)) == 1
    assert sum(isinstance(s, If) for s in walk_stmts(whole.body)) == 3


def test_a_guard_on_the_reduced_index_stays_inside() -> None:
    a, c = buffer("A", 8), buffer("C", 4, 32)
    body = nest("s3 s4 u4 v32", lambda x, y, i, j: If(
        x * 4 + y < 8, add_to(c, (i, j), at(a, x * 4 + y)), None))  # fmt: skip
    whole = promoted(body, a, c)
    assert len(tiles(whole)) == 1
    assert sum(isinstance(s, If) for s in walk_stmts(whole.body)) == 1


def test_lanes_of_a_reduced_loop_accumulate_apart() -> None:
    a, c = buffer("A", 4, 8, 32), buffer("C", 4)
    body = nest("s4", lambda i: nest(
        "s8 v32", lambda k, j: put(c, (i,), at(a, i, k, j), ReduceKind.MAX)))  # fmt: skip
    whole = promoted(body, a, c)
    [tile] = tiles(whole)
    assert tile.shape == (32,)
    [final] = stores_to(whole, c)
    assert final.reduce is ReduceKind.MAX


def test_sixteen_bit_sums_are_kept_in_float32() -> None:
    a, c = buffer("A", 8, dtype=DType.FLOAT16), buffer("C", 32, dtype=DType.FLOAT16)
    whole = promoted(nest("s8 v32", lambda k, j: add_to(c, (j,), at(a, k))), a, c)
    assert tiles(whole)[0].dtype is DType.FLOAT32


def test_a_local_tile_that_is_in_registers_anyway_is_not_copied() -> None:
    a, c = buffer("A", 8), buffer("C", 32)
    tile = buffer("tile", 32, scope=Scope.LOCAL)
    whole = program(
        Alloc(tile, Seq((
            nest("v32", lambda j: put(tile, (j,), ZERO)),
            nest("s8 v32", lambda k, j: add_to(tile, (j,), at(a, k))),
            nest("v32", lambda j: put(c, (j,), at(tile, j))),
        ))), [a], [c])  # fmt: skip
    assert promote(whole, V4) is whole
