"""Expressions of all element types in C, run on the host, against the interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ansorpy.codegen.cuda.emit.program import emit_cuda
from ansorpy.errors import CodegenError
from ansorpy.ir.builders import maximum, minimum, select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Binary, BinaryOp, Call, Const, Expr, Function, Var, const
from ansorpy.ir.interpret import run_program
from ansorpy.ir.loops import For, ForKind, Program, Seq, Stmt
from tests.budget import some
from tests.codegen.cuda.emulator import TARGET, Emulated, emulate, needs_compiler
from tests.codegen.programs import at, buffer, empty, nest, program, put
from tests.codegen.random_expressions import TYPES, RandomExpression
from tests.codegen.test_random_expressions import operands, slack

SEEDS = some(range(72))
COUNTS = (1, 3, 8, 13, 16, 33)


def expression(seed: int) -> tuple[Program, Expr, int]:
    """A program that computes a random expression, the expression and how many it computes."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice(COUNTS))
    sources = {dtype: buffer(dtype.value, n, dtype=dtype) for dtype in TYPES}
    out = buffer("out", n, dtype=TYPES[seed % len(TYPES)])
    made: list[Expr] = []

    def body(i: Var) -> Stmt:
        loads = {dtype: at(source, i) for dtype, source in sources.items()}
        made.append(RandomExpression(rng, loads).value(out.dtype, 4))
        return put(out, (i,), made[-1])

    loops = ("s{}", "v{}", "u{}")[seed % 3].format(n)
    return program(nest(loops, body), list(sources.values()), [out]), made[0], n


@pytest.fixture(scope="module")
def expressions(tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    made = {f"random{seed}": expression(seed)[0] for seed in SEEDS}
    return emulate(made, tmp_path_factory.mktemp("expressions"))


@needs_compiler
@pytest.mark.parametrize("seed", SEEDS)
def test_random_expressions_equal_the_interpreter(expressions: Emulated, seed: int) -> None:
    source, value, n = expression(seed)
    rng = np.random.default_rng(seed)
    arrays = [operands(dtype, n, rng) for dtype in TYPES]
    out = source.params[-1].buffer.dtype
    want, got = empty((n,), out), empty((n,), out)
    run_program(source, [*arrays, want])
    expressions(f"random{seed}", [*arrays, got])
    found, exact = got.astype(np.float64), want.astype(np.float64)
    assert np.isclose(found, exact, rtol=0, atol=slack(value, arrays), equal_nan=True).all()


X = buffer("x", 8)
BOTH = [X, buffer("y", 8)]
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, 3e38, -1.5], np.float32)


@needs_compiler
def test_extrema_pass_nan_on_and_constants_are_exact(tmp_path: Path) -> None:
    x, y = BOTH
    outs = [buffer(name, 8) for name in ("largest", "least", "clipped", "far")]

    def body(i: Var) -> Stmt:
        values = [
            maximum(at(x, i), at(y, i)), minimum(at(x, i), at(y, i)), maximum(at(x, i), 0.0),
            select(at(x, i) < at(y, i), Const(float("-inf"), DType.FLOAT32), 0.1),
        ]  # fmt: skip
        parts = [put(out, (i,), value) for out, value in zip(outs, values, strict=True)]
        return Seq(tuple(parts))

    source = program(nest("s8", body), BOTH, outs)
    other = np.roll(SPECIAL, 3)
    want = [empty((8,)) for _ in outs]
    got = [empty((8,)) for _ in outs]
    run_program(source, [SPECIAL, other, *want])
    emulate({"special": source}, tmp_path)("special", [SPECIAL, other, *got])
    for found, exact in zip(got, want, strict=True):
        np.testing.assert_array_equal(found, exact)


def kernel(value: Expr, dtype: DType = DType.FLOAT32) -> str:
    """The kernel that stores *value*, a function of x[i]."""
    out = buffer("out", 8, dtype=dtype)
    return emit_cuda(program(put(out, (0,), value), [X], [out]), TARGET, "k").kernels


def test_functions_are_those_of_the_math_library() -> None:
    x = at(X, 0)
    for fn, name in ((Function.EXP, "expf"), (Function.ERF, "erff"), (Function.ROUND, "rintf")):
        assert f"{name}(x[0])" in kernel(Call(fn, (x,)))
    assert "tanh((double)x[0])" in kernel(
        Call(Function.TANH, (x.astype("float64"),)), DType.FLOAT64
    )
    assert "__expf" not in kernel(Call(Function.EXP, (x,)))


def test_powers_with_small_exponents_are_products() -> None:
    assert "const float t = x[0];\n  out[0] = t * t * t;" in kernel(at(X, 0) ** 3.0)
    assert "powf(x[0], 0.5f)" in kernel(at(X, 0) ** 0.5)
    whole = at(X, 0).astype("int32")
    text = kernel(whole**5, DType.INT32)
    assert text.count("(unsigned)") == 6 and "div" not in text


def test_what_is_used_twice_is_computed_once() -> None:
    twice = Call(Function.EXP, (at(X, 0),))
    text = kernel(twice * twice + twice)
    assert text.count("expf") == 1 and "const float t = expf(x[0]);" in text


def test_what_only_one_side_reads_is_not_read_before_the_choice() -> None:
    twice = Call(Function.EXP, (at(X, 7),))
    text = kernel(select(at(X, 0) < 1.0, twice * twice, 0.0))
    assert "const float" not in text.split("{", 1)[1] and text.count("expf(x[7])") == 2


def test_signed_integers_wrap_around() -> None:
    y = at(X, 0).astype("int32")
    assert "(int)((unsigned)" in kernel(y * y, DType.INT32)
    assert "(signed char)(" in kernel(y.astype("int8") + y.astype("int8"), DType.INT8)
    short = y.astype("uint16")  # C multiplies them as int, which 65535 * 65535 overflows
    assert "(unsigned short)((unsigned)" in kernel(short * short, DType.UINT16)


def test_functions_of_floats_are_refused_on_integers() -> None:
    with pytest.raises(CodegenError, match="exp of int32 values is not defined"):
        kernel(Call(Function.EXP, (at(X, 0).astype("int32"),)), DType.INT32)
    whole = at(X, 0).astype("int32")
    with pytest.raises(CodegenError, match="a power of int32 values is not defined"):
        kernel(whole**whole, DType.INT32)


def test_large_indices_take_64_bits() -> None:
    huge, out = buffer("huge", 1 << 20, 1 << 16), buffer("out", 1 << 20)
    i = Var("i")
    body = For(i, 1 << 20, ForKind.BLOCK_X, put(out, (i,), at(huge, i, 5)))
    text = emit_cuda(program(body, [huge], [out]), TARGET, "k").kernels
    assert "huge[(long long)i * 65536 + 5]" in text and "out[i]" in text


def test_quotients_round_down_where_the_dividend_may_be_negative() -> None:
    i, out, at_ = Var("i"), buffer("out", 64), buffer("at", 20, dtype=DType.INT32)
    index = Binary(BinaryOp.MAX, at(at_, i).astype("int64") // 4, const(0)) + i // 5
    body = For(i, 20, ForKind.BLOCK_X, put(out, (index,), at(X, 0)))
    text = emit_cuda(program(body, [at_, X], [out]), TARGET, "k").kernels
    assert "floor_div<int>(at[i], 4)" in text and "i / 5" in text
