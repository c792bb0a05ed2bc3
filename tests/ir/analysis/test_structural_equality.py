from __future__ import annotations

from typing import Any

import pytest

from ansorpy.ir.analysis.structural_equality import same_structure
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Const, Expr, Var, const
from ansorpy.ir.fragments import Digit
from ansorpy.ir.loops import (
    Alloc,
    Buffer,
    For,
    ForKind,
    Param,
    Program,
    Role,
    Scope,
    Stmt,
    Store,
)
from ansorpy.ir.tensor import ComputeOp, compute, placeholder, reduce_axis
from tests.ir.rewrite.test_rewriter import every_statement


def matmul(name: str, n: int = 4, *, constant: bool = False) -> ComputeOp:
    a = placeholder((n, 5), name=name + "a")
    b = placeholder((5, 3), name=name + "b", constant=constant)
    k = reduce_axis(5, name=name + "k")
    return compute((n, 3), lambda x, y: sum_over(a[x, k] * b[k, y], k), name=name)


def test_names_do_not_matter_but_shapes_and_flags_do() -> None:
    assert same_structure(matmul("u"), matmul("v"))
    assert not same_structure(matmul("u"), matmul("v", 6))
    assert not same_structure(matmul("u"), matmul("v", constant=True))


def test_a_tensor_read_twice_is_not_two_tensors() -> None:
    x, y = placeholder((4,), name="x"), placeholder((4,), name="y")
    twice = compute((4,), lambda a: x[a] + x[a], name="t")
    both = compute((4,), lambda a: x[a] + y[a], name="t")
    assert not same_structure(twice, both)
    assert not same_structure(both, twice)


def test_expressions_that_read_two_tensors_differ() -> None:
    i = Var("i")
    reads: list[Expr] = [placeholder((4,), name=name)[i] for name in "xy"]
    assert not same_structure(*reads)
    for _ in range(20):
        reads = [e + e for e in reads]
    assert not same_structure(*reads)


def test_programs_compare_by_position_of_what_they_bind() -> None:
    def program(name: str, swap: bool = False) -> Program:
        i, j = Var(name + "i"), Var(name + "j")
        out = Buffer(name, (4, 4), DType.INT64, Scope.GLOBAL)
        store = Store(out, (j, i) if swap else (i, j), const(1), None)
        body = For(i, 4, ForKind.SERIAL, For(j, 4, ForKind.SERIAL, store))
        return Program(name, (Param(out, Role.OUTPUT),), body)

    assert same_structure(program("a"), program("a"))
    assert not same_structure(program("a"), program("a", swap=True))


@pytest.mark.parametrize("allocated", [False, True])
@pytest.mark.parametrize(
    "layout", [{"strides": (9, 1)}, {"fragment": ((Digit(8, lane=1),), ())}, {"swizzle": 64}]
)
def test_programs_that_address_memory_in_another_way_are_others(
    layout: dict[str, Any], allocated: bool
) -> None:
    def program(**given: Any) -> Program:
        out = Buffer("out", (8, 8), DType.INT64, Scope.SHARED, **given)
        body: Stmt = Store(out, (const(0), const(0)), const(1), None)
        if allocated:
            return Program("p", (), Alloc(out, body))
        return Program("p", (Param(out, Role.OUTPUT),), body)

    assert same_structure(program(**layout), program(**layout))
    assert not same_structure(program(**layout), program())
    assert same_structure(program(strides=(8, 1)), program())


def test_statements_of_every_kind() -> None:
    # Free buffers are shared by both; loops, lets and allocations bind.
    assert same_structure(every_statement(), every_statement())


def test_a_nan_equals_a_nan() -> None:
    nans = [const(float("nan"), DType.FLOAT32) for _ in range(2)]
    large = [x + x for x in nans]
    for _ in range(20):
        large = [x + x for x in large]
    assert same_structure(*nans) and same_structure(*large)
    assert not same_structure(nans[0], const(1.0, DType.FLOAT32))
    assert not same_structure(nans[0], const(float("nan"), DType.FLOAT64))


def test_zero_has_a_sign_and_shared_graphs_are_cheap() -> None:
    assert not same_structure(const(0.0, DType.FLOAT32), const(-0.0, DType.FLOAT32))
    assert same_structure(Const(1, DType.FLOAT32), Const(1.0, DType.FLOAT32))
    a: Expr = Var("i")
    b = a
    for _ in range(200):
        a, b = a + a, b + b
    assert same_structure(a, b)
