"""Names for what long expressions repeat."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis.strategies import integers

from ansorpy.ir.analysis.sharing import LONG, operands_first, shared_parts, unique_nodes
from ansorpy.ir.analysis.structural_equality import same_structure
from ansorpy.ir.builders import select
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Binary, BinaryOp, Const, Expr, Load, Var
from ansorpy.ir.loops import Buffer, For, ForKind, If, Scope, Seq, Store
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.ir.text.printer import text
from tests.budget import examples

i = Var("i")


def doubled(e: Expr, times: int) -> Expr:
    """An expression whose text would be 2**times times as long as that of *e*."""
    for n in range(times):
        e = e + e * (n + 2)
    return e


def test_text_grows_with_distinct_nodes() -> None:
    sizes = [len(text(doubled(i, times))) for times in (100, 200)]
    assert sizes[1] < 2.5 * sizes[0] < 100_000


def test_short_expressions_are_written_out() -> None:
    e = doubled(i, 4)
    assert shared_parts([e]) == [] and "t" not in text(e)


def test_names_come_before_their_use_and_mean_what_they_say() -> None:
    lines = text(doubled(i, 20)).splitlines()
    names: dict[str, int] = {"i": 3}
    for line in lines[:-1]:
        name, value = line.split(" = ")
        names[name] = eval(value, {}, names)
    expected = 3
    for n in range(20):
        expected += expected * (n + 2)
    assert len(lines) > 5 and eval(lines[-1], {}, names) == expected


@examples(50)
@given(seed=integers(0, 2**32 - 1))
def test_random_shared_expressions_keep_their_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pool: list[Expr] = [i, i + 1, i * 2]
    for _ in range(60):
        a, b = (pool[int(n)] for n in rng.integers(max(0, len(pool) - 4), len(pool), 2))
        pool.append([a + b, a - b, a * 2 - b][int(rng.integers(3))])
    *lets, last = text(pool[-1]).splitlines()
    names = {"i": 5}
    for line in lets:
        name, value = line.split(" = ")
        names[name] = eval(value, {}, names)
    assert eval(last, {}, names) == value_of(pool[-1], {i: 5})


@examples(50)
@given(seed=integers(0, 2**32 - 1))
def test_equal_parts_become_one_node(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pool: list[Expr] = [i, Var("i"), Const(0.0, DType.FLOAT32), Const(-0.0, DType.FLOAT32)]
    for _ in range(40):
        a, b = (pool[int(n)] for n in rng.integers(0, len(pool), 2))
        pool.append(Binary(BinaryOp.ADD, a, b))
    merged = unique_nodes(pool[-1])
    nodes = list(operands_first([merged]))
    sums = [(e.a, e.b) for e in nodes if isinstance(e, Binary)]
    assert len(set(sums)) == len(sums) and len({id(e) for e in nodes}) == len(nodes)
    assert same_structure(merged, pool[-1])
    assert unique_nodes(merged) is merged


def value_of(e: Expr, known: dict[Expr, int]) -> int:
    if isinstance(e, Const):
        return int(e.value)
    if e not in known:
        assert isinstance(e, Binary)
        a, b = value_of(e.a, known), value_of(e.b, known)
        known[e] = {BinaryOp.ADD: a + b, BinaryOp.SUB: a - b, BinaryOp.MUL: a * b}[e.op]
    return known[e]


def test_statements_name_parts_before_them_and_only_there() -> None:
    x = Buffer("x", (4,), DType.INT64, Scope.GLOBAL)
    long = doubled(Load(x, (i,)), 12)
    stores = Seq((Store(x, (i,), long, None), Store(x, (i,), long - 1, None)))
    program = For(i, 4, ForKind.SERIAL, If(long < 3, stores, None))
    lines = text(program).splitlines()
    assert max(map(len, lines)) < 8 * LONG
    where = next(n for n, line in enumerate(lines) if line.startswith("  if "))
    assert all(re.fullmatch(r"  t(_\d+)? = .*", line) for line in lines[1:where])
    # The branches use the condition's names.
    assert len(lines) == where + 3 and lines[-1].endswith(" - 1")


def test_definitions_name_parts() -> None:
    x = placeholder((4,), name="x")
    y = compute((4,), lambda n: select(n < 2, doubled(x[n], 30), 0.0), name="y")
    shown = text(ComputeDAG([y]))
    assert len(shown) < 10_000 and shown.splitlines()[-1].startswith("y[")
