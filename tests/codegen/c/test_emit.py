"""The text of generated C: readable, deterministic, with names of its own."""

from __future__ import annotations

import pytest

from ansorpy.codegen.c.compiler import find_compiler
from ansorpy.codegen.c.emit import emit_c, translation_unit
from ansorpy.codegen.c.style import Style
from ansorpy.codegen.c.words import WORDS
from ansorpy.errors import CodegenError
from ansorpy.ir.builders import maximum, minimum, select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Binary, BinaryOp, Call, Expr, Function, Var
from ansorpy.ir.extents import dim
from ansorpy.ir.loops import Alloc, Barrier, For, ForKind, Let, Scope, Seq, Stmt
from tests.codegen.c.compiled import STRICT, TARGET, needs_cc
from tests.codegen.programs import add_to, at, buffer, nest, program, put

A, B, C = buffer("A", 4, 8), buffer("B", 8, 6), buffer("C", 4, 6)


def product() -> Stmt:
    """``C = max(A B, 0)``, a row in a tile."""
    tile = buffer("C.local", 6, scope=Scope.LOCAL)

    def row(i: Var) -> Stmt:
        body = Seq(
            (
                nest("s6", lambda j: put(tile, (j,), at(C, i, j) * 0.0)),
                nest("s8 s6", lambda k, j: add_to(tile, (j,), at(A, i, k) * at(B, k, j))),
                nest("s6", lambda j: put(C, (i, j), maximum(at(tile, j), 0.0))),
            )
        )
        return Alloc(tile, body)

    return nest("p4", row)


def test_a_program_reads_as_if_written_by_hand() -> None:
    source = emit_c(program(product(), [A, B], [C]), TARGET, "dense", Style(32))
    assert (
        source.functions
        == """\
static void dense_body(
    const float *restrict A /* [4, 8] */,
    const float *restrict B /* [8, 6] */,
    float *restrict C /* [4, 6] */,
    unsigned char *workspace,
    unsigned char *scratch,
    int32_t threads) {
  (void)workspace;
  (void)scratch;
  (void)threads;
  // C
  for (int32_t i0 = 0; i0 < 4; ++i0) {
    float C_local[6];
    for (int32_t i0_1 = 0; i0_1 < 6; ++i0_1) {
      C_local[i0_1] = C[i0 * 6 + i0_1] * 0.0f;
    }
    for (int32_t i0_1 = 0; i0_1 < 8; ++i0_1) {
      for (int32_t i1 = 0; i1 < 6; ++i1) {
        C_local[i1] += A[i0 * 8 + i0_1] * B[i0_1 * 6 + i1];
      }
    }
    for (int32_t i0_1 = 0; i0_1 < 6; ++i0_1) {
      C[i0 * 6 + i0_1] = max_f32(0.0f, C_local[i0_1]);
    }
  }
}

int32_t dense(void *const *args, void *workspace, int32_t threads) {
  dense_body(args[0], args[1], args[2], workspace, workspace, threads);
  return 0;
}"""
    )
    assert source.helpers == ("max_f32",)


def test_a_parallel_loop_is_divided_inside_the_region() -> None:
    text = emit_c(program(product(), [A, B], [C]), TARGET, "dense", Style(64, "openmp")).text
    assert "#pragma omp parallel num_threads(threads) if (threads > 1)" in text
    assert "dense_part1(C, A, B, scratch, 4 * number / count, 4 * (number + 1) / count);" in text
    assert "dense_part1(C, A, B, scratch, 0, 4);" in text
    assert "#ifdef _OPENMP\n#include <omp.h>\n#endif" in text


@pytest.mark.parametrize("nested", ["directly", "below"])
def test_no_loop_inside_one_whose_iterations_conflict_is_divided(nested: str) -> None:
    x, y = buffer("x", 13, 13), buffer("y", 13, 13)

    def tile(i: Expr, j: Expr) -> Stmt:
        def doubled(r: Var, c: Var) -> Stmt:
            where = i + r, minimum(j * 5, 8) + c
            return Seq((put(y, where, at(x, *where)), put(y, where, at(y, *where) * 2.0)))

        return nest("s5 s5", doubled)

    def below(i: Var) -> Stmt:
        start = Var("start")
        return Let(start, minimum(i * 5, 8), nest("p3", lambda j: tile(start, j)))

    directly = nest("p3 p3", lambda i, j: tile(minimum(i * 5, 8), j))
    body = directly if nested == "directly" else nest("p3", below)
    text = emit_c(program(body, [x], [y]), TARGET, "k", Style(64, "openmp")).text
    assert text.count("// serial: iterations may write the same element") == 1
    assert "#pragma omp" not in text


