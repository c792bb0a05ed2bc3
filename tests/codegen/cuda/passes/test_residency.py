"""How many blocks of a kernel the assembler has to leave registers for."""

from __future__ import annotations

import re

import pytest

from ansorpy.codegen.cuda.device.build import build_cuda
from ansorpy.codegen.cuda.device.nvrtc import compile_source
from ansorpy.codegen.cuda.emit import program as emit
from ansorpy.codegen.cuda.emit.program import emit_cuda
from ansorpy.codegen.cuda.passes.residency import operands_of
from ansorpy.ir.expr import ReduceKind, Var
from ansorpy.ir.loops import Alloc, For, ForKind, Program, Scope, Seq, Stmt
from tests.codegen.cuda.compiling import needs_nvrtc
from tests.codegen.cuda.emulator import TARGET
from tests.codegen.programs import ZERO, at, buffer, program, put

t, i, j, k = (Var(name) for name in "tijk")


def holding(threads: int, sums: int, shared: int = 1) -> Program:
    """A kernel whose threads hold *sums* elements, and a block *shared* in shared memory."""
    x, out = buffer("x", threads, sums), buffer("out", threads, sums)
    own = buffer("own", sums, scope=Scope.LOCAL)
    tile = buffer("tile", shared, scope=Scope.SHARED)
    fill = For(i, sums, ForKind.UNROLLED, put(own, (i,), at(x, t, i)))
    store = For(i, sums, ForKind.UNROLLED, put(out, (t, i), at(own, i)))
    body = Alloc(tile, Alloc(own, Seq((put(tile, (0,), at(x, t, 0)), fill, store))))
    return program(For(t, threads, ForKind.THREAD_X, body), [x], [out])


@pytest.mark.parametrize(
    ("threads", "sums", "shared", "bounds"),
    [
        (256, 64, 1, "256, 2"),  # 120 registers each
        (256, 128, 1, "256"),  # one block takes more than half of them
        (128, 128, 1, "128, 2"),
        (128, 64, 20_000, "128, 2"),  # 80,000 bytes
        (128, 64, 40_000, "128"),
        (256, 16, 1, "256"),  # there are enough anyway
    ],
)
def test_bounds_are_those_of_registers_and_shared_memory(
    threads: int, sums: int, shared: int, bounds: str
) -> None:
    text = emit_cuda(holding(threads, sums, shared), TARGET, "k").kernels
    found = re.search(r"__launch_bounds__\((.*?)\)", text)
    assert found is not None and found[1] == bounds


def tile(rows: int, columns: int, body: Stmt) -> Stmt:
    return For(i, rows, ForKind.UNROLLED, For(j, columns, ForKind.UNROLLED, body))


def product(rows: int, columns: int, *, along: bool) -> Program:
    """A thread's tile of sums; *along*: the rows of x are as long as the reduction."""
    x = buffer("x.shared", *((rows, 8) if along else (8, rows)), scope=Scope.SHARED)
    y = buffer("y.shared", 8, columns, scope=Scope.SHARED)
    given = buffer("given", 256)
    own, out = buffer("own", rows, columns, scope=Scope.LOCAL), buffer("out", 256, rows, columns)
    a = at(x, i, k) if along else at(x, k, i)
    add = put(own, (i, j), a * at(y, k, j), ReduceKind.SUM)
    sums = For(k, 8, ForKind.UNROLLED, tile(rows, columns, add))
    clear, store = put(own, (i, j), ZERO), put(out, (t, i, j), at(own, i, j))
    filled = (put(x, (0, t % 8), at(given, t)), put(y, (t % 8, 0), at(given, t)))
    parts = (*filled, tile(rows, columns, clear), sums, tile(rows, columns, store))
    body = Alloc(x, Alloc(y, Alloc(own, Seq(parts))))
    return program(For(t, 256, ForKind.THREAD_X, body), [given], [out])


@pytest.mark.parametrize(
    ("rows", "columns", "along", "operands"),
    [(8, 8, True, 40), (8, 8, False, 16), (16, 4, True, 68)],
)
def test_operands_are_those_of_one_load(
    rows: int, columns: int, along: bool, operands: int
) -> None:
    """Four steps at once where rows are loaded along the reduction."""
    assert operands_of(product(rows, columns, along=along).body) == operands


def test_what_virtual_threads_share_counts_once() -> None:
    """Of four virtual threads two read the same rows of x, and two the same columns of y."""
    x, y = buffer("x.shared", 16, 8, scope=Scope.SHARED), buffer("y.shared", 16, 8)
    own = buffer("own", 4, 2, 2, scope=Scope.LOCAL)
    reads = at(x, k, t // 2 * 4 + i) * at(y, k, t % 2 * 4 + j)
    add = put(own, (t, i, j), reads, ReduceKind.SUM)
    nest = For(k, 16, ForKind.UNROLLED, For(t, 4, ForKind.UNROLLED, tile(2, 2, add)))
    assert operands_of(nest) == 2 * 2 + 2 * 2


@needs_nvrtc
def test_a_kernel_that_would_spill_has_fewer_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit, "blocks_at_once", lambda *_: 4)
    made = product(8, 15, along=True)
    _, report = compile_source(emit_cuda(made, TARGET, "k").text, TARGET)
    assert " 0 bytes spill stores" not in report
    code = build_cuda(made, TARGET, symbol="k")
    assert "__launch_bounds__(256)" in code.source and not code.resources[0].spilled_bytes


def test_a_single_sum_has_the_operands_of_its_steps() -> None:
    x, own = buffer("x", 8), buffer("own", 1, scope=Scope.LOCAL)
    body = For(k, 8, ForKind.UNROLLED, put(own, (0,), at(x, k), ReduceKind.MAX))
    assert operands_of(Alloc(own, body)) == 1
