"""Expressions that share their parts deeply take time linear in their nodes, not in their paths."""

from __future__ import annotations

import numpy as np

from ansorpy.cost.counts import count_ops
from ansorpy.ir.expr import Expr, Var
from ansorpy.ir.loops import Stmt
from ansorpy.ir.verify import verify
from tests.codegen.programs import Compiled, at, buffer, nest, program, put

DEPTH = 64


def test_a_value_doubled_64_times() -> None:
    x, y = buffer("x", 20), buffer("y", 20)
    counted = []

    def body(i: Var) -> Stmt:
        value: Expr = at(x, i) * 2.0**-DEPTH
        for _ in range(DEPTH):
            value = value + value
        counted.append(count_ops(value))
        return put(y, (i,), value)

    source = program(nest("v20", body), [x], [y])
    verify(source)
    assert counted[0].floats.addsub == DEPTH, "what is shared is computed once"
    given, got = np.arange(20, dtype=np.float32), np.empty(20, np.float32)
    Compiled(source)(given, got)
    np.testing.assert_array_equal(got, given)
