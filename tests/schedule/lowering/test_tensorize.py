"""Tensorize: the instruction takes the place of matching loops, and only of those."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.errors import ScheduleError, UsageError
from ansorpy.ir import builders as b
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.interpret.program import run_program
from ansorpy.ir.intrinsics import expand
from ansorpy.ir.loops import For, Instruction, walk_stmts
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.run_native import run_native


def quantized_matmul(m: int = 32) -> list[Tensor]:
    x = placeholder((6, 8), DType.UINT8, name="X")
    w = placeholder((2, m, 4), DType.INT8, name="W")
    ko, ki = reduce_axis(2, name="ko"), reduce_axis(4, name="ki")
    c = compute(
        (6, m),
        lambda i, j: b.sum(
            x[i, ko * 4 + ki].astype("int32") * w[ko, j, ki].astype("int32"), axis=(ko, ki)
        ),
        name="C",
    )
    return [x, w, c]


def tensorized(m: int = 32) -> State:
    state, (outer, inner) = State.initial(quantized_matmul(m)).split("C", "j", (16,))
    state = state.reorder("C", ["i", outer, "ko", inner, "ki"])
    return state.tensorize("C", inner, "vnni.dot_16x4")


def test_the_inner_loops_become_the_instruction():
    program = lower(tensorized()).run
    found = [s for s in walk_stmts(program.body) if isinstance(s, Instruction)]
    assert [s.name for s in found] == ["vnni.dot_16x4"]
    assert [buffer.name for buffer, _ in found[0].operands] == ["C", "X", "W"]
    loops = [s.extent for s in walk_stmts(expand(found[0])) if isinstance(s, For)]
    assert loops == [16, 4]


def test_loops_that_do_not_match_are_refused() -> None:
    state, (outer, inner) = State.initial(quantized_matmul()).split("C", "j", (8,))
    state = state.reorder("C", ["i", "ko", outer, inner, "ki"])
    state = state.tensorize("C", inner, "vnni.dot_16x4")
    with pytest.raises(
        ScheduleError, match=r"its loops run over \[16, 4\], but these run over \[8, 4\]"
    ):
        lower(state)


def test_statements_that_compute_something_else_are_refused() -> None:
    x, w = placeholder((4,), name="X"), placeholder((16, 4), name="W")
    k = reduce_axis(4, name="k")
    c = compute((16,), lambda i: b.sum(x[k] * w[i, k], axis=k), name="C")
    state = State.initial([x, w, c]).tensorize("C", "i", "vnni.dot_16x4")
    with pytest.raises(ScheduleError, match="are not instruction vnni.dot_16x4"):
        lower(state)


def test_unknown_instructions_are_answered_with_the_declared_ones():
    state = tensorized().tensorize("C", "j.1", "nope")
    with pytest.raises(UsageError, match='there is no instruction "nope"') as caught:
        lower(state)
    assert "vnni.dot_16x4" in str(caught.value)


@pytest.mark.parametrize(("op", "wide"), [("+", "int32"), ("*", "int64")])
def test_another_operator_or_type_is_something_else(op: str, wide: str) -> None:
    x, w = placeholder((4,), DType.UINT8, name="X"), placeholder((16, 4), DType.INT8, name="W")
    k = reduce_axis(4, name="k")

    def term(i: Expr) -> Expr:
        left, right = x[k].astype(wide), w[i, k].astype(wide)
        return left + right if op == "+" else (left * right).astype("int32")

    c = compute((16,), lambda i: b.sum(term(i), axis=k), name="C")
    with pytest.raises(ScheduleError, match="the statement computes something else"):
        lower(State.initial([x, w, c]).tensorize("C", "i", "vnni.dot_16x4"))


def operands(m: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(m)
    x = rng.integers(0, 256, (6, 8)).astype(np.uint8)
    return {"X": x, "W": rng.integers(-128, 128, (2, m, 4)).astype(np.int8)}


def product(data: dict[str, np.ndarray]) -> np.ndarray:
    weights = data["W"].astype(np.int32).transpose(0, 2, 1).reshape(8, -1)
    return data["X"].astype(np.int32) @ weights


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("m", [16, 48])
def test_the_instruction_computes_the_product(m: int, parallel: bool) -> None:
    state, data = tensorized(m), operands(m)
    if parallel:
        state = state.parallel("C", ["i"])
    lowered = lower(state)
    out = np.full((6, m), -1, np.int32)
    run_program(lowered.run, [data["X"], data["W"], out])
    np.testing.assert_array_equal(out, product(data))
    (native,) = run_native(lowered, data)
    np.testing.assert_array_equal(native, product(data))
