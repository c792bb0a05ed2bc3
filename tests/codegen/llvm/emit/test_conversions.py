"""16-bit floats between memory and registers: rounded once, and not again."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.codegen.llvm.emit.program import emit_llvm
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.target import Target
from tests.codegen.programs import Compiled, at, buffer, empty, nest, program, put

ROUNDINGS = {DType.FLOAT16: "fptrunc", DType.BFLOAT16: "fcmp uno"}


@pytest.mark.parametrize("dtype", ROUNDINGS)
def test_a_rounded_value_is_stored_as_it_is(dtype: DType) -> None:
    x, y = buffer("x", 5, dtype=DType.FLOAT32), buffer("y", 5, dtype=dtype)
    source = program(nest("s5", lambda i: put(y, (i,), at(x, i).astype(dtype))), [x], [y])
    assert emit_llvm(source, Target.host(), "k").count(ROUNDINGS[dtype]) == 1


@pytest.mark.parametrize("dtype", ROUNDINGS)
def test_a_copy_keeps_every_bit(dtype: DType) -> None:
    x, y = buffer("x", 1 << 16, dtype=dtype), buffer("y", 1 << 16, dtype=dtype)

    def copy(i: Expr, j: Expr) -> Expr:
        return at(x, i * 64 + j)

    body = nest("s1024 v64", lambda i, j: put(y, (i * 64 + j,), copy(i, j)))
    values = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    out = empty(values.shape, dtype)
    Compiled(program(body, [x], [y]))(values, out)
    np.testing.assert_array_equal(out.view(np.uint16), values.view(np.uint16))
