"""Where allocated buffers live, and how vector loops are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis.strategies import integers

from ansorpy.codegen.storage import STACK_BYTES, StoragePlan, plan_storage
from ansorpy.codegen.vectors import chunks, lanes_for
from ansorpy.errors import CodegenError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Cast, Var
from ansorpy.ir.loops import Alloc, For, ForKind, Scope, Seq, Stmt
from ansorpy.target import Target
from tests.codegen.programs import ZERO, at, buffer, nest, program, put

V4 = Target.parse("x86-64-v4")


def planned(body: Stmt) -> StoragePlan:
    return plan_storage(program(body, [], []), V4)


def test_small_locals_share_the_stack_and_large_ones_go_to_scratch() -> None:
    small, large = (buffer(n, s, scope=Scope.LOCAL) for n, s in (("small", 100), ("large", 5000)))
    plan = planned(Alloc(large, Alloc(small, Seq(()))))
    assert plan.stack == {small}
    assert plan.scratch == {large: 0}
    assert (plan.thread_bytes, plan.shared_bytes) == (20032, 0)


def test_the_stack_holds_no_more_than_its_share() -> None:
    many = [buffer(f"b{n}", 256, scope=Scope.LOCAL) for n in range(9)]
    body: Stmt = Seq(())
    for local in many:
        body = Alloc(local, body)
    plan = planned(body)
    assert sum(b.bytes for b in plan.stack) == STACK_BYTES
    assert len(plan.scratch) == 5


def test_workspace_of_disjoint_lifetimes_is_shared() -> None:
    a, b, c = (buffer(n, 64, scope=Scope.WORKSPACE) for n in "abc")
    plan = planned(Seq((Alloc(a, Alloc(b, Seq(()))), Alloc(c, Seq(())))))
    assert plan.shared == {a: 0, b: 256, c: 0}
    assert plan.shared_bytes == 512


def test_a_local_without_dimensions_has_one_element() -> None:
    scalar, row = buffer("scalar", scope=Scope.LOCAL), buffer("row", 7, scope=Scope.LOCAL)
    j = Var("j")
    store = put(row, [j], at(scalar))
    loop = For(j, 7, ForKind.VECTORIZED, store)
    plan = planned(Alloc(scalar, Alloc(row, loop)))
    assert plan.stack == {scalar, row}
    assert (plan.strides(scalar), plan.size(scalar)) == ((), 1)
    assert (plan.strides(row), plan.size(row)) == ((1,), 8)


def test_shared_memory_is_refused() -> None:
    with pytest.raises(CodegenError, match="allocated in shared memory"):
        planned(Alloc(buffer("s", 4, scope=Scope.SHARED), nest(
            "s1", lambda i: put(buffer("y", 1), (i,), ZERO))))  # fmt: skip


@given(extent=integers(1, 200), bits=integers(0, 4))
def test_chunks_cover_every_iteration_once_in_power_of_two_widths(extent: int, bits: int) -> None:
    lanes = 1 << bits
    covered = [chunk.start + k for chunk in chunks(extent, lanes) for k in range(chunk.active)]
    assert covered == list(range(extent))
    for chunk in chunks(extent, lanes):
        assert chunk.width in (1, 2, 4, 8, 16) and chunk.active <= chunk.width <= lanes


@pytest.mark.parametrize(
    ("dtype", "wide", "lanes"),
    [(DType.FLOAT32, DType.FLOAT32, 16), (DType.FLOAT64, DType.FLOAT64, 8),
     (DType.UINT8, DType.UINT8, 64), (DType.UINT8, DType.FLOAT32, 16),
     (DType.BFLOAT16, DType.BFLOAT16, 16)],
)  # fmt: skip
def test_the_widest_element_fills_a_register(dtype: DType, wide: DType, lanes: int) -> None:
    x, y = buffer("x", 64, dtype=dtype), buffer("y", 64, dtype=dtype)
    body = nest("v64", lambda i: put(y, (i,), Cast(dtype, Cast(wide, at(x, i)))))
    assert lanes_for(body, V4) == lanes
