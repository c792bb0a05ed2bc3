"""Tensorize: the instruction takes the place of matching loops, and only of those."""

from __future__ import annotations

import pytest

from ansorpy.errors import ScheduleError
from ansorpy.ir import builders as b
from ansorpy.ir.dtypes import DType
from ansorpy.ir.instructions import expand
from ansorpy.ir.loops import For, Instruction, walk_stmts
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.schedule.lower import lower
from ansorpy.schedule.state import State


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


def tensorized() -> State:
    state, (outer, inner) = State.initial(quantized_matmul()).split("C", "j", (16,))
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
    with pytest.raises(ScheduleError, match=r"its loops run over \[16, 4\], these over \[8, 4\]"):
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
    with pytest.raises(ScheduleError, match='there is no instruction "nope"'):
        lower(state)
