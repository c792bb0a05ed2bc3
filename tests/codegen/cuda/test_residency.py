"""How many blocks of a kernel the assembler has to leave registers for."""

from __future__ import annotations

import re

import pytest

from ansorpy.codegen.cuda.emit import emit_cuda
from ansorpy.ir.expr import Var
from ansorpy.ir.loops import Alloc, For, ForKind, Program, Scope, Seq
from tests.codegen.cuda.emulator import TARGET
from tests.codegen.programs import at, buffer, program, put

t, i = Var("t"), Var("i")


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
