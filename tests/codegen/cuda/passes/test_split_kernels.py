"""Programs cut into kernels, and what cannot be launched."""

from __future__ import annotations

import pytest

from ansorpy.codegen.clike.names import identifier
from ansorpy.codegen.cuda.emit.prelude import HELPERS
from ansorpy.codegen.cuda.emit.program import emit_cuda
from ansorpy.codegen.cuda.emit.words import WORDS
from ansorpy.codegen.cuda.launch.plan import Argument
from ansorpy.codegen.cuda.passes.split_kernels import kernel_nests, workspace_offsets
from ansorpy.errors import CodegenError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Var, as_expr
from ansorpy.ir.extents import Extent, dim
from ansorpy.ir.loops import Alloc, Barrier, Buffer, For, ForKind, If, Scope, Seq, Shuffle, Stmt
from ansorpy.target import Target
from tests.codegen.cuda.emulator import TARGET
from tests.codegen.programs import at, buffer, program, put

OTHER_NAMES = (
    "copies", "extrema", "byte_bits", "float16_bits", "bfloat16_bits", "matrices", "order",
    "division", "float_division", "integers", "shifts", "tensor_map", "barriers", "boxes",
    "clusters",
)  # fmt: skip
"""Of helpers whose functions are called otherwise."""
i, j, bx, by, tx, ty = (Var(name) for name in ("i", "j", "bx", "by", "tx", "ty"))
X, OUT = buffer("x", 6, 4), buffer("out", 6, 4)
MIDDLE = buffer("middle", 6, 4, scope=Scope.WORKSPACE)


def rows(target: Buffer, source: Buffer, row: Var, column: Var) -> Stmt:
    body = put(target, (row, column), at(source, row, column) + 1.0)
    return For(row, 6, ForKind.BLOCK_X, For(column, 4, ForKind.THREAD_X, body))


def alone(target: Buffer, source: Buffer) -> Stmt:
    body = put(target, (i, j), at(source, i, j))
    return For(i, 6, ForKind.SERIAL, For(j, 4, ForKind.SERIAL, body))


def test_every_bound_nest_is_a_kernel() -> None:
    body = Alloc(MIDDLE, Seq((rows(MIDDLE, X, bx, tx), rows(OUT, MIDDLE, by, ty))))
    first, second = kernel_nests(body)
    assert first.grid == second.grid == (6, 1, 1) and first.block == (4, 1, 1)


def test_what_is_bound_to_nothing_is_done_by_one_thread() -> None:
    body = Alloc(MIDDLE, Seq((put(MIDDLE, (0, 0), at(X, 0, 0)), alone(MIDDLE, X),
                              rows(OUT, MIDDLE, bx, tx))))  # fmt: skip
    first, second = kernel_nests(body)
    assert first.grid == first.block == (1, 1, 1) and second.grid == (6, 1, 1)
    assert isinstance(first.body, Seq) and len(first.body.body) == 2


def test_workspace_is_laid_out_apart_and_named_by_kernels() -> None:
    other = buffer("other", 100, scope=Scope.WORKSPACE)
    body = Alloc(MIDDLE, Alloc(other, Seq((rows(MIDDLE, X, bx, tx), rows(OUT, MIDDLE, by, ty)))))
    assert workspace_offsets(body) == ({MIDDLE: 0, other: 256}, 768)
    plan = emit_cuda(program(body, [X], [OUT]), TARGET, "k").plan
    assert [launch.kernel for launch in plan.launches] == ["k_0", "k_1"]
    assert plan.launches[1].arguments == (
        Argument("out", "parameter", 1), Argument("middle", "workspace", 0),
    )  # fmt: skip
    assert plan.workspace_bytes == 768


def sized(extent: Extent, name: str = "x") -> Buffer:
    return Buffer(name, (extent, 4), DType.FLOAT32, Scope.GLOBAL)


