"""Where allocated buffers live, and how vector loops are cut."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis.strategies import integers

from ansorpy.codegen.passes.promote_accumulators import promote
from ansorpy.codegen.storage import (
    STACK_BYTES,
    TILE_BYTES,
    StoragePlan,
    allocated,
    plan_storage,
)
from ansorpy.codegen.vectors import chunks, lanes_for
from ansorpy.errors import CodegenError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Cast, Var, as_expr
from ansorpy.ir.extents import dim
from ansorpy.ir.loops import Alloc, Buffer, For, ForKind, If, Scope, Seq, Stmt
from ansorpy.target import Target
from tests.codegen.programs import ZERO, add_to, at, buffer, nest, program, put

V4 = Target.parse("x86-64-v4")


def planned(body: Stmt) -> StoragePlan:
    return plan_storage(program(body, [], []), V4)


def test_small_locals_share_the_stack_and_large_ones_go_to_scratch() -> None:
    small, large = (buffer(n, s, scope=Scope.LOCAL) for n, s in (("small", 100), ("large", 5000)))
    plan = planned(Alloc(large, Alloc(small, Seq(()))))
    assert plan.stack == {small}
    assert plan.scratch == {large: 0}
    assert (plan.thread_bytes, plan.shared_bytes) == (20032, 0)


def local(name: str, *shape: int) -> Buffer:
    return buffer(name, *shape, scope=Scope.LOCAL)


def within(locals_: Sequence[Buffer], body: Stmt) -> Stmt:
    for inner in locals_:
        body = Alloc(inner, body)
    return body


def walked(target: Buffer) -> Stmt:
    """Fill *target* in a loop, so that it has to be in memory."""
    return nest(f"s{target.size // 16} v16", lambda i, j: put(target, (i * 16 + j,), ZERO))


def expanded(target: Buffer) -> Stmt:
    rows, columns = target.shape
    return nest(f"u{rows} v{columns}", lambda i, j: put(target, (i, j), ZERO))


def test_the_stack_holds_no_more_than_its_share() -> None:
    many = [local(f"b{n}", 256) for n in range(9)]
    plan = planned(within(many, Seq(tuple(walked(b) for b in many))))
    assert sum(b.bytes for b in plan.stack) == STACK_BYTES
    assert len(plan.scratch) == 5


def test_register_tiles_are_on_the_stack_whatever_else_is() -> None:
    tiles = [local("scores.acc", 14, 32), local("mixed.acc", 7, 64)]
    many = [local(f"b{n}", 256) for n in range(4)]
    body = Seq((*(expanded(t) for t in tiles), *(walked(b) for b in many)))
    plan = planned(within([*tiles, *many], body))
    assert plan.stack == {*tiles, *many}
    assert not plan.scratch


def test_a_tile_of_more_than_two_register_files_is_not_kept_on_the_stack() -> None:
    fits, large = local("fits", 32, 32), local("large", 33, 32)
    plan = planned(within([fits, large], Seq((expanded(fits), expanded(large)))))
    assert plan.stack == {fits}
    assert set(plan.scratch) == {large}


def test_all_tiles_together_are_limited() -> None:
    tiles = [local(f"t{n}", 32, 32) for n in range(6)]
    plan = planned(within(tiles, Seq(tuple(expanded(t) for t in tiles))))
    assert sum(b.bytes for b in plan.stack) == TILE_BYTES
    assert len(plan.scratch) == 2


def test_tiles_of_branches_that_exclude_each_other_share_their_limit() -> None:
    tiles = [local(f"t{n}", 32, 32) for n in range(9)]
    parts = [within([t], expanded(t)) for t in tiles]
    few, many = Seq(tuple(parts[:4])), Seq(tuple(parts[4:]))
    plan = planned(If(as_expr(Var("n")) < 4, few, many))
    assert plan.stack == {*tiles[:8]}
    assert set(plan.scratch) == {tiles[8]}


def test_a_product_accumulates_in_registers_beside_other_locals() -> None:
    a, total = buffer("A", 64, 14), local("total", 14, 32)
    product = nest("s64 u14 v32", lambda k, i, j: add_to(total, (i, j), at(a, k, i)))
    cleared = nest("s14 v32", lambda i, j: put(total, (i, j), ZERO))
    many = [local("Y", 256), local("Y0", 384)]
    body = within([total, *many], Seq((cleared, *(walked(b) for b in many), product)))
    whole = promote(program(body, [a], []), V4)
    [tile] = [b for b in allocated(whole.body) if b.name == "total.acc"]
    assert tile in plan_storage(whole, V4).stack


def test_workspace_of_disjoint_lifetimes_is_shared() -> None:
    a, b, c = (buffer(n, 64, scope=Scope.WORKSPACE) for n in "abc")
    plan = planned(Seq((Alloc(a, Alloc(b, Seq(()))), Alloc(c, Seq(())))))
    assert plan.shared == {a: 0, b: 256, c: 0}
    assert plan.shared_bytes == 512


def test_workspace_has_the_sizes_of_the_call() -> None:
    """Its room at a size is that of the largest of the buffers that do not live at once."""
    n = dim("n", 1, 100)
    a, b, c = (
        Buffer(name, shape, DType.FLOAT32, Scope.WORKSPACE)
        for name, shape in (("a", (n, 16)), ("b", (7,)), ("c", (n + 1,)))
    )
    plan = planned(Seq((Alloc(a, Alloc(b, Seq(()))), Alloc(c, Seq(())))))
    assert plan.shared == {a: 0, b: n * 64, c: 0}
    assert plan.shared_bytes == n * 64 + 64


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
