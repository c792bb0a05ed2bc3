"""The generated text itself computes what the interpreter does, run on the host by g++."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ansorpy.codegen.cuda.emit.program import emit_cuda
from ansorpy.ir.builders import select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Load, ReduceKind, Var, as_expr
from ansorpy.ir.interpret import run_program
from ansorpy.ir.loops import (
    Alloc,
    Async,
    AsyncCopy,
    Barrier,
    Commit,
    For,
    ForKind,
    If,
    Program,
    Scope,
    Seq,
    Shuffle,
    Stmt,
    Store,
    Wait,
)
from ansorpy.ir.rewrite.rewriter import Rewriter
from tests.budget import some
from tests.codegen.cuda.emulator import TARGET, Emulated, emulate, needs_compiler
from tests.codegen.programs import at, buffer, empty, program, put, random
from tests.codegen.random_programs import RandomProgram
from tests.codegen.test_random_programs import arguments

pytestmark = needs_compiler
SEEDS = some(range(48))
bx, tx, ty, k = (Var(name) for name in ("bx", "tx", "ty", "k"))
_SUM = ReduceKind.SUM
SYNC = Barrier(Scope.SHARED)


class _OnBlocks(Rewriter):
    """Parallel loops as blocks."""

    def stmt(self, s: Stmt) -> Stmt:
        new = super().stmt(s)
        if isinstance(new, For) and new.kind is ForKind.PARALLEL:
            return For(new.var, new.extent, ForKind.BLOCK_X, new.body)
        return new


@pytest.fixture(scope="module")
def random_programs(tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    made = {f"random{seed}": RandomProgram(seed).build() for seed in SEEDS}
    on_blocks = {name: p.with_body(_OnBlocks().stmt(p.body)) for name, p in made.items()}
    return emulate(on_blocks, tmp_path_factory.mktemp("random"))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs_equal_the_interpreter(random_programs: Emulated, seed: int) -> None:
    source = random_programs.programs[f"random{seed}"]
    want, got = arguments(source, seed), arguments(source, seed)
    run_program(source, want)
    random_programs(f"random{seed}", got)
    for expected, found in zip(want, got, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def grid(body: Stmt, blocks: int, threads: int) -> Stmt:
    return For(bx, blocks, ForKind.BLOCK_X, For(tx, threads, ForKind.THREAD_X, body))


X, OUT = buffer("x", 3, 96), buffer("out", 3, 96)
TILE, OWN = buffer("tile", 96, scope=Scope.SHARED), buffer("own", 1, scope=Scope.LOCAL)


def reversed_rows(*, barrier: bool) -> Program:
    """Each block reverses its row through shared memory."""
    fill, drain = put(TILE, (tx,), at(X, bx, tx)), put(OUT, (bx, tx), at(TILE, 95 - tx))
    body = Seq((fill, SYNC, drain) if barrier else (fill, drain))
    return program(grid(Alloc(TILE, body), 3, 96), [X], [OUT])


def test_threads_exchange_values_through_shared_memory(tmp_path: Path) -> None:
    x, out = random((3, 96)), empty((3, 96))
    emulate({"rows": reversed_rows(barrier=True)}, tmp_path)("rows", [x, out])
    np.testing.assert_array_equal(out, x[:, ::-1])


def test_a_missing_barrier_shows(tmp_path: Path) -> None:
    x, out = random((3, 96)), empty((3, 96))
    emulate({"rows": reversed_rows(barrier=False)}, tmp_path)("rows", [x, out])
    assert not np.array_equal(out, x[:, ::-1])


def test_a_barrier_that_some_threads_miss_shows(tmp_path: Path) -> None:
    some = If(tx < 40, SYNC, None)
    source = program(grid(Seq((some, put(OUT, (bx, tx), at(X, bx, tx)))), 3, 96), [X], [OUT])
    with pytest.raises(AssertionError, match="wait for each other in different places"):
        emulate({"some": source}, tmp_path)("some", [random((3, 96)), empty((3, 96))])


@pytest.mark.parametrize("distance", [1, 4, 16])
def test_threads_of_a_warp_exchange_registers(distance: int, tmp_path: Path) -> None:
    body = Seq((Shuffle(OWN, (as_expr(0),), at(X, bx, tx) * 2.0, distance),
                put(OUT, (bx, tx), at(OWN, 0))))  # fmt: skip
    source = program(grid(Alloc(OWN, body), 3, 96), [X], [OUT])
    x, want, got = random((3, 96)), empty((3, 96)), empty((3, 96))
    run_program(source, [x, want])
    np.testing.assert_array_equal(want, 2 * x[:, np.arange(96) ^ distance])
    emulate({"exchange": source}, tmp_path)("exchange", [x, got])
    np.testing.assert_array_equal(got, want)


def two_kernels() -> Program:
    """Row sums by one kernel, their squares by a single thread, what is left by another."""
    total, square = (
        buffer("total", 3, scope=Scope.WORKSPACE),
        buffer("square", scope=Scope.WORKSPACE),
    )
    acc, i = buffer("acc", 1, scope=Scope.LOCAL), Var("i")
    row = Seq((
        put(acc, (0,), at(X, bx, 0) * 0.0),
        For(k, 96, ForKind.SERIAL, put(acc, (0,), at(X, bx, k), _SUM)),
        put(total, (bx,), at(acc, 0)),
    ))  # fmt: skip
    sums = For(bx, 3, ForKind.BLOCK_X, For(ty, 1, ForKind.THREAD_Y, Alloc(acc, row)))
    one = Seq((
        put(square, (), at(total, 0) * at(total, 0)),
        For(i, 2, ForKind.SERIAL, Store(square, (), at(total, i + 1) * at(total, i + 1), _SUM)),
    ))  # fmt: skip
    rest = grid(put(OUT, (bx, tx), at(X, bx, tx) - at(total, bx) + Load(square, ())), 3, 96)
    body = Alloc(total, Seq((sums, Alloc(square, Seq((one, rest))))))
    return program(body, [X], [OUT])


def test_kernels_hand_over_what_they_computed(tmp_path: Path) -> None:
    source = two_kernels()
    emulated = emulate({"several": source}, tmp_path)
    plan = emulated.plans["several"]
    assert [launch.grid[0] for launch in plan.launches] == [3, 1, 3]
    assert [launch.threads for launch in plan.launches] == [1, 1, 96]
    assert plan.workspace_bytes == 512
    x, want, got = random((3, 96)), empty((3, 96)), empty((3, 96))
    run_program(source, [x, want])
    emulated("several", [x, got])
    np.testing.assert_allclose(got, want, rtol=1e-5)


def first_thread_prepares() -> Program:
    """The first thread of a block writes what all of them read after a barrier."""
    scale = buffer("scale", 1, scope=Scope.SHARED)
    use = For(tx, 96, ForKind.THREAD_X, put(OUT, (bx, tx), at(X, bx, tx) * at(scale, 0)))
    body = Alloc(scale, Seq((put(scale, (0,), at(X, bx, 5)), SYNC, use)))
    return program(For(bx, 3, ForKind.BLOCK_X, body), [X], [OUT])


def fewer_threads() -> Program:
    """Two thread loops of different extents in one kernel."""
    other = Var("other")
    fill = For(tx, 96, ForKind.THREAD_X, put(TILE, (tx,), at(X, bx, tx) + 1.0))
    drain = For(other, 32, ForKind.THREAD_X, For(k, 3, ForKind.SERIAL, put(
        OUT, (bx, k * 32 + other), at(TILE, other * 3 + k))))  # fmt: skip
    return program(For(bx, 3, ForKind.BLOCK_X, Alloc(TILE, Seq((fill, SYNC, drain)))), [X], [OUT])


def first_thread_copies() -> Program:
    """The first thread of a block sums up a row in vectors; a condition that all share."""
    inner = Var("inner")
    add = For(inner, 96, ForKind.VECTORIZED, put(TILE, (inner,), at(X, bx, inner), _SUM))
    clear = For(k, 96, ForKind.VECTORIZED, put(TILE, (k,), at(X, 0, k)))
    use = For(tx, 96, ForKind.THREAD_X, put(OUT, (bx, tx), at(TILE, tx)))
    some = If(at(X, bx, 0) < 0.3, add, None)
    body = Alloc(TILE, Seq((clear, some, SYNC, use)))
    return program(For(bx, 3, ForKind.BLOCK_X, body), [X], [OUT])


@pytest.mark.parametrize("make", [first_thread_prepares, first_thread_copies, fewer_threads])
def test_statements_are_done_by_the_threads_that_are_bound(make: object, tmp_path: Path) -> None:
    source = make()  # type: ignore[operator]
    x, want, got = random((3, 96)), empty((3, 96)), empty((3, 96))
    run_program(source, [x, want])
    emulate({"bound": source}, tmp_path)("bound", [x, got])
    np.testing.assert_array_equal(got, want)


def test_more_shared_memory_than_a_kernel_can_declare_is_asked_for(tmp_path: Path) -> None:
    large, small = buffer("large", 12288, scope=Scope.SHARED), TILE
    fill = Seq((put(large, (tx * 128,), at(X, bx, tx)), put(small, (tx,), at(X, bx, tx) * 2.0)))
    drain = put(OUT, (bx, tx), at(large, (95 - tx) * 128) + at(small, 95 - tx))
    source = program(grid(Alloc(large, Alloc(small, Seq((fill, SYNC, drain)))), 3, 96), [X], [OUT])
    emulated = emulate({"large": source}, tmp_path)
    (launch,) = emulated.plans["large"].launches
    assert launch.static_shared_bytes == 0 and launch.dynamic_shared_bytes == 4 * (12288 + 96)
    x, out = random((3, 96)), empty((3, 96))
    emulated("large", [x, out])
    np.testing.assert_array_equal(out, 3 * x[:, ::-1])


def copied_ahead(*, waits: bool = True, offset: int = 0, within: int = 30) -> Program:
    """Each thread copies four elements, or zeros, which all of the block read after a wait."""
    tile, lane = buffer("tile", 2, 96, scope=Scope.SHARED), Var("lane")
    inside = select(tx + bx * 4 < within, at(X, bx, tx * 4 + lane), 0.0)
    copy = AsyncCopy(tile, (as_expr(1), tx * 4 + lane + offset), inside)
    wait = (Wait(Async.COPIES, 0),) if waits else ()
    begin = Seq((For(lane, 4, ForKind.VECTORIZED, copy), Commit(Async.COPIES), *wait))
    fetch = For(tx, 24, ForKind.THREAD_X, begin)
    other = Var("other")
    use = For(other, 24, ForKind.THREAD_X, For(k, 4, ForKind.SERIAL, put(
        OUT, (bx, k * 24 + other), at(tile, 1, 95 - k * 24 - other))))  # fmt: skip
    body = Alloc(tile, Seq((fetch, SYNC, use)))
    return program(For(bx, 3, ForKind.BLOCK_X, body), [X], [OUT])


def test_copies_arrive_when_they_are_waited_for(tmp_path: Path) -> None:
    source = copied_ahead()
    emulated = emulate({"ahead": source, "late": copied_ahead(waits=False)}, tmp_path)
    x, want, got = random((3, 96)), empty((3, 96)), empty((3, 96))
    run_program(source, [x, want])
    emulated("ahead", [x, got])
    np.testing.assert_array_equal(got, want)
    emulated("late", [x, got])
    assert np.isnan(got).all()


def test_a_copy_moves_as_much_as_alignment_allows() -> None:
    text = emit_cuda(copied_ahead(), TARGET, "k").kernels
    assert "copy_async(&vec<4>(&tile[tx * 4 + 96]), &vec<4>(&x[i * 96 + tx * 4])" in text.replace(
        "bx", "i"
    )
    assert "commit_copies();" in text and "wait_copies<0>();" in text
    single = emit_cuda(copied_ahead(offset=-1), TARGET, "k").kernels
    assert "copy_async(&tile[tx * 4 + lane + 95], &x[" in single


def test_zeros_that_a_copy_always_makes_are_stored(tmp_path: Path) -> None:
    source, got = copied_ahead(within=0), empty((3, 96))
    emulate({"zeros": source}, tmp_path)("zeros", [random((3, 96)), got])
    np.testing.assert_array_equal(got, np.zeros((3, 96)))
    for offset in (0, -1):
        text = emit_cuda(copied_ahead(offset=offset, within=0), TARGET, "k").kernels
        assert "copy_async" not in text


def test_elements_too_narrow_for_a_copy_are_stored() -> None:
    x, out = (buffer(name, 8, dtype=DType.FLOAT16) for name in ("x", "out"))
    tile = buffer("tile", 8, dtype=DType.FLOAT16, scope=Scope.SHARED)
    copy = AsyncCopy(tile, (tx,), at(x, tx))
    body = Alloc(
        tile,
        Seq((copy, Commit(Async.COPIES), Wait(Async.COPIES, 0), put(out, (tx,), at(tile, tx)))),
    )
    text = emit_cuda(program(For(tx, 8, ForKind.THREAD_X, body), [x], [out]), TARGET, "k").kernels
    assert "tile[tx] = x[tx];" in text and "copy_async" not in text
