"""AddOperandCopy: inputs rearranged inside the kernel, and where that may happen."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.matching.relations import is_operand_copy
from ansorpy.rules.placement.compute_location import locations
from ansorpy.rules.sketch.add_operand_copy import AddOperandCopy
from ansorpy.rules.sketch.multi_level_tiling import MultiLevelTiling
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_from_json, steps_to_json
from tests import workloads
from tests.rules.asking import APPLY, SKIP, ask, derive
from tests.run_native import run_native

RULE = AddOperandCopy()
TILING = MultiLevelTiling("SSRSRS")


def tiled(tensors: list[Tensor]) -> State:
    [(state, _)] = derive(TILING, tensors, "C")
    return state


def test_the_dimension_of_the_vector_loop_comes_last() -> None:
    [(state, following)] = derive(RULE, tiled(workloads.transposed_matmul(6, 10, 8)), "B")
    assert following == "A"
    assert state.stage("B.local").op.shape == (8, 10)
    assert is_operand_copy(state.stage("B.local"))


def test_operands_that_the_vector_loop_does_not_move_are_left_alone() -> None:
    state = tiled(workloads.transposed_matmul())
    assert ask(RULE, state, "B").answer is APPLY
    assert ask(RULE, state, "A").answer is SKIP, "one element a vector: a broadcast"


def test_constants_and_untiled_readers_are_left_alone() -> None:
    assert ask(RULE, tiled(workloads.matmul(8, 8, 8, constant=True)), "B").answer is SKIP
    assert ask(RULE, workloads.matmul(8, 8, 8), "B").answer is SKIP


def test_a_copy_is_made_only_where_its_tile_is_read_again() -> None:
    [(state, _)] = derive(RULE, tiled(workloads.transposed_matmul(6, 10, 8)), "B")
    found = [at.iter for at in locations(state, state.stage("B.local"))]
    assert found == ["j.0", "j.1", "k.0"], "i.2 re-reads the tile inside these, not inside j.2"


def test_only_the_load_that_moves_with_the_vector_loop_reads_the_copy() -> None:
    [(state, _)] = derive(RULE, tiled(workloads.gram(12, 8)), "A")
    read = {
        op.name: len(found) for op, found in state.current_dag.reads(state.stage("C").op).items()
    }
    assert read == {"A": 1, "A.local": 1}
    assert state.stage("A.local").op.shape == (8, 12)
    again = State.replay(state.definition, steps_from_json(steps_to_json(state.history)))
    assert again.text() == state.text() and str(again.history) == str(state.history)
    made: dict[str, object] = {"state": State.initial(state.definition), "OneOf": OneOf}
    exec(str(state.history), made)
    assert str(made["state"]) == state.text()


@pytest.mark.parametrize("at", ["root", "j.0", "j.1", "k.0"])
def test_the_program_computes_the_product(at: str) -> None:
    definition = workloads.transposed_matmul(7, 13, 12)
    state = State.initial(definition)
    state, i = state.split("C", "i", (1, 2, 2))
    state, j = state.split("C", "j", (2, 1, 4))
    state, k = state.split("C", "k", (4,))
    order = [i[0], j[0], i[1], j[1], k[0], i[2], j[2], k[1], i[3], j[3]]
    state, copy = state.reorder("C", order).cache_read("B", "local", ["C"], (1, 0))
    state = state if at == "root" else state.compute_at(copy, "C", at)
    rng = np.random.default_rng(0)
    data = {t.name: rng.standard_normal(t.shape).astype(np.float32) for t in definition[:2]}
    [got], [want] = run_native(lower(state), data), run_dag(state.definition, data)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
