"""Elementary functions expanded into arithmetic: the expression means what the machine computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

from ansorpy.codegen.passes.expand_functions import expand_functions
from ansorpy.errors import CodegenError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.elementary.table import APPROXIMATIONS, ELEMENTARY
from ansorpy.ir.expr import Binary, BinaryOp, Call, Expr, Function, Load, walk
from ansorpy.ir.interpret.program import run_program
from ansorpy.ir.loops import For, Program, Seq, Store
from ansorpy.ir.verify import verify
from ansorpy.target import Target
from tests.codegen.programs import Array, Compiled, at, buffer, empty, nest, program, put

F32, F64 = DType.FLOAT32, DType.FLOAT64
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, -1e-45, 1e-310, 3e38, 800, -800)
EXACT: dict[Function | BinaryOp, Callable[..., Any]] = {
    Function.EXP: np.exp, Function.LOG: np.log, Function.TANH: np.tanh, Function.ERF: special.erf,
    Function.RSQRT: lambda x: 1 / np.sqrt(x),
}  # fmt: skip
EXPONENTS = (1, 2, 3, 4, 7, 40, 63)


def applied(fn: Function | BinaryOp, n: int, dtype: DType) -> Program:
    x, y, out = (buffer(name, n, dtype=dtype) for name in "xyz")

    def value(i: Expr) -> Expr:
        if isinstance(fn, BinaryOp):
            return Binary(fn, at(x, i), at(y, i))
        return Call(fn, (at(x, i),))

    return program(nest(f"v{n}", lambda i: put(out, (i,), value(i))), [x, y], [out])


def operands(dtype: DType, count: int) -> tuple[Array, Array]:
    """Every exponent and sign, numbers near 1, and special values."""
    rng = np.random.default_rng(5)
    kind = dtype.numpy
    bits = rng.integers(0, 1 << 64, count, dtype=np.uint64).astype(f"u{dtype.bytes}").view(kind)
    spans = [rng.uniform(-span, span, count) for span in (1, 5, 30, 800)]
    with np.errstate(all="ignore"):
        x = np.concatenate([bits, *spans, SPECIAL]).astype(kind)
    return x, rng.permutation(x)


def results(source: Program, x: Array, y: Array, run: Callable[..., Any]) -> Array:
    out = empty(x.shape, source.params[-1].buffer.dtype)
    run(source, x, y, out)
    return out


def compiled(target: Target | None = None) -> Callable[..., Any]:
    return lambda source, *arrays: Compiled(source, target)(*arrays)


def interpreted(source: Program, *arrays: Array) -> None:
    expanded = expand_functions(source)
    verify(expanded)
    run_program(expanded, list(arrays))


@pytest.mark.parametrize(("fn", "dtype"), list(APPROXIMATIONS), ids=str)
def test_the_expression_interpreted_equals_the_machine(
    fn: Function | BinaryOp, dtype: DType
) -> None:
    x, y = operands(dtype, 701)
    source = applied(fn, len(x), dtype)
    got, want = results(source, x, y, compiled()), results(source, x, y, interpreted)
    # Products and sums left open may be one operation: half a unit of an intermediate.
    np.testing.assert_array_max_ulp(got, want, 2)


@pytest.mark.parametrize("features", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("fn", [Function.EXP, Function.LOG, Function.ERF, BinaryOp.POW], ids=str)
@pytest.mark.parametrize("dtype", [F32, F64])
def test_every_vector_width_computes_the_same(
    fn: Function | BinaryOp, dtype: DType, features: str
) -> None:
    target = Target.parse(features)
    if not target.feature_set <= Target.host().feature_set:
        pytest.skip(f"this machine is no {features}")
    x, y = operands(dtype, 301)
    source = applied(fn, len(x), dtype)
    want = results(source, x, y, compiled())
    np.testing.assert_array_equal(results(source, x, y, compiled(target)), want)


@pytest.mark.parametrize("fn", list(EXACT), ids=str)
def test_float64_keeps_its_stated_error(fn: Function) -> None:
    x, y = operands(F64, 40_009)
    got = results(applied(fn, len(x), F64), x, y, compiled())
    with np.errstate(all="ignore"):
        want = EXACT[fn](x.astype(np.longdouble)) if fn is not Function.ERF else EXACT[fn](x)
        rounded = want.astype(np.float64)
        errors = np.abs(got.astype(np.longdouble) - want) / np.spacing(np.abs(rounded))
    limits = ~np.isfinite(rounded)
    np.testing.assert_array_equal(got[limits], rounded[limits])
    # scipy's own erf may be off by a unit.
    slack = 1.0 if fn is Function.ERF else 0.0
    assert float(errors[~limits].max()) <= APPROXIMATIONS[fn, F64].error + slack


def test_a_program_without_functions_stays_the_same() -> None:
    source = applied(BinaryOp.ADD, 5, F32)
    assert expand_functions(source) is source


def test_the_operand_is_shared_and_no_call_is_left() -> None:
    expanded = expand_functions(applied(Function.LOG, 4, F32))
    assert isinstance(expanded.body, For)
    assert isinstance(expanded.body.body, Store)
    nodes = list(walk(expanded.body.body.value))
    assert not any(isinstance(e, Call) and e.fn in ELEMENTARY for e in nodes)
    assert sum(isinstance(e, Load) for e in nodes) == 1


@pytest.mark.parametrize(
    ("fn", "dtype", "message"),
    [
        (Function.TANH, DType.INT32, "tanh of int32 values is not defined"),
        (BinaryOp.POW, DType.INT64, "a power of int64 values is not defined, but for exponents"),
    ],
)
def test_functions_of_integers_are_refused(
    fn: Function | BinaryOp, dtype: DType, message: str
) -> None:
    with pytest.raises(CodegenError, match=message):
        expand_functions(applied(fn, 4, dtype))


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT32, DType.INT64, DType.UINT64], ids=str)
def test_powers_of_integers_wrap_around(dtype: DType) -> None:
    x, out = buffer("x", 9, dtype=dtype), buffer("out", len(EXPONENTS), 9, dtype=dtype)
    source = program(
        Seq(tuple(
            nest("v9", lambda i, n=n: put(out, (n, i), at(x, i) ** EXPONENTS[n]))
            for n in range(len(EXPONENTS))
        )),
        [x], [out],
    )  # fmt: skip
    values, got = np.arange(-4, 5).astype(dtype.numpy), empty(out.shape, dtype)
    Compiled(source)(values, got)
    np.testing.assert_array_equal(got, [values**n for n in EXPONENTS])
