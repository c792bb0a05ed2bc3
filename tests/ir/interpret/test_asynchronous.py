"""Instructions of a warpgroup that are done later: what they need, and what must wait for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ansorpy.errors import LoweringError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Var, as_expr
from ansorpy.ir.interpret import run_program
from ansorpy.ir.intrinsics import intrinsic
from ansorpy.ir.loops import (
    Alloc,
    Async,
    Barrier,
    Buffer,
    Commit,
    Fence,
    If,
    Instruction,
    Scope,
    Seq,
    Stmt,
    Store,
    Wait,
)
from ansorpy.ir.text.printer import text
from ansorpy.ir.verify import verify
from tests.ir.interpret.nests import buffer, load, loops, program

NAME = "wgmma.m64n16k16.kc.float32.float16.float16"
Y, X, H, J, L = (Var(n) for n in ("y", "x", "h", "j", "l"))
IN_A, IN_B = buffer("a", 64, 16, dtype="float16"), buffer("b", 16, 16, dtype="float16")
OUT = buffer("out", 64, 16)
C = Buffer("c", (64, 16), DType.FLOAT32, Scope.WARP, None, intrinsic(NAME).fragments[0])
A = Buffer("l", (64, 16), DType.FLOAT16, Scope.SHARED, swizzle=32)
B = Buffer("r", (16, 16), DType.FLOAT16, Scope.SHARED, swizzle=32)
ZERO = as_expr(0)
AT = (ZERO, ZERO)
MULTIPLY = Instruction(NAME, ((C, AT), (A, AT), (B, AT)))
SYNC, READY, BEGIN = Barrier(Scope.SHARED), Fence(Scope.SHARED), Fence(Scope.WARP)
COMMIT, DONE = Commit(Async.PRODUCTS), Wait(Async.PRODUCTS, 0)
HALF = as_expr(0.5, DType.FLOAT16)


def each(body: Stmt) -> Stmt:
    """*body* for what a lane holds of the sums."""
    return loops(body, (H, 2, "unrolled"), (J, 2, "unrolled"), (L, 2, "unrolled"))


MINE = (Y // 8 * 16 + H * 8 + Y % 8, J * 8 + X * 2 + L)
CLEAR = each(Store(C, MINE, as_expr(0.0, DType.FLOAT32), None))
DRAIN = each(Store(OUT, MINE, load(C, *MINE), None))
FILL = Seq((
    loops(Store(A, (Y * 2 + H, X * 4 + J), load(IN_A, Y * 2 + H, X * 4 + J), None),
          (H, 2, "serial"), (J, 4, "serial")),
    If(Y < 16, loops(Store(B, (Y, X * 4 + J), load(IN_B, Y, X * 4 + J), None), (J, 4, "serial")),
       None),
))  # fmt: skip
RIGHT = (CLEAR, FILL, READY, SYNC, BEGIN, MULTIPLY, COMMIT, DONE, DRAIN)


def run(steps: Sequence[Stmt]) -> tuple[np.ndarray, np.ndarray]:
    """What the steps of 128 threads make of small numbers, and what they should."""
    body = Alloc(C, Alloc(A, Alloc(B, Seq(tuple(steps)))))
    threads = ((Var("n"), 1, "blockIdx.x"), (Y, 32, "threadIdx.y"), (X, 4, "threadIdx.x"))
    made = program(loops(body, *threads), [IN_A, IN_B], [OUT])
    verify(made)
    assert "swizzled by 32 in shared" in text(made)
    a, b = (np.random.default_rng(n).integers(-4, 5, t.shape).astype(np.float16)
            for n, t in enumerate((IN_A, IN_B)))  # fmt: skip
    out = np.full(OUT.shape, 77, np.float32)
    run_program(made, [a, b, out])
    return out, a.astype(np.float32) @ b.astype(np.float32)


def without(*left_out: Stmt) -> list[Stmt]:
    return [s for s in RIGHT if s not in left_out]


def after(step: Stmt, more: Stmt) -> list[Stmt]:
    at = RIGHT.index(step) + 1
    return [*RIGHT[:at], more, *RIGHT[at:]]


def test_a_warpgroup_multiplies_tiles_of_shared_memory() -> None:
    found, want = run(RIGHT)
    np.testing.assert_array_equal(found, want)


def test_instructions_of_a_group_add_to_the_same_sums() -> None:
    found, want = run(after(MULTIPLY, MULTIPLY))
    np.testing.assert_array_equal(found, 2 * want)
    found, _ = run([*RIGHT[:-2], BEGIN, MULTIPLY, COMMIT, Wait(Async.PRODUCTS, 1), DONE, DRAIN])
    np.testing.assert_array_equal(found, 2 * want)


ONE = Store(A, (Y * 2, X), HALF, None)
WRONG: dict[str, tuple[list[Stmt], str]] = {
    "no fence of memory": (without(READY), r"no fence\(shared\) follows the write to l\["),
    "no fence of registers": (without(BEGIN), r"no fence\(warp\) follows the write to c\["),
    "no barrier": (without(SYNC), "two threads access"),
    "the fence after the barrier": (
        [CLEAR, FILL, SYNC, READY, *RIGHT[4:]], "two threads access",
    ),
    "no group": (without(COMMIT), "before the instruction that adds to it is done"),
    "no wait": (without(DONE), "before the instruction that adds to it is done"),
    "too short a wait": (
        [*RIGHT[:-2], Wait(Async.PRODUCTS, 1), DRAIN],
        "before the instruction that adds to it is done",
    ),
    "sums that are written": (after(COMMIT, CLEAR), "written while an instruction adds to it"),
    "a tile that is written": (after(COMMIT, ONE), "written while an instruction may still read"),
    "a tile that others read": (after(DONE, ONE), "two threads access"),
    "nobody waits": (without(DONE, DRAIN), "is gone while an instruction uses it"),
    "some lanes": (
        [*RIGHT[:5], If(Y * 4 + X < 127, MULTIPLY, None), *RIGHT[6:]],
        "only 127 of 128 threads of a warp reach wgmma",
    ),
    "nothing there": ([CLEAR, BEGIN, MULTIPLY, COMMIT, DONE, DRAIN], "read before it is written"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found(name: str) -> None:
    steps, message = WRONG[name]
    with pytest.raises(LoweringError, match=message):
        run(steps)


def test_tiles_may_be_written_after_the_wait_and_a_barrier() -> None:
    found, want = run([*RIGHT[:-1], SYNC, ONE, DRAIN])
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("step", [READY, COMMIT, DONE])
def test_they_belong_to_kernels(step: Stmt) -> None:
    made = program(Seq((step, loops(Store(OUT, (Y, X), as_expr(0.0, DType.FLOAT32), None),
                                    (Y, 64, "serial"), (X, 16, "serial")))), [], [OUT])  # fmt: skip
    with pytest.raises(LoweringError, match="outside of every block"):
        verify(made)
    with pytest.raises(LoweringError, match="outside of a kernel launch"):
        run_program(made, [np.zeros(OUT.shape, np.float32)])
