"""Loops over what a thread holds in registers are unrolled, as far as that is sensible."""

from __future__ import annotations

import pytest

from ansorpy.codegen.cuda.emit.program import emit_cuda
from ansorpy.codegen.cuda.passes.unroll_registers import unroll_registers
from ansorpy.errors import CodegenError
from ansorpy.ir.expr import Var
from ansorpy.ir.loops import Alloc, For, ForKind, Let, Program, Scope, Seq, Stmt, walk_stmts
from tests.codegen.cuda.emulator import TARGET
from tests.codegen.programs import at, buffer, program, put

i, j, k, moved = (Var(name) for name in ("i", "j", "k", "moved"))
X, OUT = buffer("x", 4096), buffer("out", 4096)


def kinds(body: Stmt) -> dict[str, ForKind]:
    source = unroll_registers(program(body, [X], [OUT]), TARGET)
    return {s.var.name: s.kind for s in walk_stmts(source.body) if isinstance(s, For)}


def held(extent: int, body: Stmt) -> Stmt:
    own = buffer("own", extent, scope=Scope.LOCAL)
    fill = For(i, extent, ForKind.SERIAL, put(own, (i,), at(X, i)))
    return Alloc(own, Seq((fill, For(k, 9, ForKind.SERIAL, body))))


def test_loops_that_index_registers_are_unrolled_and_others_are_not() -> None:
    own = buffer("own", 8, scope=Scope.LOCAL)
    use = For(j, 4, ForKind.SERIAL, Let(moved, j * 2, put(OUT, (k * 4 + j,), at(own, moved))))
    body = Alloc(own, For(k, 9, ForKind.SERIAL, use))
    assert kinds(body) == {"k": ForKind.SERIAL, "j": ForKind.UNROLLED}


def test_what_does_not_fit_into_registers_is_left_in_memory() -> None:
    assert kinds(held(200, put(OUT, (k,), at(X, k))))["i"] is ForKind.UNROLLED
    assert kinds(held(300, put(OUT, (k,), at(X, k))))["i"] is ForKind.SERIAL


def test_loops_that_would_be_written_out_too_often_stay() -> None:
    own = buffer("own", 200, scope=Scope.LOCAL)
    inner = For(j, 32, ForKind.UNROLLED, put(OUT, (i * 8 + j,), at(own, i) + at(X, j)))
    body = Alloc(own, For(i, 200, ForKind.SERIAL, inner))
    assert kinds(body) == {"i": ForKind.SERIAL, "j": ForKind.UNROLLED}


def unrolled(columns: int) -> Program:
    body = put(OUT, (i * 64 + j % 64,), at(X, i * 64 + j % 64))
    nest = For(i, 64, ForKind.UNROLLED, For(j, columns, ForKind.UNROLLED, body))
    return program(For(k, 2, ForKind.BLOCK_X, nest), [X], [OUT])


def test_kernels_that_are_too_long_once_unrolled_are_refused() -> None:
    emit_cuda(unrolled(64), TARGET, "k")
    with pytest.raises(CodegenError, match="k has 4160 statements after unrolling"):
        emit_cuda(unrolled(65), TARGET, "k")


def test_a_program_without_such_loops_is_the_same_object() -> None:
    source: Program = program(For(i, 9, ForKind.SERIAL, put(OUT, (i,), at(X, i))), [X], [OUT])
    assert unroll_registers(source, TARGET) is source
