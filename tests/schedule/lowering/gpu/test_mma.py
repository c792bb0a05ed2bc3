"""Products of warps: the step, its loops scheduled by hand, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.errors import ScheduleError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag, run_program
from ansorpy.ir.loops import Alloc, Instruction, Scope, walk_stmts
from ansorpy.ir.text.printer import text
from ansorpy.rules.gpu.warp_tiling import fill_by_lanes
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.tensor_cores import arguments, matmul, tolerance, values

NAME = "mma.m16n8k16.float32.float16.float16"


def product(n: int = 40, m: int = 24, k: int = 35) -> State:
    return State.initial(matmul("float16", n, m, k)).mma("C", NAME, "i", "j", "k")


def by_hand(state: State) -> State:
    """Two warps a block, one above the other, each with one fragment."""
    state, _ = state.split("C.warp", "i", (2, 16), tail="whole")
    state, _ = state.split("C.warp", "j", (8,), tail="whole")
    state, (outer, _) = state.split("C.warp", "k", (16,), tail="whole")
    order = ["i.0", "j.0", "i.1", outer.name, "i.2", "j.1", "k.1"]
    state = state.reorder("C.warp", order).tensorize("C.warp", "i.2", NAME)
    state, (_, _, rows) = state.split("C", "i", (2, 16), tail="whole")
    state, (_, columns) = state.split("C", "j", (8,), tail="whole")
    state, (high, row) = state.split("C", rows, (8,), tail="whole")
    state, (column, near) = state.split("C", columns, (2,), tail="whole")
    lanes = [row.name, column.name]
    state = state.reorder("C", ["i.0", "j.0", "i.1", *lanes, high.name, near.name])
    bound = ("blockIdx.y", "blockIdx.x", "threadIdx.z", "threadIdx.y", "threadIdx.x")
    for it, index in zip(("i.0", "j.0", "i.1", *lanes), bound, strict=True):
        state = state.bind("C", it, index)
    state = state.compute_at("C.warp", "C", column)
    for operand in ("A.warp", "B.warp"):
        state = fill_by_lanes(state, operand).compute_at(operand, "C.warp", outer)
    return state


@pytest.mark.parametrize("shape", [(40, 24, 35), (16, 8, 16), (1, 1, 1), (37, 17, 5), (64, 3, 48)])
def test_fragments_compute_products_of_any_shape(
    shape: tuple[int, int, int], rng: np.random.Generator
) -> None:
    tensors = matmul("float16", *shape)
    state = by_hand(State.initial(tensors).mma("C", NAME, "i", "j", "k"))
    made, data = lower(state).run, values(tensors, rng)
    arrays = arguments(made, data)
    run_program(made, arrays)
    (want,) = run_dag(state.definition, data, dtype=DType.FLOAT64)
    np.testing.assert_allclose(arrays[-1], want, rtol=0, atol=tolerance(tensors, want))


def test_operands_and_sum_are_in_the_registers_of_warps() -> None:
    made = lower(by_hand(product())).run
    found = {s.buffer.name: s.buffer for s in walk_stmts(made.body) if isinstance(s, Alloc)}
    assert {name: b.shape for name, b in found.items()} == {
        "C.warp": (16, 8), "A.warp": (16, 16), "B.warp": (16, 8),
    }  # fmt: skip
    assert {b.scope for b in found.values()} == {Scope.WARP}
    (used,) = (s for s in walk_stmts(made.body) if isinstance(s, Instruction))
    assert [b.name for b, _ in used.operands] == ["C.warp", "A.warp", "B.warp"]
    # What lies beyond the reduction is 0 in both operands; rows beyond the end are not stored.
    lines = [line for line in text(made).splitlines() if "A.warp[" in line or "B.warp[" in line]
    assert sum("< 35" in line and line.endswith("0.0)") for line in lines) == 2
    assert sum("< 40" in line for line in text(made).splitlines()) == 2


def test_the_axes_must_be_those_of_a_product() -> None:
    start = State.initial(matmul("float16", 8, 8, 8))
    for axes in (("i", "i", "k"), ("i", "j", "j"), ("k", "j", "i"), ("i", "j", "nope")):
        with pytest.raises(ScheduleError, match="not an untiled sum of products over these axes"):
            start.mma("C", NAME, *axes)
    with pytest.raises(ScheduleError, match="not an untiled sum of products"):
        start.split("C", "i", (4,))[0].mma("C", NAME, "i", "j", "k")
    with pytest.raises(ScheduleError, match="does not multiply such values in a warp"):
        start.mma("C", "mma.m16n8k8.float32.tf32", "i", "j", "k")
    with pytest.raises(ScheduleError, match="does not multiply such values in a warp"):
        start.mma("C", "vnni.dot_16x4", "i", "j", "k")


def test_a_sum_of_fragments_needs_the_instruction_and_whole_fragments() -> None:
    state = product()
    state = state.bind("C", "i", "threadIdx.y").bind("C", "j", "threadIdx.x")
    with pytest.raises(ScheduleError, match="a box of"):
        lower(state.compute_at("C.warp", "C", "j"))
    other = by_hand(product()).tensorize("C.warp", "i.2", "mma.m16n8k16.float32.bfloat16.bfloat16")
    with pytest.raises(ScheduleError, match="is not laid out like"):
        lower(other)


def test_virtual_threads_have_fragments_of_their_own(rng: np.random.Generator) -> None:
    tensors = matmul("float16", 64, 8, 32)
    state = State.initial(tensors).mma("C", NAME, "i", "j", "k")
    state, _ = state.split("C.warp", "i", (16,), tail="whole")
    state, _ = state.split("C.warp", "k", (16,), tail="whole")
    state = state.reorder("C.warp", ["i.0", "k.0", "i.1", "j", "k.1"])
    state = state.tensorize("C.warp", "i.1", NAME)
    state, _ = state.split("C", "i", (2, 2, 8))
    state, _ = state.split("C", "j", (4, 2))
    state = state.reorder("C", ["j.0", "i.0", "i.1", "i.3", "j.1", "i.2", "j.2"])
    bound = {"i.0": "blockIdx.x", "i.1": "vthread", "i.3": "threadIdx.y", "j.1": "threadIdx.x"}
    for it, index in bound.items():
        state = state.bind("C", it, index)
    state = state.compute_at("C.warp", "C", "j.1")
    for operand in ("A.warp", "B.warp"):
        state = fill_by_lanes(state, operand).compute_at(operand, "C.warp", "k.0")
    made, data = lower(state).run, values(tensors, rng)
    arrays = arguments(made, data)
    run_program(made, arrays)
    (want,) = run_dag(state.definition, data, dtype=DType.FLOAT64)
    np.testing.assert_allclose(arrays[-1], want, rtol=0, atol=tolerance(tensors, want))
