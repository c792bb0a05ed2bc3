"""Conversions of narrow floats, for all of their codes, against ml_dtypes and onnx."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from onnx.numpy_helper import to_float8e8m0

from ansorpy.errors import UsageError
from ansorpy.graph.ops.narrow.codes import ROUNDINGS, decoded, encoded, wrapped
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType, as_dtype
from ansorpy.ir.expr import Expr
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.loops import Program
from ansorpy.ir.narrow import Narrow, packed, unpacked
from ansorpy.ir.tensor import compute, placeholder
from tests.codegen.c.compiled import CompiledC, needs_cc
from tests.codegen.programs import Compiled, at, buffer, empty, nest, program, put

Array = NDArray[Any]
FLOATS = [kind for kind in Narrow if kind.is_float]
SIGNED = [kind for kind in FLOATS if kind.format is not None]
INTEGERS = [kind for kind in Narrow if not kind.is_float]


def interpreted(fn: Callable[[Expr], Expr], values: Array, floats: DType | None = None) -> Array:
    x = placeholder(values.shape, as_dtype(values.dtype), name="x")
    y = compute(values.shape, lambda i: fn(x[i]), name="y")
    return run_dag(ComputeDAG([y], [x]), {x: values}, floats)[0]


def in_a_loop(fn: Callable[[Expr], Expr], values: Array, made: DType, loop: str) -> Program:
    n = len(values)
    x, out = buffer("x", n, dtype=as_dtype(values.dtype)), buffer("out", n, dtype=made)
    return program(nest(f"{loop}{n}", lambda i: put(out, (i,), fn(at(x, i)))), [x], [out])


def compiled(fn: Callable[[Expr], Expr], values: Array, made: DType, loop: str = "v") -> Array:
    got = empty(values.shape, made)
    Compiled(in_a_loop(fn, values, made, loop))(values, got)
    return got


def codes(kind: Narrow) -> Array:
    return np.arange(1 << kind.bits, dtype=np.uint8)


def numbers(kind: Narrow) -> Array:
    """What all codes stand for."""
    return codes(kind).view(kind.numpy).astype(np.float32)


def assert_same_floats(got: Array, want: Array) -> None:
    np.testing.assert_array_equal(got, want)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(want)[known])


@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_every_code_is_decoded(kind: Narrow) -> None:
    def decode(x: Expr) -> Expr:
        return decoded(x, kind)

    assert_same_floats(interpreted(decode, codes(kind)), numbers(kind))
    for loop in "vs":
        assert_same_floats(compiled(decode, codes(kind), DType.FLOAT32, loop), numbers(kind))


def near(kind: Narrow, rng: np.random.Generator) -> Array:
    """All numbers of *kind*, those half-way between them and next to these, and others."""
    exact = numbers(kind)
    finite = np.sort(exact[np.isfinite(exact)])
    middles = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
    apart = [np.nextafter(middles, np.float32(end)) for end in (np.inf, -np.inf)]
    any_bits = rng.integers(0, 1 << 32, 3000, dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        spread = (rng.standard_normal(3000) * 10.0 ** rng.integers(-9, 9, 3000)).astype(np.float32)
    named = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 464, 465, 61440, 61441], np.float32)
    return np.concatenate([exact, middles, *apart, any_bits, spread, named])


def assert_same_codes(got: Array, want: Array, kind: Narrow) -> None:
    """Equal codes; any code of NaN is as good as another."""
    found, exact = (x.view(kind.numpy).astype(np.float32) for x in (got, want.view(np.uint8)))
    either = np.isnan(found) & np.isnan(exact)
    np.testing.assert_array_equal(got[~either], want.view(np.uint8)[~either])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("saturate", [True, False])
@pytest.mark.parametrize("kind", SIGNED, ids=str)
def test_floats_are_rounded_to_nearest(
    kind: Narrow, saturate: bool, rng: np.random.Generator
) -> None:
    def encode(x: Expr) -> Expr:
        return encoded(x, kind, saturate=saturate)

    info = ml_dtypes.finfo(kind.numpy)
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16, np.float64):
        values = near(kind, rng).astype(dtype)
        inside = np.clip(values, dtype(info.min), dtype(info.max)) if saturate else values
        want = inside.astype(kind.numpy)
        assert_same_codes(interpreted(encode, values), want, kind)
        for loop in "vs":
            assert_same_codes(compiled(encode, values, DType.UINT8, loop), want, kind)


@pytest.mark.parametrize("kind", SIGNED, ids=str)
def test_doubles_are_rounded_once(kind: Narrow) -> None:
    exact = numbers(kind).astype(np.float64)
    finite = np.sort(exact[np.isfinite(exact)])
    middles = (finite[1:] + finite[:-1]) / 2
    values = np.concatenate([middles * (1 + 1e-13), middles * (1 - 1e-13)])
    above = np.where(middles >= 0, finite[1:], finite[:-1])
    below = np.where(middles >= 0, finite[:-1], finite[1:])
    for got in (
        compiled(encoder(kind), values, DType.UINT8),
        interpreted(encoder(kind), values, DType.FLOAT64),  # as constants are evaluated
    ):
        found = got.view(kind.numpy).astype(np.float64)
        np.testing.assert_array_equal(found, np.concatenate([above, below]))


@pytest.mark.parametrize("saturate", [True, False])
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_powers_of_two_are_rounded_as_onnx_does(
    rounding: str, saturate: bool, rng: np.random.Generator
) -> None:
    kind = Narrow.FLOAT8E8M0
    values = near(kind, rng)

    def encode(x: Expr) -> Expr:
        return encoded(x, kind, saturate=saturate, rounding=rounding)

    want = to_float8e8m0(values, saturate, rounding).view(np.uint8)
    np.testing.assert_array_equal(interpreted(encode, values), want)
    np.testing.assert_array_equal(compiled(encode, values, DType.UINT8), want)


def test_a_rounding_that_does_not_exist_is_refused() -> None:
    x = placeholder((2,), name="x")
    with pytest.raises(UsageError, match="no rounding 'odd'.*\n?.*choose one of up, down, nearest"):
        encoded(x[0], Narrow.FLOAT8E8M0, rounding="odd")


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float32])
def test_integers_keep_their_low_bits(kind: Narrow, dtype: Any) -> None:
    values = np.arange(100, dtype=dtype) - dtype(0 if dtype is np.uint8 else 50)
    got = compiled(lambda x: wrapped(x, kind), values, kind.held)
    low, high = kind.limits
    want = (values.astype(np.int64) - low) % (high - low + 1) + low
    np.testing.assert_array_equal(got, want)


def decoder(kind: Narrow) -> Callable[[Expr], Expr]:
    return lambda x: decoded(x, kind)


def encoder(kind: Narrow) -> Callable[[Expr], Expr]:
    return lambda x: encoded(x, kind)


@needs_cc
def test_all_conversions_are_the_same_in_c(tmp_path: Path, rng: np.random.Generator) -> None:
    made: dict[str, tuple[Program, Array, Array]] = {}
    for kind in FLOATS:
        values = near(kind, rng)
        for loop in "sv":
            back = in_a_loop(decoder(kind), codes(kind), DType.FLOAT32, loop)
            made[f"from_{kind.value}_{loop}"] = back, codes(kind), numbers(kind)
            to = in_a_loop(encoder(kind), values, DType.UINT8, loop)
            made[f"to_{kind.value}_{loop}"] = to, values, interpreted(encoder(kind), values)
    library = CompiledC({name: parts[0] for name, parts in made.items()}, tmp_path)
    for name, (_, values, want) in made.items():
        got = empty(want.shape, as_dtype(want.dtype))
        library(name, [values, got])
        np.testing.assert_array_equal(got, want, name)


@pytest.mark.parametrize("kind", list(Narrow), ids=str)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 8, 13])
def test_arrays_are_packed_and_unpacked(kind: Narrow, size: int) -> None:
    array = np.arange(size) * 5 % (1 << kind.bits)
    if kind.is_float:
        elements = array.astype(np.uint8).view(kind.numpy)
    else:
        elements = (array + kind.limits[0]).astype(kind.numpy)
    stored = packed(elements, kind)
    assert stored.nbytes == kind.bytes_of(size)
    back = unpacked(stored, kind, size)
    np.testing.assert_array_equal(back.view(np.uint8), elements.view(np.uint8))
