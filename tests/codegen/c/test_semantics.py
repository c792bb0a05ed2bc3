"""What expressions mean in C: every operator, type and limit, under sanitizers.

The programs are those by which the other backends are tested; they are compiled into one
executable that ends at the first undefined operation or access outside of an array.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

from ansorpy.codegen.c.style import Style
from ansorpy.ir.builders import select
from ansorpy.ir.dots import DOTS
from ansorpy.ir.dtypes import DType
from ansorpy.ir.elementary.table import APPROXIMATIONS
from ansorpy.ir.expr import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Const,
    Expr,
    Function,
    ReduceKind,
    const,
)
from ansorpy.ir.interpret import run_program
from ansorpy.ir.loops import Program, Seq, Stmt
from tests.codegen import test_division as division
from tests.codegen import test_float_to_integer as integers
from tests.codegen import test_rounding as rounding
from tests.codegen.c.compiled import STRICT, needs_cc
from tests.codegen.c.sanitized import UNDEFINED, run_apart
from tests.codegen.llvm.emit import test_dots as dots
from tests.codegen.passes import test_expand_functions as elementary
from tests.codegen.programs import Array, at, buffer, empty, nest, program, put, random
from tests.codegen.random_guards import guarded_program
from tests.codegen.test_random_expressions import expression_program, slack

pytestmark = needs_cc
STYLES = {"narrow": Style(32), "wide": Style(64), "vectors": Style(64, vectors=True)}


@dataclass
class Case:
    """A program, its inputs, and what is expected of it, or how that is found.

    ``slack`` is the greatest difference allowed; 0 also compares the signs of zeros.
    """

    source: Program
    inputs: list[Array]
    want: Array | Callable[[], Array]
    slack: float | Callable[[], Array] = 0.0
    ulps: int = 0


def output_of(source: Program) -> Array:
    """An array for what *source* computes, with nothing written to it yet."""
    out = source.params[-1].buffer
    return empty(out.shape, out.dtype)


def interpreted(source: Program, inputs: list[Array]) -> Case:
    """A case that expects what the interpreter computes."""

    def want() -> Array:
        out = output_of(source)
        with np.errstate(all="ignore"):
            run_program(source, [*inputs, out])
        return out

    return Case(source, inputs, want)


def of_divisions(kind: str) -> Iterator[tuple[str, Case]]:
    for op in division.OPS:
        for dtype in division.TYPES:
            a, b = division.edges(dtype)
            source = division.quotients(op, dtype, f"{kind}{{}}")
            want = division.in_rows(op, dtype, a, b)
            yield f"quotients_{op.name}_{dtype.value}", Case(source, [a, b], want)
    for op in division.OPS[1:]:
        for dtype in division.FLOATS:
            source, a, b, want = division.of_floats(op, dtype, f"{kind}{{}}")
            yield f"floats_{op.name}_{dtype.value}", Case(source, [a, b], want)
    for n in range(len(division.OF_DATA)):
        for dtype in division.INDEX_TYPES:
            source, arrays, want = division.read_at(n, dtype, kind)
            yield f"index{n}_{dtype.value}", Case(source, arrays, want)


def of_conversions(kind: str) -> Iterator[tuple[str, Case]]:
    for source in integers.FLOATS:
        for wanted in integers.INTS:
            made = integers.cast(source, wanted, kind)
            case = Case(made, [integers.values(source)], integers.expected(source, wanted))
            yield f"cut_{source.value}_{wanted.value}", case
    for source in rounding.WIDE:
        for wanted in rounding.HALF:
            made, values, want = rounding.cast(source, wanted, kind)
            yield f"round_{source.value}_{wanted.value}", Case(made, [values], want)
    for dtype in rounding.HALF:
        made, values, want = rounding.compared(dtype, kind)
        yield f"compare_{dtype.value}", Case(made, [values], want)


def converted(source: DType, wanted: DType, loop: str) -> Program:
    count = 1 << 16
    x, y = buffer("x", count, dtype=source), buffer("y", count, dtype=wanted)
    body = nest(f"{loop}{count}", lambda i: put(y, (i,), at(x, i).astype(wanted)))
    return program(body, [x], [y])


def of_halves(kind: str) -> Iterator[tuple[str, Case]]:
    """Every 16-bit float as a float32, and back."""
    single = DType.FLOAT32
    for dtype in rounding.HALF:
        halves = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
        with np.errstate(all="ignore"):
            wide = halves.astype(np.float32)
        yield f"from_{dtype.value}", Case(converted(dtype, single, kind), [halves], wide)
        yield f"to_{dtype.value}", Case(converted(single, dtype, kind), [wide], halves)


def pairs_of_booleans(op: BinaryOp, kind: str) -> Program:
    a, b, out = (buffer(name, 21, dtype=DType.BOOL) for name in ("a", "b", "out"))
    body = nest(f"{kind}21", lambda i: put(out, (i,), Binary(op, at(a, i), at(b, i))))
    return program(body, [a, b], [out])


def whether_some_or_all(reduce: ReduceKind, kind: str) -> Program:
    a, out = buffer("a", 8, 7, dtype=DType.BOOL), buffer("out", 8, dtype=DType.BOOL)
    start = nest("s8", lambda i: put(out, (i,), Const(reduce is ReduceKind.MIN, DType.BOOL)))
    body = nest(f"s8 {kind}7", lambda i, j: put(out, (i,), at(a, i, j), reduce))
    return program(Seq((start, body)), [a], [out])


def of_booleans(kind: str) -> Iterator[tuple[str, Case]]:
    for op in (BinaryOp.AND, BinaryOp.OR, BinaryOp.MIN, BinaryOp.MAX):
        arrays = [random((21,), DType.BOOL, seed) for seed in (0, 1)]
        yield f"booleans_{op.name}", interpreted(pairs_of_booleans(op, kind), arrays)
    for reduce in (ReduceKind.MAX, ReduceKind.MIN):
        values = random((8, 7), DType.BOOL)
        values[:2], values[2:4] = False, True
        yield f"whether_{reduce.name}", interpreted(whether_some_or_all(reduce, kind), [values])


def of_functions(kind: str) -> Iterator[tuple[str, Case]]:
    for fn, dtype in APPROXIMATIONS:
        x, y = elementary.operands(dtype, 301)
        if fn in (Function.SIN, Function.COS):
            x = x[~(np.abs(x) > 2**30) | np.isinf(x)]
        y, source = y[: len(x)], elementary.applied(fn, len(x), dtype)
        want = partial(elementary.results, source, x, y, elementary.interpreted)
        yield f"{fn.name}_{dtype.value}", Case(source, [x, y], want, ulps=8)
    for fn in DOTS:
        source = dots.rows(fn, 7)
        arrays = dots.values(source, 7)
        exact = dots.exact(arrays, DOTS[fn].terms).astype(arrays[2].dtype)
        most = 1e-5 if DOTS[fn].result.is_float else 0.0
        yield f"dots_{fn.name}", Case(source, arrays[:2], exact, most)


def of_random_expressions(kind: str) -> Iterator[tuple[str, Case]]:
    for seed in range(75):
        source, value, arrays = expression_program(seed, f"{kind}{{}}")
        case = interpreted(source, arrays)
        case.slack = partial(slack, value, arrays)
        yield f"expression{seed}", case


def of_random_guards(kind: str) -> Iterator[tuple[str, Case]]:
    for seed in range(45):
        source = guarded_program(seed)
        inputs = (param.buffer for param in source.params[:-1])
        arrays = [random(b.shape, b.dtype, n) for n, b in enumerate(inputs)]
        yield f"guarded{seed}", interpreted(source, arrays)


FAMILIES = (
    of_divisions, of_conversions, of_halves, of_booleans, of_functions, of_random_expressions,
    of_random_guards,
)  # fmt: skip


@cache
def cases(kind: str) -> dict[str, Case]:
    """The programs of all families, by name."""
    return {name: case for family in FAMILIES for name, case in family(kind)}


I16, I64, U8, U64 = DType.INT16, DType.INT64, DType.UINT8, DType.UINT64
X, Y, Z = (buffer(name, 9) for name in "xyz")
PLACES = buffer("places", 8, dtype=I64)


def read_after_a_read() -> Program:
    out = buffer("out", 8)
    body = nest("v8", lambda i: put(out, (i,), select(i >= 3, at(X, at(PLACES, i - 3) % 8), 0.0)))
    return program(body, [X, PLACES], [out])


def under_a_guard(value: Callable[[Expr, Expr], Expr]) -> Program:
    """*value* where ``i - 1`` is inside, and in some lanes only."""
    out = buffer("out", 4, 8)

    def body(i: Expr, j: Expr) -> Stmt:
        return put(out, (i, j), select((i >= 1) & (i + j < 10), value(i, j), 0.0))

    return program(nest("s4 v8", body), [X, Y, Z], [out])


def squared(x: Expr) -> Expr:
    return x * x


def of_numbers(dtype: DType, value: Callable[[Expr], Expr], loop: str = "s9") -> Program:
    out = buffer("out", 9, dtype=dtype)
    return program(nest(loop, lambda i: put(out, (i,), value(i))), [X], [out])


def large_product(dtype: DType) -> Program:
    bits, out = buffer("bits", 16, dtype=dtype), buffer("out", 1, dtype=dtype)
    one = put(out, (0,), Const(1, dtype))

    def body(i: Expr) -> Stmt:
        ones = Binary(BinaryOp.BIT_OR, at(bits, i), Const(-1, dtype))
        return put(out, (0,), ones, ReduceKind.PROD)

    return program(Seq((one, nest("v16", body))), [bits], [out])


def whether(dtype: DType, *tests: tuple[CompareOp, int]) -> Program:
    """The elements compared with numbers, on either side."""
    bits = buffer("bits", 16, dtype=dtype)
    out = buffer("out", len(tests), 2, 16, dtype=DType.BOOL)

    def body(i: Expr) -> Stmt:
        sides = [(at(bits, i), Const(number, dtype)) for _, number in tests]
        return Seq(
            tuple(
                put(out, (n, side, i), Compare(op, *sides[n][:: 1 - 2 * side]))
                for n, (op, _) in enumerate(tests) for side in (0, 1)
            )
        )  # fmt: skip

    return program(nest("v16", body), [bits], [out])


ORDERS = (CompareOp.LT, CompareOp.LE, CompareOp.GT, CompareOp.GE)
BY_HAND = {
    "read_after_a_read": read_after_a_read(),
    "read_twice": under_a_guard(lambda i, j: squared(at(X, i - 1))),
    "read_to_decide": under_a_guard(lambda i, j: select(at(X, i - 1) > 0.0, at(Y, j), at(Z, j))),
    "product": of_numbers(I64, lambda i: select(at(X, i) > 0.0, const(3), 1) * 1_000_000_000),
    "unsigned": of_numbers(
        U64,
        lambda i: select(at(X, i) > 0.0, Const(3, U64), Const(1, U64)) * Const(4_000_000_000, U64),
    ),
    "index": of_numbers(I64, lambda i: select(i > 4, const(2147483647), 0) + 1),
    "least_number": of_numbers(
        DType.FLOAT32, lambda i: select(i > 4, const(5), -(2**63)).astype(DType.FLOAT32)
    ),
    "shift": of_numbers(
        I64,
        lambda i: Binary(BinaryOp.SHR, select(at(X, i) > 0.0, const(70000), 1), const(40)),
    ),
    "shift_of_an_index": of_numbers(
        I64, lambda i: Binary(BinaryOp.SHR, select(i > 4, const(70000), -1), const(40))
    ),
    "product_of_bits": of_numbers(
        I64, lambda i: Binary(BinaryOp.BIT_AND, i - 4, const(7)) * 1_000_000_000
    ),
    "product_of_a_choice": of_numbers(
        I64, lambda i: select(at(X, i) > 0.0, i, const(3)) * 1_000_000_000
    ),
    "product_of_an_index": of_numbers(I64, lambda i: i * 2**62 - 1 - i),
    "products_of_indices": of_numbers(I64, lambda i: i * 2**62 - 1 - i, "v9"),
    "power": of_numbers(I64, lambda i: (i - 4) ** 31),
    "large_product": large_product(I16),
    **{
        f"whether_{dtype.value}": whether(
            dtype, *((op, number) for op in ORDERS for number in (*dtype.limits, 2))
        )
        for dtype in (U8, DType.INT8, DType.UINT32)
    },
}  # fmt: skip
"""Programs with what the random ones seldom have."""


@pytest.mark.parametrize("style", STYLES)
def test_rare_programs_leave_nothing_undefined(style: str, tmp_path: Path) -> None:
    ready: dict[str, tuple[Program, list[Array]]] = {}
    for name, source in BY_HAND.items():
        inputs = (param.buffer for param in source.params[:-1])
        arrays = [random(b.shape, b.dtype, n) for n, b in enumerate(inputs)]
        ready[name] = source, [*arrays, output_of(source)]
    want = {name: [array.copy() for array in arrays] for name, (_, arrays) in ready.items()}
    run_apart(ready, tmp_path, STYLES[style], flags=(*UNDEFINED, *STRICT))
    for name, (source, arrays) in ready.items():
        run_program(source, want[name])
        np.testing.assert_array_equal(arrays[-1], want[name][-1], name)


@pytest.mark.parametrize("style", STYLES)
def test_programs_equal_the_interpreter_and_leave_nothing_undefined(
    style: str, tmp_path: Path
) -> None:
    # A third of the programs in each style, by their names; every operator occurs in each.
    kind = "v" if style == "vectors" else "s"
    chosen = {
        name: case for name, case in cases(kind).items()
        if zlib.crc32(name.encode()) % 3 == list(STYLES).index(style)
    }  # fmt: skip
    arguments = {name: [*c.inputs, output_of(c.source)] for name, c in chosen.items()}
    ready = {name: (c.source, arguments[name]) for name, c in chosen.items()}
    run_apart(ready, tmp_path, STYLES[style], flags=(*UNDEFINED, *STRICT))
    for name, case in chosen.items():
        got = arguments[name][-1]
        want = case.want() if callable(case.want) else case.want
        most = case.slack() if callable(case.slack) else case.slack
        if case.ulps:
            np.testing.assert_array_max_ulp(got, want, case.ulps)
        elif np.any(most):
            found = got.astype(np.float64)
            assert np.isclose(found, want, rtol=0, atol=most, equal_nan=True).all(), name
        else:
            with np.errstate(invalid="ignore"):
                division.assert_same_floats(got, want, name)
