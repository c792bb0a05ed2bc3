"""Walking expressions: every distinct node once, however often it is shared."""

from __future__ import annotations

import math

from ansorpy.ir.analysis.flops import flops
from ansorpy.ir.dag import ComputeDAG, loads_of
from ansorpy.ir.expr import Axis, Binary, Const, Expr, Load, Var, as_expr, walk
from ansorpy.ir.tensor import ComputeOp, compute, placeholder

DEPTH = 60
X = placeholder((8,), name="x")


def doubled(e: Expr, depth: int) -> Expr:
    for _ in range(depth):
        e = e + e
    return e


def doubled_op(depth: int) -> ComputeOp:
    return compute((8,), lambda i: doubled(X[i], depth), name="y")


def test_a_sum_of_two_numbers_wraps_around() -> None:
    least = as_expr(-(2**63))
    wrapped = [as_expr(2**62) * 4, as_expr(2**63 - 1) + 1, least // -1, least % -1, least - 1]
    numbers = [e.value for e in wrapped if isinstance(e, Const)]
    assert numbers == [0, -(2**63), -(2**63), 0, 2**63 - 1]


def test_a_shared_expression_is_walked_once() -> None:
    op = doubled_op(DEPTH)
    found = list(walk(op.body))
    assert len(found) == len(set(found)) == DEPTH + 2
    assert found[-2:] == [found[-3].a, op.axes[0]]  # type: ignore[attr-defined]
    assert [type(e) for e in found[:DEPTH]] == [Binary] * DEPTH


def test_a_shared_load_is_one_read() -> None:
    op = doubled_op(DEPTH)
    assert loads_of(op) == {X: [(op.axes[0],)]}
    assert ComputeDAG([op]).ops == (X, op)
    twice = compute((8,), lambda i: X[i] * X[i] + X[7 - i], name="z")
    assert [type(index) for (index,) in loads_of(twice)[X]] == [Axis, Binary]


def test_operations_are_counted_at_every_use() -> None:
    assert flops(doubled_op(3)) == 8 * (2**3 - 1)
    assert math.isclose(flops(doubled_op(DEPTH)), 8 * (2.0**DEPTH - 1))


def test_nodes_come_in_the_order_they_appear() -> None:
    i, j = Var("i"), Var("j")
    a, b = Load(X, (i,)), Load(X, (j,))
    root = a + (b * a)
    kinds = list(walk(root))
    assert kinds == [root, a, i, root.b, b, j]  # type: ignore[attr-defined]


def test_equal_but_distinct_nodes_are_each_visited() -> None:
    i = Var("i")
    assert sum(isinstance(e, Const) for e in walk((i + 1) * (i + 1))) == 2
