"""What statements read and write."""

from __future__ import annotations

from ansorpy.codegen.accesses import accesses, buffers_read, buffers_used
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import ReduceKind, Var, as_expr
from ansorpy.ir.loops import AsyncCopy, Instruction, Scope, Seq, Shuffle
from tests.codegen.programs import add_to, at, buffer, put

A, B, C = (buffer(name, 8, 8, dtype=DType.INT64) for name in "ABC")
i, j = Var("i"), Var("j")


def test_buffers_are_found_in_order_of_use_with_whether_they_are_written() -> None:
    body = Seq((put(B, (i, j), at(A, j, i)), add_to(A, (i, j), at(C, i, j))))
    assert list(buffers_used(body).items()) == [(A, True), (B, True), (C, False)]
    assert buffers_read(body) == {A, C}


def test_an_index_that_is_read_counts() -> None:
    store = put(C, (i, at(A, i, j)), at(B, at(A, j, i), j), ReduceKind.MAX)
    *read, written = (found.name for found, _ in accesses(store))
    assert sorted(read) == ["A", "A", "B"] and written == "C"


def test_statements_of_gpus_write_too() -> None:
    first = (as_expr(0), as_expr(0))
    tile = buffer("tile", 8, 8, dtype=DType.INT64, scope=Scope.SHARED)
    assert buffers_used(Shuffle(B, first, at(A, i, j), 1)) == {A: False, B: True}
    assert buffers_used(AsyncCopy(tile, first, at(A, i, j))) == {A: False, tile: True}
    multiply = Instruction("multiply", ((C, first), (A, first), (B, first)))
    assert buffers_used(multiply) == {C: True, A: False, B: False}
    assert [operand for operand, _ in accesses(multiply)] == [C, A, B]
