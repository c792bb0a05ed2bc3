"""Words and their dot products: by instruction, by parts, at any width, for other machines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from ansorpy.codegen.llvm.emit.dots import has_instruction
from ansorpy.codegen.llvm.emit.program import emit_llvm
from ansorpy.codegen.llvm.objects.build import assembly
from ansorpy.ir.dots import DOTS
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Call, Expr, Function, Var, const
from ansorpy.ir.interpret.program import run_program
from ansorpy.ir.loops import Program, Seq, Stmt
from ansorpy.target import Target
from tests.codegen.programs import Array, Compiled, add_to, at, buffer, nest, program, put

V3 = Target.parse("x86-64-v3")


def rows(fn: Function, n: int) -> Program:
    """``C[j] = sum_k dot(word(A[4 k ..]), word(B[k, j, 0 ..]))``."""
    dot = DOTS[fn]
    a = buffer("A", 3 * dot.terms, dtype=dot.left)
    b = buffer("B", 3, n, dot.terms, dtype=dot.right)
    c = buffer("C", n, dtype=dot.result)

    def word(parts: Sequence[Expr]) -> Expr:
        return Call(Function.WORD, tuple(parts))

    def body(k: Var, j: Var) -> Stmt:
        left = word([at(a, k * dot.terms + t) for t in range(dot.terms)])
        right = word([at(b, k, j, t) for t in range(dot.terms)])
        return add_to(c, (j,), Call(fn, (left, right)))

    zero = const(0.0 if dot.result.is_float else 0, dot.result)
    start = nest(f"v{n}", lambda j: put(c, (j,), zero))
    return program(Seq((start, nest(f"s3 v{n}", body))), [a, b], [c])


def values(source: Program, seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    arrays = []
    for param in source.params:
        kind, shape = param.buffer.dtype, param.buffer.shape
        if kind.is_float:
            arrays.append(rng.standard_normal(shape).astype(kind.numpy))
        else:
            low, high = (-128, 128) if kind.is_signed else (0, 256)
            arrays.append(rng.integers(low, high, shape).astype(kind.numpy))
    return arrays


def exact(arrays: list[Array], terms: int) -> Array:
    a, b = (x.astype(np.float64) for x in arrays[:2])
    found: Array = np.einsum("kt,kjt->j", a.reshape(3, terms), b)
    return found


@pytest.mark.parametrize("target", [Target.host(), V3], ids=["host", "v3"])
@pytest.mark.parametrize("n", [1, 4, 7, 16, 35])
@pytest.mark.parametrize("fn", list(DOTS))
def test_a_row_of_dot_products(fn: Function, n: int, target: Target) -> None:
    source = rows(fn, n)
    arrays = values(source, n)
    interpreted = [array.copy() for array in arrays]
    want = exact(arrays, DOTS[fn].terms)
    run_program(source, interpreted)
    Compiled(source, target)(*arrays)
    tolerance = 1e-5 if DOTS[fn].result.is_float else 0
    np.testing.assert_allclose(interpreted[2], want, atol=tolerance)
    np.testing.assert_allclose(arrays[2], want, atol=tolerance)


@pytest.mark.parametrize(
    ("fn", "features", "bits", "mnemonic"),
    [
        (Function.DOT_U8S8, "+avx512vnni", 512, "vpdpbusd"),
        (Function.DOT_U8S8, "+avxvnni", 256, "vpdpbusd"),
        (Function.DOT_BF16, "+avx512bf16", 512, "vdpbf16ps"),
    ],
)
def test_the_instruction_of_an_x86(fn: Function, features: str, bits: int, mnemonic: str) -> None:
    base = Target.parse("x86-64-v4" if bits == 512 else "x86-64-v3")
    target = replace(base, features=f"{base.features},{features}")
    assert has_instruction(fn, target) and not has_instruction(fn, base)
    listing = assembly(emit_llvm(rows(fn, 32), target, "k"), target)
    assert mnemonic in listing and ("%zmm" if bits == 512 else "%ymm") in listing


def test_the_instruction_of_an_arm() -> None:
    target = Target.parse("cortex-a76")
    assert has_instruction(Function.DOT_S8S8, target)
    listing = assembly(emit_llvm(rows(Function.DOT_S8S8, 8), target, "k"), target)
    assert "sdot" in listing


def test_words_of_neighbours_are_one_load() -> None:
    text = emit_llvm(rows(Function.DOT_U8S8, 16), Target.parse("x86-64-v4"), "k")
    assert "load <16 x i32>" in text and "zext" not in text


@pytest.mark.parametrize("kind", [DType.INT8, DType.UINT8, DType.BFLOAT16])
def test_words_of_parts_that_lie_apart(kind: DType) -> None:
    terms, n = 32 // kind.bits, 21
    a, c = buffer("A", terms, n, dtype=kind), buffer("C", n, dtype=DType.UINT32)

    def joined(j: Var) -> Stmt:
        return put(c, (j,), Call(Function.WORD, tuple(at(a, t, j) for t in range(terms))))

    x = np.random.default_rng(0).integers(0, 1 << kind.bits, (terms, n), dtype=f"u{kind.bytes}")
    x = x.view(ml_dtypes.bfloat16 if kind.is_float else kind.numpy)
    got = np.zeros(n, np.uint32)
    Compiled(program(nest(f"v{n}", joined), [a], [c]))(x, got)
    np.testing.assert_array_equal(got, np.ascontiguousarray(x.T).view(np.uint32)[:, 0])


def test_words_are_aligned_as_their_parts_are() -> None:
    text = emit_llvm(rows(Function.DOT_U8S8, 7), V3, "k")
    loads = re.findall(r"call <8 x i32> @llvm\.masked\.load\S+\(ptr \S+, i32 (\d+),", text)
    assert set(loads) == {"1"}
