"""16-bit floats between memory and registers: rounded once, and not again."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.codegen.llvm.emit.program import emit_llvm
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.loops import Seq, Stmt
from ansorpy.target import Target
from tests.codegen import test_rounding as rounding
from tests.codegen.programs import Compiled, at, buffer, empty, nest, program, put
from tests.codegen.test_division import assert_same_floats

ROUNDINGS = {DType.FLOAT16: "fptrunc", DType.BFLOAT16: "fcmp uno"}


@pytest.mark.parametrize("dtype", ROUNDINGS)
def test_a_rounded_value_is_stored_as_it_is(dtype: DType) -> None:
    x, y = buffer("x", 5, dtype=DType.FLOAT32), buffer("y", 5, dtype=dtype)
    source = program(nest("s5", lambda i: put(y, (i,), at(x, i).astype(dtype))), [x], [y])
    assert emit_llvm(source, Target.parse("x86-64-v3"), "k").count(ROUNDINGS[dtype]) == 1


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


@pytest.mark.skipif("x86_64" not in Target.host().triple, reason="runs code for x86-64-v2")
@pytest.mark.parametrize("loop", ["s", "v"])
def test_a_cpu_without_instructions_for_float16_converts_it_alike(loop: str) -> None:
    half, single, old = DType.FLOAT16, DType.FLOAT32, Target.parse("x86-64-v2")
    x, z = (buffer(name, 1024, 64, dtype=half) for name in "xz")
    y = buffer("y", 1024, 64, dtype=single)

    def there_and_back(i: Expr, j: Expr) -> Stmt:
        there = put(y, (i, j), at(x, i, j).astype(single))
        return Seq((there, put(z, (i, j), at(y, i, j).astype(half))))

    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(1024, 64)
    wide, again = empty(every.shape, single), empty(every.shape, half)
    Compiled(program(nest(f"s1024 {loop}64", there_and_back), [x], [y, z]), old)(every, wide, again)
    with np.errstate(invalid="ignore"):
        assert_same_floats(wide, every.astype(np.float32))
        assert_same_floats(again, every)
    made, near, want = rounding.cast(DType.FLOAT64, half, loop)
    got = empty(near.shape, half)
    Compiled(made, old)(near, got)
    np.testing.assert_array_equal(got.astype(np.float64), want)