def test_conditions_on_sizes_decide_what_is_launched() -> None:
    n = dim("n", 0, 90)
    x, out = sized(n), sized(n, "out")

    def copied(row: Var, column: Var, extent: Extent) -> Stmt:
        body = put(out, (row, column), at(x, row, column))
        return For(row, extent, ForKind.BLOCK_X, For(column, 4, ForKind.THREAD_X, body))

    inner = If(as_expr(n) > 40, copied(by, ty, (n + 1) // 2), copied(i, j, n))
    body = If(as_expr(n) <= 7, copied(bx, tx, n), inner)
    few, many, middle = kernel_nests(body)
    assert few.where == (8 - n,) and few.grid == (n, 1, 1)
    assert many.where == (n - 7, n - 40) and many.grid == ((n + 1) // 2, 1, 1)
    assert middle.where == (n - 7, 41 - n)


def test_what_is_outside_of_blocks_over_a_size_is_done_for_any_size() -> None:
    n = dim("n", 0, 90)
    x, out = sized(n), sized(n + 1, "out")
    first = put(out, (0, bx), at(x, 0, bx) * 0.0)
    rest = For(by, n, ForKind.BLOCK_Y, put(out, (by + 1, bx), at(x, by, bx)))
    (nest,) = kernel_nests(For(bx, 4, ForKind.BLOCK_X, Seq((first, rest))))
    assert str(nest.grid) == "(4, max(1, n), 1)"
    text = emit_cuda(program(nest.body, [x], [out]), TARGET, "k").kernels
    assert "if (blockIdx.y == 0) {" in text and "if ((int)blockIdx.y < n) {" in text


def test_a_block_has_a_number_of_threads() -> None:
    n = dim("n", 1, 90)
    body = For(tx, n, ForKind.THREAD_X, put(sized(n, "out"), (tx, 0), at(sized(n), tx, 0)))
    with pytest.raises(CodegenError, match=r"have n threads along threadIdx\.x") as error:
        kernel_nests(body)
    assert error.value.hint == "split tx and bind an inner part to threads"


def test_workspace_has_room_for_the_largest_sizes() -> None:
    n = dim("n", 1, 90)
    large = Buffer("large", (n, n), DType.FLOAT32, Scope.WORKSPACE)
    body = Alloc(large, Alloc(MIDDLE, rows(OUT, X, bx, tx)))
    assert workspace_offsets(body) == ({large: 0, MIDDLE: 32512}, 32768)


LOCAL = buffer("own", 1, scope=Scope.LOCAL)
BAD: dict[str, tuple[Stmt, str]] = {
    "loop": (For(i, 2, ForKind.SERIAL, rows(OUT, X, bx, tx)), "in every iteration of i"),
    "condition": (
        If(at(X, 0, 0) < 1.0, Seq((rows(OUT, X, bx, tx), rows(OUT, X, by, ty))), None),
        "2 kernels would be launched under one condition",
    ),
    "grid barrier": (For(bx, 6, ForKind.BLOCK_X, Barrier(Scope.GLOBAL)), "cannot wait for other"),
    "parallel": (For(i, 6, ForKind.PARALLEL, put(OUT, (i, 0), at(X, i, 0))), "no parallel loops"),
    "vthread": (For(i, 6, ForKind.VTHREAD, put(OUT, (i, 0), at(X, i, 0))), "no vthread loops"),
    "barrier": (
        For(bx, 6, ForKind.BLOCK_X, Seq((
            For(tx, 8, ForKind.THREAD_X, put(OUT, (bx, 0), at(X, bx, 0))),
            For(ty, 4, ForKind.THREAD_X, Barrier(Scope.SHARED)),
        ))),
        "only the first 4 of threadIdx.x reach",
    ),
    "cut warp": (
        For(bx, 6, ForKind.BLOCK_X, Seq((
            For(tx, 8, ForKind.THREAD_X, put(OUT, (bx, 0), at(X, bx, 0))),
            For(ty, 4, ForKind.THREAD_X, Alloc(
                LOCAL, Shuffle(LOCAL, (as_expr(0),), at(X, bx, ty), 1))),
        ))),
        "reach an exchange of values",
    ),
    "larger": (
        For(tx, 4, ForKind.THREAD_X, For(ty, 8, ForKind.THREAD_X, put(OUT, (0, 0), at(X, 0, 0)))),
        "of extent 8 is inside one of extent 4",
    ),
    "outside": (
        For(bx, 6, ForKind.BLOCK_X, Seq((
            If(at(OUT, bx, 0) < 1.0, put(OUT, (bx, 0), at(X, bx, 0)), None),
            For(tx, 4, ForKind.THREAD_X, put(OUT, (bx, tx), at(X, bx, tx))),
        ))),
        "outside of the thread loops reads what the kernel writes",
    ),
    "exchange": (
        For(bx, 6, ForKind.BLOCK_X, Alloc(LOCAL, Seq((
            Shuffle(LOCAL, (as_expr(0),), at(X, bx, 0), 1),
            For(tx, 4, ForKind.THREAD_X, put(OUT, (bx, tx), at(X, bx, tx))),
        )))),
        "exchanged outside of the thread loops",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_kernels_cannot_do_is_refused(name: str) -> None:
    body, message = BAD[name]
    with pytest.raises(CodegenError, match=message):
        emit_cuda(program(body, [X], [OUT]), TARGET, "k")


def test_a_cpu_has_no_kernels() -> None:
    with pytest.raises(CodegenError, match="x86-64-v3 is not a GPU"):
        emit_cuda(program(alone(OUT, X), [X], [OUT]), Target.parse("x86-64-v3"), "k")


def test_names_are_not_those_of_helpers() -> None:
    assert all(identifier(name, WORDS) == f"{name}_" for name in HELPERS if name not in OTHER_NAMES)
