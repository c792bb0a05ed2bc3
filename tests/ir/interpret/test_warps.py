"""What warps do together: each lane reaches its own registers, and all take part."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.errors import LoweringError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, Var, as_expr
from ansorpy.ir.interpret import run_program
from ansorpy.ir.intrinsics import intrinsic
from ansorpy.ir.loops import Alloc, Buffer, If, Instruction, Scope, Seq, Stmt, Store
from ansorpy.ir.text.printer import text
from ansorpy.ir.verify import verify
from tests.ir.interpret.nests import buffer, load, loops, program

NAME = "mma.m16n8k8.float32.tf32"
W, Y, X, H = (Var(n) for n in ("w", "y", "x", "h"))
IN_A, IN_B = buffer("a", 16, 16), buffer("b", 16, 8)
OUT = buffer("out", 2, 16, 8)
C, A, B = (
    Buffer(name, shape, DType.FLOAT32, Scope.WARP, None, fragment)
    for name, shape, fragment in zip(
        ("c", "l", "r"), ((16, 8), (16, 8), (8, 8)), intrinsic(NAME).fragments, strict=True
    )
)
ZERO = as_expr(0)
MULTIPLY = Instruction(NAME, ((C, (ZERO, ZERO)), (A, (ZERO, ZERO)), (B, (ZERO, ZERO))))
K = Var("k")


def each(body: Stmt) -> Stmt:
    return loops(body, (H, 2, "unrolled"), (K, 2, "unrolled"))


def kernel(
    column: Expr = X, use: Stmt = MULTIPLY, lanes: tuple[int, int] = (8, 4), outside: bool = False
) -> Stmt:
    """Two warps, each with one half of A's columns: ``out[w] = A[:, 8 w ..] B[8 w .., :]``."""
    rows, near = H * 8 + Y, K * 4 + column
    clear = each(Store(C, (rows, X * 2 + K), as_expr(0.0, DType.FLOAT32), None))
    fill_a = each(Store(A, (rows, near), load(IN_A, H * 8 + Y, K * 4 + X + W * 8), None))
    fill_b = loops(
        Store(B, (K * 4 + X, Y), load(IN_B, K * 4 + X + W * 8, Y), None), (K, 2, "serial")
    )
    drain = each(Store(OUT, (W, rows, X * 2 + K), load(C, rows, X * 2 + K), None))
    body: Stmt = Alloc(A, Alloc(B, Seq((clear, fill_a, fill_b, use, drain))))
    threads = ((Y, lanes[0], "threadIdx.y"), (X, lanes[1], "threadIdx.x"))
    block, warps = (Var("n"), 1, "blockIdx.x"), (W, 2, "threadIdx.z")
    if outside:
        return loops(Alloc(C, loops(body, warps, *threads)), block)
    return loops(Alloc(C, body), block, warps, *threads)


def run(nest: Stmt, *, checked: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """What the nest makes of small numbers, and what it should."""
    made = program(nest, [IN_A, IN_B], [OUT])
    if checked:
        verify(made)
    a, b = (np.random.default_rng(n).integers(-4, 5, t.shape).astype(np.float32)
            for n, t in enumerate((IN_A, IN_B)))  # fmt: skip
    out = np.full(OUT.shape, 77, np.float32)
    run_program(made, [a, b, out])
    return out, np.stack([a[:, n : n + 8] @ b[n : n + 8] for n in (0, 8)])


def test_warps_multiply_what_their_lanes_hold() -> None:
    found, want = run(kernel())
    np.testing.assert_array_equal(found, want)
    assert "alloc c: float32[16, 8] in warp" in text(program(kernel(), [IN_A, IN_B], [OUT]))


def test_a_lane_that_writes_what_another_holds_is_found() -> None:
    with pytest.raises(LoweringError, match="a lane accesses l.* in the registers of lane"):
        run(kernel(column=(X + 1) % 4))


def test_lanes_that_are_missing_are_found() -> None:
    with pytest.raises(LoweringError, match="only 31 of 32 threads of a warp reach mma"):
        run(kernel(use=If(Y * 4 + X < 31, MULTIPLY, None)))


def test_lanes_that_want_different_operands_are_found() -> None:
    wide = Buffer("wide", (16, 16), DType.FLOAT32, Scope.WARP, None, A.fragment)
    other = Instruction(
        NAME, (MULTIPLY.operands[0], (wide, (ZERO, (X // 2) * 8)), (B, (ZERO, ZERO)))
    )
    with pytest.raises(LoweringError, match="have different operands"):
        run(kernel(use=Alloc(wide, other)))


def test_registers_that_nothing_was_written_to_are_found() -> None:
    wide = Buffer("wide", (16, 16), DType.FLOAT32, Scope.WARP, None, A.fragment)
    other = Instruction(NAME, (MULTIPLY.operands[0], (wide, (ZERO, ZERO)), (B, (ZERO, ZERO))))
    with pytest.raises(LoweringError, match="wide.* is read before it is written"):
        run(kernel(use=Alloc(wide, other)))


def test_registers_of_a_warp_belong_to_threads() -> None:
    with pytest.raises(LoweringError, match="c of a warp is allocated outside of its threads"):
        run(kernel(outside=True))


def test_what_no_fragments_make_up_is_refused() -> None:
    odd = Buffer("odd", (16, 12), DType.FLOAT32, Scope.WARP, None, A.fragment)
    with pytest.raises(LoweringError, match=r"odd has shape \(16, 12\)"):
        run(kernel(use=Alloc(odd, MULTIPLY)))
    plain = buffer("plain", 16, 8, scope="warp")
    with pytest.raises(LoweringError, match="plain is in warp memory"):
        run(kernel(use=Alloc(plain, MULTIPLY)))
    swapped = Instruction(NAME, (*MULTIPLY.operands[:2], MULTIPLY.operands[0]))
    with pytest.raises(LoweringError, match="layout of c is not the one that mma"):
        run(kernel(use=swapped))
