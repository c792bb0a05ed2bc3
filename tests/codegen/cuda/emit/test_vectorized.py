"""Which accesses of a vectorised loop move at once, and that they compute the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ansorpy.codegen.cuda.emit.program import emit_cuda
from ansorpy.ir.builders import select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import ReduceKind, Var
from ansorpy.ir.interpret import run_program
from ansorpy.ir.loops import Alloc, Buffer, For, ForKind, Program, Scope, Seq, Stmt
from tests.codegen.cuda.emulator import TARGET, emulate, needs_compiler
from tests.codegen.programs import at, buffer, empty, program, put, random

tx, j = Var("tx"), Var("j")
X, Y, OUT = buffer("x", 8, 32), buffer("y", 8, 32), buffer("out", 8, 32)


def rows(extent: int, body: Stmt, inputs: list[Buffer], out: Buffer = OUT) -> Program:
    """*body* for 8 threads, in a vectorised loop over j."""
    loop = For(j, extent, ForKind.VECTORIZED, body)
    return program(For(tx, 8, ForKind.THREAD_X, loop), inputs, [out])


def text(source: Program) -> str:
    return emit_cuda(source, TARGET, "k").kernels


def copy(extent: int, offset: int = 0, stride: int = 1) -> Program:
    out = buffer("out", 8, extent)
    return rows(extent, put(out, (tx, j), at(X, tx, j * stride + offset)), [X], out)


def computed(extent: int) -> Program:
    out = buffer("out", 8, extent)
    value = at(X, tx, j) * at(Y, j // 8, tx) + at(Y, tx, j + 8)
    return rows(extent, put(out, (tx, j), value), [X, Y], out)


def accumulated() -> Program:
    inner = Var("inner")
    begin = For(j, 32, ForKind.VECTORIZED, put(OUT, (tx, j), at(Y, tx, j)))
    more = For(inner, 32, ForKind.VECTORIZED, put(
        OUT, (tx, inner), at(X, tx, inner), ReduceKind.MAX))  # fmt: skip
    return program(For(tx, 8, ForKind.THREAD_X, Seq((begin, more))), [X, Y], [OUT])


def padded() -> Program:
    """A condition that all lanes share, and one that they do not."""
    inside = select((tx >= 1) & (tx < 7), at(X, tx - 1, j), 0.0)
    beside = select(j >= 2, at(Y, tx, j - 2), 1.0)
    return rows(32, put(OUT, (tx, j), inside + beside), [X, Y])


def halves() -> Program:
    x, out = buffer("x", 8, 32, dtype=DType.FLOAT16), buffer("out", 8, 32)
    return rows(32, put(out, (tx, j), at(x, tx, j).astype("float32") * 2.0), [x], out)


def copied_halves() -> Program:
    x, out = (buffer(name, 8, 32, dtype=DType.BFLOAT16) for name in ("x", "out"))
    return rows(32, put(out, (tx, j), at(x, tx, j)), [x], out)


def in_registers() -> Program:
    """What a thread holds is set lane by lane from what moves at once, and stored at once."""
    own, inner = buffer("own", 32, scope=Scope.LOCAL), Var("inner")
    fill = For(j, 32, ForKind.VECTORIZED, put(own, (j,), at(X, tx, j) + 1.0))
    drain = For(inner, 32, ForKind.VECTORIZED, put(OUT, (tx, inner), at(own, 31 - inner)))
    return program(For(tx, 8, ForKind.THREAD_X, Alloc(own, Seq((fill, drain)))), [X], [OUT])


MAKERS: dict[str, Callable[[], Program]] = {
    "copy4": lambda: copy(4), "copy32": lambda: copy(32), "copy6": lambda: copy(6),
    "copy3": lambda: copy(3), "late": lambda: copy(16, 1), "even": lambda: copy(16, 2),
    "strided": lambda: copy(8, 0, 2), "computed": lambda: computed(16),
    "accumulated": accumulated, "padded": padded, "halves": halves,
    "copied_halves": copied_halves, "in_registers": in_registers,
}  # fmt: skip


@needs_compiler
def test_vectors_compute_what_the_interpreter_does(tmp_path: Path) -> None:
    emulated = emulate({name: make() for name, make in MAKERS.items()}, tmp_path)
    for name, source in emulated.programs.items():
        inputs = [random(p.buffer.shape, p.buffer.dtype, n) for n, p in enumerate(source.params)]
        out = source.params[-1].buffer
        want, got = empty(out.shape, out.dtype), empty(out.shape, out.dtype)
        run_program(source, [*inputs[:-1], want])
        emulated(name, [*inputs[:-1], got])
        np.testing.assert_allclose(
            got.astype(np.float32), want.astype(np.float32), rtol=1e-6, err_msg=name
        )


def test_a_copy_of_neighbours_is_one_statement() -> None:
    assert "vec<4>(&out[tx * 4]) = vec<4>(&x[tx * 32]);" in text(copy(4))
    assert "vec<2>(&out[tx * 6 + j_start]) = vec<2>(&x[tx * 32 + j_start]);" in text(copy(6))


@pytest.mark.parametrize(
    ("source", "loads"),
    [(copy(3), 0), (copy(16, 1), 0), (copy(16, 2), 1), (copy(8, 0, 2), 0), (computed(16), 2)],
    ids=["three", "off by one", "even", "strided", "some"],
)
def test_only_neighbours_at_whole_multiples_move_at_once(source: Program, loads: int) -> None:
    found = text(source)
    assert found.count("vec<") - found.count(">(&out") == loads


def test_what_moves_at_once_takes_sixteen_bytes_at_most() -> None:
    assert "vec<8>(&out" in text(copied_halves()) and "to_float" not in text(copied_halves())
    # A float holds half as many neighbours: either side may be the one that moves.
    assert "Vec<float16, 8>" in text(halves()) or "vec<4>(&out" in text(halves())


def test_a_guarded_vector_is_read_under_its_condition() -> None:
    found = text(padded())
    assert "? vec<4>(&x[" in found and ": Vec<float, 4>{}" in found
    assert "vec<4>(&y" not in found


def test_only_zeros_without_a_sign_stand_for_what_is_not_read() -> None:
    for fill, at_once in ((0.0, True), (-0.0, False)):
        value = select(tx >= 1, at(X, tx - 1, j), fill)
        found = text(rows(32, put(OUT, (tx, j), value), [X]))
        assert ("-0.0f" not in found) is at_once


def test_parts_of_other_tensors_are_not_taken_for_aligned() -> None:
    part = Buffer("x", (8, 4), DType.FLOAT32, Scope.GLOBAL, (12, 1))
    out = buffer("out", 8, 4)
    found = text(rows(4, put(out, (tx, j), at(part, tx, j)), [part], out))
    assert "&x" not in found and "x[tx * 12 + j" in found


@needs_compiler
def test_tensors_that_are_parts_of_others_are_read_and_written_where_they_lie(
    tmp_path: Path,
) -> None:
    x = Buffer("x", (8, 4), DType.FLOAT32, Scope.GLOBAL, (12, 1))
    out = Buffer("out", (8, 4), DType.FLOAT32, Scope.GLOBAL, (9, 1))
    source = rows(4, put(out, (tx, j), at(x, tx, j) + 1.0), [x], out)
    whole, made = random((8, 12)), empty((8, 9))
    before = made.copy()
    emulate({"parts": source}, tmp_path)("parts", [whole, made])
    np.testing.assert_array_equal(made[:, :4], whole[:, :4] + 1)
    np.testing.assert_array_equal(made[:, 4:], before[:, 4:])


def test_bytes_that_the_loop_writes_are_not_loaded_in_advance() -> None:
    data, apart = (buffer(name, 512, dtype=DType.INT8) for name in ("data", "out"))
    k = Var("k")

    def transposed(out: Buffer) -> str:
        body = put(out, (tx * 64 + j * 16 + k,), at(data, tx * 64 + k * 4 + j))
        loop = For(j, 4, ForKind.UNROLLED, For(k, 16, ForKind.VECTORIZED, body))
        inputs = [] if out is data else [data]
        return text(program(For(tx, 8, ForKind.THREAD_X, loop), inputs, [out]))

    assert "turned(" in transposed(apart)
    assert "turned(" not in transposed(data)
