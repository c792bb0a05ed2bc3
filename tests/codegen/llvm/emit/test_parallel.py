"""Parallel regions, workspace, scratch, control flow: programs that are more than one nest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ansorpy.codegen.llvm.emit.functions import TEAM
from ansorpy.codegen.llvm.emit.program import emit_llvm
from ansorpy.errors import CodegenError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Var, const
from ansorpy.ir.loops import (
    Alloc,
    Async,
    Barrier,
    Buffer,
    For,
    ForKind,
    If,
    Let,
    Scope,
    Seq,
    Stmt,
    Wait,
)
from ansorpy.target import Target
from tests.codegen.programs import (
    ZERO,
    Compiled,
    add_to,
    at,
    buffer,
    empty,
    nest,
    program,
    put,
    random,
)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("loops", ["p1 s3 v5", "p2 p3 v5", "p5 p1 p3 v4", "p13 v3", "s3 p4 v5"])
def test_every_iteration_runs_once(loops: str, threads: int) -> None:
    shape = [int(word[1:]) for word in loops.split()]
    y = buffer("y", *shape)
    body = nest(loops, lambda *i: add_to(y, i, const(1.0, DType.FLOAT32)))
    out = np.zeros(shape, np.float32)
    Compiled(program(body, [], [y]))(out, threads=threads)
    np.testing.assert_array_equal(out, np.ones(shape))


@pytest.mark.parametrize("threads", [1, 4])
def test_two_regions_with_a_workspace_between(threads: int) -> None:
    x, y = buffer("x", 12, 33), buffer("y", 33, 12)
    between = buffer("t", 12, 33, scope=Scope.WORKSPACE)
    body = Alloc(between, Seq((
        nest("p12 v33", lambda i, j: put(between, (i, j), at(x, i, j) * 2.0)),
        nest("p33 v12", lambda i, j: put(y, (i, j), at(between, j, i) + 1.0)),
    )))  # fmt: skip
    source, out = random((12, 33)), empty((33, 12))
    Compiled(program(body, [x], [y]))(source, out, threads=threads)
    np.testing.assert_array_equal(out, source.T * 2 + 1)


@pytest.mark.parametrize("size", [7, 3000])
@pytest.mark.parametrize("threads", [1, 3])
def test_locals_are_private_to_each_thread(size: int, threads: int) -> None:
    x, y = buffer("x", 9, size), buffer("y", 9, size)
    tile = buffer("tile", size, scope=Scope.LOCAL)
    body = nest("p9", lambda i: Alloc(tile, Seq((
        nest(f"s{size}", lambda j: put(tile, (j,), at(x, i, j) + 1.0)),
        nest(f"v{size}", lambda j: put(y, (i, (size - 1) - j), at(tile, j))),
    ))))  # fmt: skip
    kernel = Compiled(program(body, [x], [y]))
    assert bool(kernel.object.thread_bytes) == (size > 1024)
    source, out = random((9, size)), empty((9, size))
    kernel(source, out, threads=threads)
    np.testing.assert_array_equal(out, source[:, ::-1] + 1)


def test_a_region_sees_the_variables_around_it() -> None:
    y = buffer("y", 3, 4, 5, dtype=DType.INT64)
    twice = Var("twice")
    body = nest("s3", lambda i: Let(twice, i * 2, nest(
        "p4 s5", lambda j, k: put(y, (i, j, k), twice * 100 + j * 10 + k))))  # fmt: skip
    out = empty((3, 4, 5), DType.INT64)
    Compiled(program(body, [], [y]))(out, threads=2)
    i, j, k = np.indices((3, 4, 5))
    np.testing.assert_array_equal(out, i * 200 + j * 10 + k)


def test_parallel_inside_parallel_runs_serially() -> None:
    y = buffer("y", 3, 4)
    body = nest("p3", lambda i: Seq((
        nest("p4", lambda j: put(y, (i, j), ZERO)),
        nest("p4", lambda j: add_to(y, (i, j), const(2.0, DType.FLOAT32))),
    )))  # fmt: skip
    out = empty((3, 4))
    Compiled(program(body, [], [y]))(out, threads=2)
    np.testing.assert_array_equal(out, np.full((3, 4), 2))


@pytest.mark.parametrize("kind", "suv")
def test_if_with_else(kind: Any) -> None:
    y = buffer("y", 20)
    one, two = const(1.0, DType.FLOAT32), const(2.0, DType.FLOAT32)
    body = nest(f"{kind}20", lambda i: If(i % 3 < 2, put(y, (i,), one), put(y, (i,), two)))
    out = empty((20,))
    Compiled(program(body, [], [y]))(out)
    np.testing.assert_array_equal(out, np.where(np.arange(20) % 3 < 2, 1, 2))


def test_one_thread_code_refers_to_no_library() -> None:
    y = buffer("y", 4)
    text = emit_llvm(program(nest("s4", lambda i: put(y, (i,), ZERO)), [], [y]), Target.host(), "k")
    assert TEAM not in text


@pytest.mark.parametrize("kind", [ForKind.BLOCK_X, ForKind.THREAD_X, ForKind.VTHREAD])
def test_gpu_loops_are_refused(kind: Any) -> None:
    y = buffer("y", 4)
    i = Var("i")
    with pytest.raises(CodegenError, match="has no meaning on a CPU"):
        emit_llvm(program(For(i, 4, kind, put(y, (i,), ZERO)), [], [y]), Target.host(), "k")


def test_what_only_threads_of_a_gpu_can_run_is_refused() -> None:
    with pytest.raises(CodegenError, match=r'threads of a GPU block can run "barrier\(shared\)"'):
        emit_llvm(program(Barrier(Scope.SHARED), [], []), Target.host(), "k")
    with pytest.raises(CodegenError, match=r'threads of a GPU block can run "wait_copies\(1\)"'):
        emit_llvm(program(Wait(Async.COPIES, 1), [], []), Target.host(), "k")


def test_a_local_shared_by_lanes_is_refused() -> None:
    tile, y = buffer("tile", 1, scope=Scope.LOCAL), buffer("y", 8)
    body = nest("v8", lambda i: Alloc(tile, Seq((
        put(tile, (0,), ZERO), put(y, (i,), at(tile, 0))))))  # fmt: skip
    with pytest.raises(CodegenError, match="whose lanes would share it"):
        emit_llvm(program(body, [], [y]), Target.host(), "k")


@pytest.mark.parametrize("shares", [True, False])
def test_workspaces_that_share_bytes_are_not_said_to_be_apart(shares: bool) -> None:
    x, y, z = (buffer(name, 16) for name in "xyz")
    a, b = (buffer(name, 16, scope=Scope.WORKSPACE) for name in "ab")

    def through(held: Buffer, out: Buffer) -> Seq:
        fill = nest("s16", lambda i: put(held, (i,), at(x, i)))
        return Seq((fill, nest("s16", lambda i: put(out, (i,), at(held, 15 - i)))))

    parts = through(a, y), through(b, z)
    body: Stmt = Alloc(a, Alloc(b, Seq(parts)))
    if shares:
        body = Seq((Alloc(a, parts[0]), Alloc(b, parts[1])))
    text = emit_llvm(program(body, [x], [y, z]), Target.parse("x86-64-v3"), "k")
    head = text[text.index("define internal void @k.main(") :].partition("\n")[0]
    for name in ("%shared0", "%shared1"):
        [parameter] = [part for part in head.split(", ") if name in part]
        assert ("noalias" in parameter) is not shares