def test_the_same_program_is_the_same_text() -> None:
    texts = {emit_c(program(product(), [A, B], [C]), TARGET, "k").text for _ in range(3)}
    assert len(texts) == 1


def test_helpers_are_defined_once_for_all_programs() -> None:
    sources = [emit_c(program(product(), [A, B], [C]), TARGET, name) for name in ("one", "two")]
    assert translation_unit(sources).count("static inline float max_f32") == 1


@pytest.mark.parametrize(
    "name", ["restrict", "exp_f32", "floor_div_i64", "sinf", "INT32_MAX", "i8"]
)
def test_arrays_do_not_get_names_that_mean_something(name: str) -> None:
    x, y = buffer(name, 3), buffer("y", 3)
    text = emit_c(program(nest("s3", lambda i: put(y, (i,), at(x, i))), [x], [y]), TARGET, "k")
    wanted = f"{name}_" if name in WORDS else name
    assert f"y[i0] = {wanted}[i0];" in text.functions


@needs_cc
@pytest.mark.parametrize(
    "name", ["NULL", "MAXFLOAT", "M_PI", "MATH_ERRNO", "math_errhandling", "LDBL_MAX", "SIZE_MAX"]
)
def test_arrays_are_not_called_like_macros_of_headers(name: str) -> None:
    x, y = buffer(name, 3), buffer("y", 3)
    text = emit_c(program(nest("s3", lambda i: put(y, (i,), at(x, i))), [x], [y]), TARGET, "k").text
    assert f"y[i0] = {name}_[i0];" in text
    # GNU's headers define more than those of C11.
    find_compiler().shared_library(text, ("-std=gnu11", "-D_XOPEN_SOURCE=700"))


@needs_cc
def test_comments_end_where_their_line_ends() -> None:
    n = dim("n*/\\", 1, 9)
    x, y = buffer("x*/\\", n), buffer("y\nfloat ??/", n)
    i = Var("i\n@j\\")
    body = For(i, n, ForKind.SERIAL, put(y, (i,), at(x, i)))
    text = emit_c(program(body, [x], [y]), TARGET, "k").text
    assert "// y float ? ?/\n" in text and "// i @j/\n" in text and "/* [n* //] */" in text
    find_compiler().shared_library(text, STRICT)


@needs_cc
@pytest.mark.parametrize("option", ["-ffast-math", "-ffinite-math-only"])
def test_options_that_do_away_with_nan_are_refused(option: str) -> None:
    text = emit_c(program(product(), [A, B], [C]), TARGET, "k").text
    with pytest.raises(CodegenError, match="compile without -ffast-math or -ffinite-math-only"):
        find_compiler().shared_library(text, (option,))


def test_what_a_guarded_formula_uses_twice_is_computed_once() -> None:
    x, y = buffer("x", 8), buffer("y", 9)

    def guarded(i: Var) -> Stmt:
        loaded = at(x, i - 1)
        value: Expr = loaded * Call(Function.TANH, (loaded,))
        return put(y, (i,), select(i >= 1, value * Call(Function.EXP, (value,)), 0.0))

    text = emit_c(program(nest("s9", guarded), [x], [y]), TARGET, "k", Style(32)).functions
    assert (
        """\
    float t;
    if (i0 >= 1) {
      const float t_1 = x[i0 - 1];
      const float t_2 = t_1 * tanh_f32(t_1);
      t = t_2 * exp_f32(t_2);
    } else {
      t = 0.0f;
    }
    y[i0] = t;
"""
        in text
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (For(Var("b"), 3, ForKind.BLOCK_X, put(C, (0, 0), at(A, 0, 0))), "is blockIdx.x, which"),
        (Barrier(Scope.SHARED), r'threads of a GPU block can run "barrier\(shared\)"'),
    ],
)
def test_what_only_a_gpu_has_is_refused(body: Stmt, message: str) -> None:
    with pytest.raises(CodegenError, match=message):
        emit_c(program(body, [A], [C]), TARGET, "k")


@pytest.mark.parametrize("made", [
    lambda x: Binary(BinaryOp.POW, x, x), lambda x: Call(Function.EXP, (x,)),
    lambda x: Call(Function.SQRT, (x,)),
])  # fmt: skip
def test_functions_of_floats_are_not_applied_to_integers(made: object) -> None:
    assert callable(made)
    x, y = (buffer(name, 3, dtype=DType.INT32) for name in "xy")
    body = nest("s3", lambda i: put(y, (i,), made(at(x, i))))
    with pytest.raises(CodegenError, match="of int32 values .*is not defined"):
        emit_c(program(body, [x], [y]), TARGET, "k")
