from __future__ import annotations

from textwrap import dedent

import pytest

from ansorpy.ir.builders import maximum, select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Binary, BinaryOp, Call, Expr, Function, ReduceKind, Var, const
from ansorpy.ir.loops import For, ForKind, Seq, Store
from ansorpy.ir.tensor import placeholder
from ansorpy.ir.text.printer import text
from tests.ir.interpret.nests import buffer, lower_plainly
from tests.ir.rewrite.test_rewriter import every_statement
from tests.ir.workloads import matmul

i, j = Var("i"), Var("j")
X = placeholder((4, 4), name="x")


def _not(e: Expr) -> Expr:
    return Call(Function.NOT, (e,))


@pytest.mark.parametrize(
    ("e", "expected"),
    [
        ((i + j) * 2, "(i + j) * 2"),
        (i + j * 2, "i + j * 2"),
        (i - (j - 1), "i - (j - 1)"),
        (i - j - 1, "i - j - 1"),
        (i // (j % 3), "i // (j % 3)"),
        (-(i + 1) * 2, "-(i + 1) * 2"),
        (Binary(BinaryOp.POW, -i, Binary(BinaryOp.POW, j, const(2))), "(-i) ** j ** 2"),
        ((i < 3) & ((j < 1) | (i.equal(j))), "i < 3 and (j < 1 or i == j)"),
        (_not(i < 3) & (j < 1), "not i < 3 and j < 1"),
        (_not((i < 3) & (j < 1)), "not (i < 3 and j < 1)"),
        (maximum(X[i, j + 1], 0.0), "max(x[i, j + 1], 0.0)"),
        (select(i < 2, X[i, j], -1.5), "select(i < 2, x[i, j], -1.5)"),
        (i.astype(DType.FLOAT32), "float32(i)"),
        (const(-3) + i, "-3 + i"),
    ],
)
def test_expressions_print_with_the_parentheses_they_need(e: Expr, expected: str) -> None:
    assert text(e) == expected


def test_a_program() -> None:
    assert text(lower_plainly(matmul(), "parallel")) == dedent("""\
        plain(x: input float32[5, 7], w: constant float32[7, 3], z: output float32[5, 3])
          alloc y: float32[5, 3] in workspace
          for i in 0..5  # parallel
            for j in 0..3
              y[i, j] = 0.0
              for k in 0..7
                y[i, j] += x[i, k] * w[k, j]
          for i in 0..5  # parallel
            for j in 0..3
              z[i, j] = max(y[i, j], 0.0)""")


def test_a_definition() -> None:
    assert text(matmul()) == dedent("""\
        x = placeholder float32[5, 7]
        w = placeholder float32[7, 3], constant
        y[i, j] = sum(x[i, k] * w[k, j] for k in 0..7)  # float32[5, 3]
        z[i, j] = max(y[i, j], 0.0)  # float32[5, 3]""")


def test_every_statement() -> None:
    assert text(every_statement()) == dedent("""\
        for i in 0..4
          j = i % 4
          alloc tmp: float32[4] in local
          if i < 3
            tmp[i] = out[i, j] * 2.0
          else
            tmp[i] = 0.0
          barrier(shared)
          prefetch out at i * 4 + j
          copy(out[i, j], tmp[i])
          tmp[i] = shuffle(tmp[j], 16)""")


def test_variables_of_one_name_are_told_apart_while_both_are_alive() -> None:
    out, i2 = buffer("out", 8), Var("i")
    inner = For(
        i2,
        2,
        ForKind.UNROLLED,
        Store(out, (i * 2 + i2,), const(1.0, DType.FLOAT32), ReduceKind.MAX),
    )
    again = For(i2, 2, ForKind.SERIAL, Store(out, (i2,), const(1.0, DType.FLOAT32), None))
    assert text(Seq((For(i, 4, ForKind.VECTORIZED, inner), again, Seq(())))) == dedent("""\
        for i in 0..4  # vectorized
          for i_1 in 0..2  # unrolled
            out[i * 2 + i_1] = max(out[i * 2 + i_1], 1.0)
        for i in 0..2
          out[i] = 1.0
        pass""")
