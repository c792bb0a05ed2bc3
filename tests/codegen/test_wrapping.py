"""Whatever is computed of int64 data, every backend wraps around as the interpreter does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ansorpy.ir.builders import maximum, minimum, select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.interpret.program import run_program
from ansorpy.ir.loops import Program, Seq, Stmt
from tests.codegen.c.compiled import CompiledC, needs_cc
from tests.codegen.cuda.emulator import emulate, needs_compiler
from tests.codegen.programs import Array, Compiled, Index, at, buffer, empty, nest, program, put

COUNT, ROWS = 48, 12
EDGES = [0, 1, -1, 7, 2**40, 2**62, 2**63 - 1, -(2**40), -(2**62), -(2**63), 1 - 2**63]
FACTORS = [2, 3, 4, -6, 10, 1000, 2654435761, 2**62]
DIVISORS = [2, 3, 4, 6, 10, 64, 1000, 2**32]


class Arithmetic:
    """Random int64 expressions of *loads*, whose sums and products overflow."""

    def __init__(self, seed: int, loads: list[Expr]) -> None:
        self.rng = np.random.default_rng(seed)
        self.loads = loads

    def of(self, depth: int) -> Expr:
        if depth == 0:
            return self.loads[int(self.rng.integers(len(self.loads)))]
        a, b = self.of(depth - 1), self.of(int(self.rng.integers(depth)))
        factor, divisor = int(self.rng.choice(FACTORS)), int(self.rng.choice(DIVISORS))
        made = [
            lambda: a * factor + b,
            lambda: a - b * factor,
            lambda: (a * factor + 1) // divisor,
            lambda: a // divisor,
            lambda: a * factor % divisor,
            lambda: minimum(a * factor, b),
            lambda: maximum(a, a + factor),
            lambda: select(a + factor > a, b, a),
        ]  # fmt: skip
        return made[int(self.rng.integers(len(made)))]()


def rows(kind: str) -> tuple[Program, list[Array], Array]:
    """A random expression of two arrays a row, its inputs and what comes out."""
    x, y = (buffer(name, COUNT, dtype=DType.INT64) for name in "xy")
    out = buffer("out", ROWS, COUNT, dtype=DType.INT64)

    def body(i: Index) -> Stmt:
        values = (Arithmetic(n, [at(x, i), at(y, i)]).of(1 + n % 2) for n in range(ROWS))
        return Seq(tuple(put(out, (n, i), value) for n, value in enumerate(values)))

    source = program(nest(f"{kind}{COUNT}", body), [x, y], [out])
    rng = np.random.default_rng(1)
    arrays = [rng.choice(EDGES, COUNT), rng.choice(EDGES, COUNT)]
    want = empty((ROWS, COUNT), DType.INT64)
    run_program(source, [*arrays, want])
    return source, arrays, want


@pytest.mark.parametrize("kind", ["s", "v"])
def test_arithmetic_on_data_wraps_around(kind: str) -> None:
    source, arrays, want = rows(kind)
    got = empty(want.shape, DType.INT64)
    Compiled(source)(*arrays, got)
    np.testing.assert_array_equal(got, want)


@needs_cc
def test_arithmetic_on_data_wraps_around_in_c(tmp_path: Path) -> None:
    made = {kind: rows(kind) for kind in "sv"}
    compiled = CompiledC({kind: source for kind, (source, _, _) in made.items()}, tmp_path)
    for kind, (_, arrays, want) in made.items():
        got = empty(want.shape, DType.INT64)
        compiled(kind, [*arrays, got])
        np.testing.assert_array_equal(got, want, err_msg=kind)


@needs_compiler
def test_arithmetic_on_data_wraps_around_on_a_gpu(tmp_path: Path) -> None:
    source, arrays, want = rows("s")
    got = empty(want.shape, DType.INT64)
    emulate({"rows": source}, tmp_path)("rows", [*arrays, got])
    np.testing.assert_array_equal(got, want)
